// What the tests of pieces share: programs that a piece makes, run by the interpreter and held
// against FP64, and where accesses lie in memory.
#pragma once
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>
#include "kernels/family.h"
#include "support/problems.h"
#include "tile/interpret.h"
#include "tile/verify.h"
#include "trials.h"

namespace warploom::test {
using Storage = std::map<std::string, std::vector<std::byte>>;  // by the name of a buffer
using kernels::Family;

// Runs programs one after another. `storage` has what they read and write, apart from workspaces,
// which begin as NaN.
inline void interpret_all(const Family::Programs& made, Storage& storage) {
  for (const BufferSpec& workspace : made.workspaces)
    storage[workspace.name].assign(static_cast<size_t>(workspace.bytes()), std::byte{0xff});
  for (size_t i = 0; i < made.programs.size(); ++i) {
    const tile::Program& program = made.programs[i];
    const auto valid = tile::verify(program);
    ASSERT_TRUE(valid.has_value()) << describe(valid.error());
    tile::Buffers buffers;
    for (const auto& [name, buffer] : made.buffers[i])
      buffers[name] = storage.at(buffer);
    const auto ran = tile::interpret(program, buffers);
    ASSERT_TRUE(ran.has_value()) << describe(ran.error());
  }
}

// A graph's inputs by name, and its outputs as NaN.
inline Storage storage_of(const graph::Graph& graph,
                          const std::vector<std::vector<std::byte>>& inputs) {
  Storage storage;
  for (size_t i = 0; i < inputs.size(); ++i)
    storage[graph.tensor(graph.inputs[i]).name] = inputs[i];
  for (const graph::TensorId id : graph.outputs) {
    const graph::Tensor& tensor = graph.tensor(id);
    const auto bytes = static_cast<size_t>(graph::byte_count(tensor));
    storage[tensor.name].assign(bytes, std::byte{0xff});
  }
  return storage;
}

// That programs compute what a graph means, within `allowed` of each output's largest element.
inline void expect_fp64(const graph::Graph& graph, const Family::Programs& made, double allowed,
                        const std::vector<std::vector<std::byte>>& inputs) {
  Storage storage = storage_of(graph, inputs);
  ASSERT_NO_FATAL_FAILURE(interpret_all(made, storage));
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(graph, views, 1);
  ASSERT_TRUE(want.has_value()) << describe(want.error());
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::Tensor& tensor = graph.tensor(graph.outputs[o]);
    EXPECT_LT(error_of((*want)[o], tensor.dtype, storage.at(tensor.name)), allowed) << tensor.name;
  }
}

inline void expect_fp64(const graph::Graph& graph, const Family::Programs& made, double allowed) {
  expect_fp64(graph, made, allowed, random_inputs(graph, 1));
}

// A coordinate at these indices, one an axis.
inline int64_t value_of(const loopnest::Affine& coordinate, const std::vector<int64_t>& at) {
  int64_t sum = coordinate.begin;
  for (size_t a = 0; a < at.size(); ++a)
    sum += coordinate.steps[a] * at[a];
  return sum;
}

inline int64_t offset_of(const loopnest::Access& access, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < access.at.size(); ++d)
    offset += value_of(access.at[d], at) * access.strides[d];
  return offset;
}

// `body` at all indices below these sizes, the last one fastest.
template <class Body> void for_each_index(const std::vector<int64_t>& sizes, const Body& body) {
  std::vector<int64_t> at(sizes.size(), 0);
  for (;;) {
    body(at);
    size_t a = sizes.size();
    while (a > 0 && ++at[a - 1] == sizes[a - 1])
      at[--a] = 0;
    if (a == 0) return;
  }
}

inline target::Capabilities hopper() {
  return *target::capabilities_of("sm_90a");
}
}  // namespace warploom::test
