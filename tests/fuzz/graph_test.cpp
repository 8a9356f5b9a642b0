// Random graphs of operators: what every target computes of them agrees with FP64, or is refused by
// name.
//
// Ordinarily a sample runs. WARPLOOM_GRAPHS=N runs N graphs, from WARPLOOM_GRAPHS_SEED on;
// WARPLOOM_GRAPHS_OUT=FILE writes the figures that docs/fuzzing.md shows. WARPLOOM_GRAPHS_SHOW=SEED
// prints one graph, runs it in this process, and cuts it down if it fails.

#include "graph/graph.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include "base/error.h"
#include "fuzz/check.h"
#include "fuzz/graph_case.h"
#include "graph/common_subexpressions.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "graph_check.h"

namespace warploom {
namespace {
uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string shown(const fuzz::GraphCase& c) {
  std::string text = fmt::format("{}, {}\n", name_of(c.track), c.targets.back());
  for (const graph::TensorId id : c.graph.inputs)
    text += "input " + graph::to_text(c.graph.tensor(id)) + "\n";
  for (const graph::Tensor& tensor : c.graph.tensors)
    if (tensor.constant) text += "constant " + graph::to_text(tensor) + "\n";
  return text + graph::to_text(c.graph);
}

TEST(FuzzGraphs, RandomGraphsComputeTheSameEverywhere) {
  const fuzz::Run run{.first = number("WARPLOOM_GRAPHS_SEED", 1),
                      .count = static_cast<int>(number("WARPLOOM_GRAPHS", 60)),
                      .workers = 4,
                      .batch = 15,
                      .seconds_a_program = 120,
                      .seconds_a_text = 600};
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = fuzz::run(run, fuzz::check_graph_seeds);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const auto& o : outcomes) {
    if (o.kind == "graph" && !o.agrees())
      std::cout << fmt::format("seed {} ({}): {}\n", o.seed, o.target, o.detail);
    EXPECT_FALSE(o.is_bug()) << "seed " << o.seed << " (" << o.target << "): " << o.code << "\n"
                             << shown(fuzz::make_graph_case(o.seed)) << o.detail;
  }
  const auto figures = fuzz::graph_figures(run, outcomes, seconds);
  if (const char* out = std::getenv("WARPLOOM_GRAPHS_OUT")) {
    ASSERT_TRUE(fuzz::write_figures(out, figures));
  }
  std::cout << figures.dump(1) << "\n";
  EXPECT_GE(figures["agree"].get<int>(), run.count * 9 / 10) << "too few graphs reach the end";
}

// Everything that a graph computes computed twice, from the same inputs and constants, and all of
// it delivered.
graph::Graph doubled(const graph::Graph& given) {
  graph::Graph out = given;
  std::map<graph::TensorId, graph::TensorId> twins;
  for (const graph::Node& node : given.nodes) {
    graph::Node twin = node;
    twin.name += "/twin";
    for (graph::TensorId& id : twin.inputs)
      if (const auto made = twins.find(id); made != twins.end()) id = made->second;
    for (graph::TensorId& id : twin.outputs) {
      if (id == graph::kAbsent) continue;
      graph::Tensor tensor = given.tensor(id);
      tensor.name += "/twin";
      twins[id] = out.add_tensor(std::move(tensor));
      id = twins[id];
    }
    out.nodes.push_back(std::move(twin));
  }
  for (const graph::TensorId id : given.outputs)
    out.outputs.push_back(twins.at(id));
  return out;
}

// The law of merging, of composites and of primitives: the same function, bit by bit, and of what
// is there twice no more than a copy of each output.
TEST(FuzzGraphs, MergingCommonSubexpressionsChangesNoValue) {
  size_t before = 0;  // nodes
  size_t after = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const fuzz::GraphCase c = fuzz::make_graph_case(seed);
    const graph::Graph twice = doubled(c.graph);
    const auto merged = graph::merge_common(twice);
    ASSERT_TRUE(merged) << describe(merged.error());
    EXPECT_LE(merged->nodes.size(), c.graph.nodes.size() + c.graph.outputs.size())
        << "seed " << seed << "\n"
        << shown(c) << graph::to_text(*merged);
    const auto primitive = graph::decompose(twice);
    ASSERT_TRUE(primitive) << describe(primitive.error());
    const auto fewer = graph::merge_common(*primitive);
    ASSERT_TRUE(fewer) << describe(fewer.error());
    EXPECT_LE(fewer->nodes.size(), primitive->nodes.size());
    before += primitive->nodes.size();
    after += fewer->nodes.size();
    const auto expected = graph::evaluate(twice, fuzz::bytes_of(c), 1);
    ASSERT_TRUE(expected) << describe(expected.error());
    for (const graph::Graph& made : {*merged, *fewer}) {
      const auto found = graph::evaluate(made, fuzz::bytes_of(c), 1);
      ASSERT_TRUE(found) << describe(found.error());
      ASSERT_EQ(found->size(), expected->size());
      for (size_t i = 0; i < found->size(); ++i) {
        const size_t bytes = expected->at(i).size() * sizeof(double);
        EXPECT_EQ(std::memcmp(found->at(i).data(), expected->at(i).data(), bytes), 0)
            << "seed " << seed << "\n"
            << shown(c) << graph::to_text(made);
      }
    }
  }
  EXPECT_LT(3 * after, 2 * before);  // half, and copies of outputs
}

TEST(FuzzGraphs, OneGraphIsShown) {
  const char* seed = std::getenv("WARPLOOM_GRAPHS_SHOW");
  if (!seed) GTEST_SKIP() << "WARPLOOM_GRAPHS_SHOW names no seed";
  const fuzz::GraphCase c = fuzz::make_graph_case(std::strtoull(seed, nullptr, 10));
  std::cout << shown(c) << std::flush;
  for (const auto& o : fuzz::check_graphs(std::span(&c, 1))) {
    std::cout << o.kind << ", " << o.target << ": " << o.code << "\n" << o.detail << "\n";
    EXPECT_FALSE(o.is_bug());
    if (o.is_bug()) std::cout << "\nsmaller:\n" << shown(fuzz::smaller(c, o.target, o.code));
  }
}
}  // namespace
}  // namespace warploom
