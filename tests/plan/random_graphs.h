// Random graphs in FP64, families at random, and partitions evaluated region by region.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "plan/fusion.h"
#include "plan/region.h"

namespace warploom::plan {
// Random graphs in f64, whose evaluation rounds nowhere: what is stored between regions is what the
// whole computes.
inline graph::Graph random_graph(uint64_t seed) {
  using graph::OpKind;
  using graph::TensorId;
  Random random(seed, "partition");
  graph::Builder b("random");

  struct Value {
    TensorId id;
    graph::Shape shape;
  };

  std::vector<Value> values;
  for (int i = 0; i < 3; ++i)
    values.push_back({b.input(fmt::format("in{}", i), Dtype::f64, {4, 6}), {4, 6}});
  std::vector<double> weights(24);
  for (double& weight : weights)
    weight = random.normal();
  values.push_back({b.constant("weights", Dtype::f64, {4, 6}, weights), {4, 6}});
  std::set<TensorId> read;
  const auto pick = [&](const graph::Shape& shape) {
    std::vector<Value> fitting;
    for (const Value& value : values)
      if (shape.empty() || value.shape == shape) fitting.push_back(value);
    const Value chosen = fitting[random.below(fitting.size())];
    read.insert(chosen.id);
    return chosen;
  };
  for (int n = 0; n < 12; ++n) {
    const Value x = pick({});
    const int64_t rows = x.shape[0];
    const int64_t columns = x.shape[1];
    constexpr std::array kUnary = {OpKind::Tanh, OpKind::Abs, OpKind::Sigmoid, OpKind::Neg};
    constexpr std::array kBinary = {OpKind::Add, OpKind::Mul, OpKind::Sub};
    switch (random.below(6)) {
      case 0: values.push_back({b.add(kUnary[random.below(4)], {x.id}), x.shape}); break;
      case 1:
        values.push_back({b.add(OpKind::Transpose, {x.id}, {{"perm", std::vector<int64_t>{1, 0}}}),
                          {columns, rows}});
        break;
      case 2: {
        const std::array<int64_t, 2> to = {columns, rows};
        values.push_back({b.add(OpKind::Reshape, {x.id, b.integers(fmt::format("shape{}", n), to)}),
                          {columns, rows}});
        break;
      }
      case 3: {
        const std::map<std::string, graph::Attribute> over = {{"axes", std::vector<int64_t>{1}},
                                                              {"keepdims", int64_t{1}}};
        const TensorId sum = b.add(OpKind::ReduceSum, {x.id}, over);
        values.push_back({b.add(OpKind::Sub, {x.id, sum}), x.shape});
        break;
      }
      default:
        values.push_back({b.add(kBinary[random.below(3)], {x.id, pick(x.shape).id}), x.shape});
    }
  }
  b.output(values.back().id);
  for (const Value& value : values)  // what nobody reads, and now and then what somebody does
    if (value.id != values.back().id && value.id > 3 &&
        (!read.contains(value.id) || random.below(8) == 0))
      b.output(value.id);
  return *graph::simplify(*b.finish());
}

// Families that cover any one node, and of the larger regions some at random.
inline Rank random_rank(uint64_t seed) {
  return [seed](const graph::Graph& region) -> std::optional<int> {
    const uint64_t hash = hash64(fmt::format("{} {}", seed, graph::to_text(region)));
    if (region.nodes.size() > 1 + seed % 9 || (region.nodes.size() > 1 && hash % 3 == 0))
      return std::nullopt;
    return region.nodes.size() == 1 ? 5 : static_cast<int>(hash % 7);
  };
}

// What their loops would do, at random: now and then less than those of two regions.
inline LoopWorkOf random_work(uint64_t seed) {
  return [seed](const graph::Graph& region) -> std::optional<LoopWork> {
    const uint64_t hash = hash64(fmt::format("{} loops {}", seed, graph::to_text(region)));
    if (hash % 7 == 0) return std::nullopt;
    return LoopWork{static_cast<double>(hash % 100), static_cast<int>(hash % 5)};
  };
}

using Named = std::map<std::string, std::vector<double>>;

inline std::vector<std::vector<double>> evaluated(
    const graph::Graph& graph, const std::function<std::vector<double>(graph::TensorId)>& value) {
  std::vector<std::vector<double>> inputs;
  for (const graph::TensorId id : graph.inputs)
    inputs.push_back(value(id));
  std::vector<graph::Bytes> bytes;
  for (const auto& input : inputs)
    bytes.push_back(std::as_bytes(std::span(input)));
  return *graph::evaluate(graph, bytes, 1);
}

// Of a graph's inputs, by chance, and of its constants.
inline Named drawn(const graph::Graph& whole, uint64_t seed) {
  Named known;
  for (const graph::TensorId id : whole.inputs) {
    Random random(seed, whole.tensor(id).name);
    auto& values = known[whole.tensor(id).name];
    values.resize(24);
    for (double& value : values)
      value = random.normal();
  }
  for (const auto& tensor : whole.tensors) {
    if (!tensor.constant || tensor.dtype != Dtype::f64) continue;
    auto& values = known[tensor.name];
    values.resize(tensor.constant->size() / sizeof(double));
    std::memcpy(values.data(), tensor.constant->data(), tensor.constant->size());
  }
  return known;
}

// That regions, one after another, compute what the whole graph does, each from inputs and from
// what those before it stored.
inline void expect_computes_the_whole(const graph::Graph& whole, const Partition& parts,
                                      uint64_t seed) {
  using graph::TensorId;
  Named known = drawn(whole, seed);
  const auto expected =
      evaluated(whole, [&](TensorId id) { return known.at(whole.tensor(id).name); });
  for (const Region& region : parts.regions) {
    ASSERT_TRUE(graph::infer(region.graph)) << graph::to_text(region.graph);
    const auto name = [&](TensorId id) { return region.tensors[static_cast<size_t>(id)]; };
    for (const TensorId id : region.graph.inputs)
      ASSERT_TRUE(known.contains(name(id))) << "read before it is made: " << name(id);
    const auto made = evaluated(region.graph, [&](TensorId id) { return known.at(name(id)); });
    for (size_t o = 0; o < made.size(); ++o)
      known[name(region.graph.outputs[o])] = made[o];
  }
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(known.at(whole.tensor(whole.outputs[i]).name), expected[i]);
}
}  // namespace warploom::plan
