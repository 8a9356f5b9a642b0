// Random graphs of operators: what every target computes of them agrees with FP64, or is refused by
// name.
//
// Ordinarily a sample runs. WARPLOOM_GRAPHS=N runs N graphs, from WARPLOOM_GRAPHS_SEED on;
// WARPLOOM_GRAPHS_OUT=FILE writes the figures that docs/fuzzing.md shows. WARPLOOM_GRAPHS_SHOW=SEED
// prints one graph, runs it in this process, and cuts it down if it fails.

#include <gtest/gtest.h>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include "base/file.h"
#include "graph/common_subexpressions.h"
#include "graph/reference.h"
#include "graph_check.h"

namespace warploom {
namespace {
std::uint64_t number(const char* name, std::uint64_t otherwise) {
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

// The law of merging: the same function, in fewer nodes or as many, of composites and of
// primitives.
TEST(FuzzGraphs, MergingCommonSubexpressionsChangesNoValue) {
  int fewer = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const fuzz::GraphCase c = fuzz::make_graph_case(seed);
    const auto merged = graph::merge_common(c.graph);
    ASSERT_TRUE(merged) << describe(merged.error());
    const auto primitive = graph::decompose(*merged);
    ASSERT_TRUE(primitive) << describe(primitive.error());
    const auto again = graph::merge_common(*primitive);
    ASSERT_TRUE(again) << describe(again.error());
    const auto expected = graph::evaluate(c.graph, fuzz::bytes_of(c), 1);
    const auto found = graph::evaluate(*again, fuzz::bytes_of(c), 1);
    ASSERT_TRUE(expected && found) << "seed " << seed;
    ASSERT_EQ(found->size(), expected->size());
    for (std::size_t i = 0; i < found->size(); ++i)  // bit by bit: no number may be none
      EXPECT_EQ(
          std::memcmp(found->at(i).data(), expected->at(i).data(), expected->at(i).size() * 8), 0)
          << "seed " << seed << "\n"
          << shown(c) << graph::to_text(*again);
    EXPECT_LE(again->nodes.size(), primitive->nodes.size());
    fewer += again->nodes.size() < primitive->nodes.size();
  }
  EXPECT_GT(fewer, 0);
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
