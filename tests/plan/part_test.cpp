// Tensors that are parts of another's memory: steps of a sequence, and what many are joined to.
#include "plan/part.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_check.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "plan/fusion.h"
#include "plan/link.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::OpKind;
using graph::TensorId;
using List = std::vector<int64_t>;

// s[t] = tanh(s[t-1] + e[t]) of rows e = exp(x) of 32 doubles, which are 256 bytes.
struct Steps {
  int count = 12;
  bool of_input = false;  // rows of x itself
  bool backward = false;
  int64_t width = 32;
  bool given = false;  // every state is an output as well
};

Graph steps_graph(const Steps& steps) {
  graph::Builder b("steps");
  const TensorId x = b.input("x", Dtype::f64, {steps.count, steps.width});
  const TensorId rows = steps.of_input ? x : b.add(OpKind::Exp, {x});
  TensorId state = b.input("s", Dtype::f64, {1, steps.width});
  std::vector<TensorId> states(static_cast<size_t>(steps.count));
  const List axis = {0};
  for (int i = 0; i < steps.count; ++i) {
    const int t = steps.backward ? steps.count - 1 - i : i;
    const List from = {t};
    const List to = {t + 1};
    const TensorId row = b.add(OpKind::Slice, {rows, b.integers(fmt::format("from{}", t), from),
                                               b.integers(fmt::format("to{}", t), to),
                                               b.integers(fmt::format("on{}", t), axis)});
    state = b.add(OpKind::Tanh, {b.add(OpKind::Add, {state, row})});
    states[static_cast<size_t>(t)] = state;
    if (steps.given) b.output(state);
  }
  b.output(b.add(OpKind::Neg, {b.add(OpKind::Concat, states, {{"axis", int64_t{0}}})}));
  return *b.finish();
}

// Two nodes at most.
std::optional<int> few(const Graph& region) {
  return region.nodes.size() <= 2 ? std::optional(0) : std::nullopt;
}

std::vector<double> numbers_of(const Graph& whole, TensorId id) {
  Random random(5, whole.tensor(id).name);
  std::vector<double> values(static_cast<size_t>(graph::element_count(whole.tensor(id).shape)));
  for (double& value : values)
    value = random.normal();
  return values;
}

// Region by region, every tensor where the partition says that it lies.
std::map<std::string, std::vector<double>> run(const Graph& whole, const Partition& parts) {
  std::map<std::string, std::vector<double>> memory;
  const auto place = [&](const std::string& tensor, int64_t count) {
    auto& buffer = memory[parts.storage.at(tensor)];
    const auto offset = parts.offsets.find(tensor);
    const auto begin =
        offset == parts.offsets.end() ? 0 : static_cast<size_t>(offset->second) / sizeof(double);
    const size_t end = begin + static_cast<size_t>(count);
    if (buffer.size() < end) buffer.resize(end);
    return std::span(buffer).subspan(begin, static_cast<size_t>(count));
  };
  for (const TensorId id : whole.inputs)
    memory[whole.tensor(id).name] = numbers_of(whole, id);
  for (const Region& region : parts.regions) {
    if (region.alias) continue;
    std::vector<graph::Bytes> inputs;
    for (const TensorId id : region.graph.inputs) {
      const auto& tensor = region.graph.tensor(id);
      const auto values =
          place(region.tensors[static_cast<size_t>(id)], graph::element_count(tensor.shape));
      inputs.push_back(std::as_bytes(values));
    }
    const auto made = *graph::evaluate(region.graph, inputs, 1);
    for (size_t o = 0; o < made.size(); ++o) {
      const auto to = place(region.stored()[o], static_cast<int64_t>(made[o].size()));
      std::ranges::copy(made[o], to.begin());
    }
  }
  return memory;
}

void expect_right(const Graph& whole, const Partition& parts) {
  std::vector<std::vector<double>> inputs;
  std::vector<graph::Bytes> bytes;
  for (const TensorId id : whole.inputs)
    inputs.push_back(numbers_of(whole, id));
  for (const auto& input : inputs)
    bytes.push_back(std::as_bytes(std::span(input)));
  const auto wanted = *graph::evaluate(whole, bytes, 1);
  auto memory = run(whole, parts);
  for (size_t o = 0; o < wanted.size(); ++o) {
    const std::string& name = whole.tensor(whole.outputs[o]).name;
    EXPECT_EQ(parts.storage.at(name), name);
    EXPECT_EQ(memory.at(name), wanted[o]) << name;
  }
}

size_t count_of(const Partition& parts, const std::string& name, bool alias) {
  return static_cast<size_t>(std::ranges::count_if(parts.regions, [&](const Region& region) {
    return region.graph.name == name && region.alias == alias;
  }));
}

TEST(Parts, StepsOfASequenceLieWhereTheyAreAndAreReadAlike) {
  for (const bool of_input : {false, true}) {
    const Graph whole = steps_graph({.of_input = of_input});
    const auto parts = partition(whole, few);
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(count_of(*parts, "Slice", true), 12U);
    std::set<std::string> different;
    for (const Region& region : parts->regions)
      if (region.graph.name == "Add+Tanh") different.insert(region.identity);
    EXPECT_EQ(different.size(), 1U);
    expect_right(whole, *parts);
  }
}

TEST(Parts, WhatManyAreJoinedToIsMadeInItsPlace) {
  for (const bool backward : {false, true}) {
    const Graph whole = steps_graph({.backward = backward});
    const auto parts = partition(whole, few);
    EXPECT_EQ(count_of(*parts, "Concat", true), 1U);
    EXPECT_EQ(count_of(*parts, "Concat", false), 0U);
    expect_right(whole, *parts);
  }
}

TEST(Parts, FewAreFusedWithWhatReadsThem) {
  const Graph whole = steps_graph({.count = 4});
  const auto parts = partition(whole, few);
  EXPECT_EQ(count_of(*parts, "Slice", true), 0U);
  expect_right(whole, *parts);
}

TEST(Parts, ThatMemoryMayNotBeginAtAreCopied) {
  const Graph whole = steps_graph({.width = 31});
  const auto parts = partition(whole, few);
  ASSERT_TRUE(parts) << describe(parts.error());
  EXPECT_TRUE(parts->offsets.empty());
  expect_right(whole, *parts);
}

TEST(Parts, ThatAreOutputsAreCopiedToWhatTheyAreJoinedTo) {
  const Graph whole = steps_graph({.given = true});
  const auto parts = partition(whole, few);
  EXPECT_EQ(count_of(*parts, "Concat", false), 1U);
  expect_right(whole, *parts);
}

TEST(Parts, OfConstantsAreReadByTheirReaders) {
  const Graph whole = steps_graph({.of_input = true});
  const auto parts = partition(whole, few, {}, {"x"});
  EXPECT_EQ(count_of(*parts, "Slice", true), 0U);
  expect_right(whole, *parts);
}

TEST(Parts, BeginAtBytesOfTheWhole) {
  const Graph whole = steps_graph({});
  std::vector<std::optional<int64_t>> begins;
  for (const graph::Node& node : whole.nodes)
    if (node.op == OpKind::Slice) begins.push_back(begin_of_part(whole, node));
  ASSERT_EQ(begins.size(), 12U);
  EXPECT_EQ(begins[0], 0);
  EXPECT_EQ(begins[3], 3 * 32 * 8);
}

TEST(Parts, OfColumnsAreInNoOnePiece) {
  graph::Builder b("columns");
  const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f64, {64, 64})});
  const List from = {32};
  const List to = {64};
  const List axis = {1};
  b.output(b.add(OpKind::Slice,
                 {x, b.integers("from", from), b.integers("to", to), b.integers("on", axis)}));
  const Graph whole = *b.finish();
  EXPECT_EQ(begin_of_part(whole, whole.nodes[1]), std::nullopt);
}

TEST(Parts, AreLinkedByTheirBytes) {
  const Graph whole = steps_graph({});
  const auto parts = partition(whole, few);
  std::vector<LaunchList> lists;
  for (const Region& region : parts->regions) {
    LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
    Kernel kernel{.name = "k", .source = region.identity, .threads = 1};
    for (const TensorId id : region.graph.inputs) {
      const auto& tensor = region.graph.tensor(id);
      list.inputs.push_back({tensor.name, tensor.dtype, tensor.shape});
      kernel.args.push_back({.buffer = tensor.name});
    }
    const auto& stored = region.graph.tensor(region.graph.outputs[0]);
    list.outputs.push_back({stored.name, stored.dtype, stored.shape});
    Argument written{.buffer = stored.name};
    written.written = true;
    kernel.args.push_back(written);
    list.kernels = {kernel};
    lists.push_back(list);
  }
  std::vector<const LaunchList*> given;
  for (size_t i = 0; i < lists.size(); ++i)
    given.push_back(parts->regions[i].alias ? nullptr : &lists[i]);
  const LaunchList linked = link(whole, *parts, given);
  EXPECT_TRUE(check_launches(linked));
  int parts_written = 0;
  for (const Kernel& kernel : linked.kernels)
    for (const Argument& argument : kernel.args)
      if (argument.written && argument.bytes == 256) ++parts_written;
  EXPECT_EQ(parts_written, 12);
  const auto again = launch_list_from_json(to_json(linked));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(to_json(*again), to_json(linked));
}

TEST(Parts, BeyondTheirBufferAreRefused) {
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64"};
  list.inputs = {{"x", Dtype::f32, {64}}};
  list.outputs = {{"y", Dtype::f32, {64}}};
  Argument to{.buffer = "y"};
  to.written = true;
  const auto code_with = [&](int64_t offset, int64_t bytes) {
    Argument from{.buffer = "x"};
    from.offset = offset;
    from.bytes = bytes;
    list.kernels = {{.name = "k", .threads = 1, .args = {from, to}}};
    const auto read = launch_list_from_json(to_json(list));
    return read ? std::optional<ErrorCode>() : std::optional(read.error().code);
  };
  EXPECT_EQ(code_with(128, 128), std::nullopt);
  EXPECT_EQ(code_with(128, 129), ErrorCode::kPlanInvalid);
  EXPECT_EQ(code_with(512, 0), ErrorCode::kPlanInvalid);
  EXPECT_EQ(code_with(-4, 0), ErrorCode::kPlanInvalid);
}
}  // namespace
}  // namespace warploom::plan
