// On a CPU a row is read, or asked for, while the one before it is written: whatever the rows are,
// interpreted and compiled, against FP64.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>
#include "../codegen/cpu_run.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

using Bytes = std::vector<std::byte>;

Bytes poisoned(const graph::Graph& graph) {
  return Bytes(static_cast<size_t>(graph::byte_count(graph.tensor(graph.outputs[0]))),
               std::byte{0xff});
}

void expect_agreement(const graph::Graph& graph, const std::vector<Bytes>& inputs,
                      const Bytes& output, const std::string& who) {
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(graph, views, 1);
  ASSERT_TRUE(want) << describe(want.error());
  const Dtype dtype = graph.tensor(graph.outputs[0]).dtype;
  EXPECT_LT(test::error_of((*want)[0], dtype, output), test::allowed(dtype)) << who;
}

void expect_compiled_agrees(const graph::Graph& graph, const std::vector<Bytes>& inputs,
                            const kernels::Family::Programs& made,
                            const target::Capabilities& machine) {
  const auto kernel = codegen::emit_cpu(made.programs[0], machine);
  ASSERT_TRUE(kernel) << describe(kernel.error());
  CpuLibrary library;
  library.add(*kernel);
  ASSERT_TRUE(library.compile());
  std::vector<Bytes> given = inputs;
  Bytes compiled = poisoned(graph);
  std::map<std::string, void*> addresses;
  for (size_t i = 0; i < given.size(); ++i)
    addresses[graph.tensor(graph.inputs[i]).name] = given[i].data();
  std::vector<void*> pointers;
  for (const Argument& arg : kernel->args) {
    const auto input = addresses.find(made.buffers[0].at(arg.buffer));
    pointers.push_back(input == addresses.end() ? compiled.data() : input->second);
  }
  library.run(*kernel, pointers);
  expect_agreement(graph, inputs, compiled, "compiled\n" + kernel->source);
}

// A region's kernel by a config, whose program has the word or does not.
void expect_right(const graph::Graph& graph, const CpuRowwiseConfig& config,
                  const std::string& word, bool has_word) {
  const auto machine = *target::capabilities_of("cpu");
  const Region region{graph, Track::fp32};
  const FamilyPtr family = rowwise_cpu_family(region, machine);
  ASSERT_TRUE(family);
  EXPECT_TRUE(family->constraints(config).empty());
  const auto made = family->programs(config);
  ASSERT_TRUE(made) << describe(made.error());
  const tile::Program& program = made->programs[0];
  const std::string text = tile::print(program);
  EXPECT_EQ(text.find(word) != std::string::npos, has_word) << text;

  const auto inputs = test::random_inputs(region.graph, 3);
  std::vector<Bytes> given = inputs;
  Bytes interpreted = poisoned(graph);
  std::map<std::string, std::span<std::byte>> buffers;
  std::map<std::string, Bytes*> sources;
  for (size_t i = 0; i < given.size(); ++i)
    sources[graph.tensor(graph.inputs[i]).name] = &given[i];
  for (const auto& [name, buffer] : made->buffers[0])
    buffers[name] = sources.contains(buffer) ? *sources[buffer] : interpreted;
  const auto done = tile::interpret(program, buffers);
  ASSERT_TRUE(done) << describe(done.error());
  expect_agreement(graph, inputs, interpreted, "interpreted\n" + text);

  expect_compiled_agrees(graph, inputs, *made, machine);
}

// By tasks of four rows, a row in chunks of 64.
void expect_overlapped(const graph::Graph& graph, bool overlaps = true) {
  expect_right(graph, {.chunk = 64, .rows_per_task = 4, .row_in_scratch = true}, "ahead", overlaps);
}

// Past the caches, and read again for each pass.
void expect_right_past_the_caches(const graph::Graph& graph) {
  expect_right(graph, {.chunk = 64, .rows_per_task = 4, .nontemporal_store = true}, "streaming",
               true);
}

graph::Graph layer_norm_of(const graph::Shape& shape, Dtype dtype = Dtype::f32) {
  Net n;
  const auto x = n.x(shape, dtype);
  const graph::Shape weights = {shape.back()};
  return n.with({n.add(OpKind::LayerNormalization, {x, n.x(weights, dtype), n.x(weights, dtype)})});
}

graph::Graph softmax_of(const graph::Shape& shape, OpKind kind = OpKind::Softmax) {
  Net n;
  return n.with({n.add(kind, {n.x(shape)}, {{"axis", int64_t{-1}}})});
}

TEST(RowsOverlapped, OfWholeChunks) {
  expect_overlapped(softmax_of({8, 256}));
}

TEST(RowsOverlapped, WhoseLastChunkIsAPart) {
  expect_overlapped(softmax_of({8, 300}));
}

TEST(RowsOverlapped, OfTasksWithARowOrTwoLess) {
  expect_overlapped(softmax_of({7, 300}));
  expect_overlapped(softmax_of({5, 256}));
}

TEST(RowsOverlapped, WhoseResultsNeedTheMaximum) {
  expect_overlapped(softmax_of({8, 300}, OpKind::LogSoftmax));
}

TEST(RowsOverlapped, WhoseResultsReadTheRowAgain) {
  Net n;
  const auto x = n.x({8, 300});
  const auto y = n.add(OpKind::Softmax, {x}, {{"axis", int64_t{-1}}});
  expect_overlapped(n.with({n.add(OpKind::Mul, {y, n.add(OpKind::Mul, {x, n.x({8, 1})})})}));
}

TEST(RowsReadAgain, OfWholeChunks) {
  expect_right_past_the_caches(layer_norm_of({8, 256}));
}

TEST(RowsReadAgain, WhoseLastChunkIsAPart) {
  expect_right_past_the_caches(layer_norm_of({7, 300}));
}

TEST(RowsReadAgain, OfNarrowTypes) {
  expect_right_past_the_caches(layer_norm_of({8, 256}, Dtype::bf16));
}

TEST(RowsOverlapped, UnlessTheyAreComputedFirst) {
  Net n;
  const auto x = n.add(OpKind::Tanh, {n.x({8, 300})});
  expect_overlapped(n.with({n.add(OpKind::Softmax, {x}, {{"axis", int64_t{-1}}})}), false);
}
}  // namespace
}  // namespace warploom::kernels
