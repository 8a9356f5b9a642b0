// Candidates that prepare what they make of constants, before a judge.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/plan_judge.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "target/capabilities.h"
#include "told.h"
#include "verify/evaluator.h"
#include "verify/fake_kernels.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
// t = w once; y = x·t in each call, after which `more` is done at row i.
LaunchList prepared_matmul(const std::string& more = "") {
  const fake::Sizes sizes;
  LaunchList list = fake::matmul_list("right");
  Kernel multiply = list.kernels[0];
  multiply.args[1].buffer = "t";
  const size_t end = multiply.source.rfind("\n}");
  multiply.source.insert(end, more);
  const Kernel copy = {
      .name = "copy",
      .source = fmt::format("extern \"C\" void copy(void* const* b, long long, void*) {{\n"
                            "  for (int i = 0; i < {}; ++i) ((float*)b[1])[i] = "
                            "((const float*)b[0])[i];\n}}\n",
                            sizes.k * sizes.n),
      .threads = 1,
      .args = {{"w"}, {"t"}}};
  list.workspaces = {{"t", Dtype::f32, {sizes.k, sizes.n}}};
  list.kernels = {copy, multiply};
  list.constants = {"w"};
  list.prepare = {0};
  return list;
}

verify::Setup setup_with(const std::set<std::string>& constants) {
  return {.graph = fake::matmul_graph(), .flops = 1e5, .constants = constants};
}

TEST(Prepared, CandidateIsAcceptedAndItsPreparationIsNoPartOfItsTime) {
  const auto verdict = judge_plan(setup_with({"w"}), prepared_matmul(), 5);
  ASSERT_TRUE(verdict) << describe(verdict.error());
  EXPECT_GT(verdict->prepare_us, 0);
  EXPECT_EQ(verdict->prepare_bytes, 29 * 53 * 4);
  const auto again = verify::verdict_from_json(verify::to_json(*verdict));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->prepare_bytes, verdict->prepare_bytes);
}

TEST(Prepared, CandidateMayPrepareOfConstantsAlone) {
  const auto refused = judge_plan(setup_with({}), prepared_matmul(), 5);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().found.find("plan-invalid"), std::string::npos)
      << describe(refused.error());
  LaunchList other = prepared_matmul();
  other.constants = {"x", "w"};
  EXPECT_FALSE(judge_plan(setup_with({"w"}), other, 5));
}

TEST(Prepared, CandidateThatSpoilsWhatTheNextCallReadsIsRefused) {
  const auto refused =
      judge_plan(setup_with({"w"}), prepared_matmul(" if (i == M - 1) ((float*)b)[3] = 7;"), 5);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().found.find("candidate-"), std::string::npos)
      << describe(refused.error());
}

TEST(Prepared, ConstantsOfARegionAreAnotherProblemOfTheArchive) {
  const auto with = verify::to_json(setup_with({"w"}));
  const auto without = verify::to_json(setup_with({}));
  EXPECT_NE(with, without);
  EXPECT_FALSE(without.contains("constants"));
  const auto again = verify::setup_from_json(with);
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->constants, (std::set<std::string>{"w"}));
}

// A convolution's weights are packed by a kernel of their own; its pixels are not constant.
TEST(Prepared, PackingOfWeightsLeavesTheCall) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  graph::Builder b("conv");
  const auto x = b.input("x", Dtype::f32, {8, 64, 34, 34});
  const auto w = b.input("w", Dtype::f32, {128, 64, 3, 3});
  b.output(b.add(graph::OpKind::Conv, {x, w}));
  const kernels::Region region{*graph::decompose(*b.finish()), Track::fp32};
  int prepared = 0;
  for (const auto& family : kernels::families_for(region, capabilities)) {
    SearchSpace every = search_space_of(region, capabilities);
    every.families = {family};
    const SearchSpace once = search_space_of(region, capabilities, {"w"});
    // Of some configs synthesis has fewer solutions than they ask for.
    const StrategyPtr strategy = strategy_of(every, Strategy::enumerate, 1);
    std::optional<kernels::KernelConfig> config = next_of(strategy);
    while (config && !every.build(*config))
      config = next_of(strategy);
    if (!config) continue;
    const auto list = every.build(*config);
    const auto constant = once.build(*config);
    ASSERT_TRUE(list && constant);
    EXPECT_TRUE(list->prepare.empty());
    EXPECT_EQ(list->kernels.size(), constant->kernels.size());
    EXPECT_LT(constant->prepare.size(), constant->kernels.size());
    prepared += !constant->prepare.empty();
  }
  EXPECT_GT(prepared, 0);
}
}  // namespace
}  // namespace warploom::search
