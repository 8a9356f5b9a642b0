// Plans as values: equal text, equal hash, and the launch list that follows from them alone.
#include "plan/plan.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
using graph::OpKind;

// The first of a family's configs that is legal.
kernels::KernelConfig first_legal(const kernels::Family& family) {
  kernels::KernelConfig first;
  kernels::SpaceWalk(family).all([&](const kernels::KernelConfig& config) {
    first = config;
    return false;
  });
  return first;
}

// relu(x·w) and its sum over rows, each region under its family's first legal config.
Plan small_plan() {
  graph::Builder b("net");
  const auto product = b.add(
      OpKind::MatMul, {b.input("x", Dtype::f32, {8, 16}), b.input("w", Dtype::f32, {16, 16})});
  b.output(b.add(OpKind::Softmax, {b.add(OpKind::Relu, {product})}));
  const auto cpu = *target::capabilities_of("cpu");
  Plan plan{*lower_for_target(*b.finish(), cpu), Track::fp32, cpu.arch, {}, {}, {}};
  plan.partition = *regions_of(plan.graph, plan.track, cpu);
  for (const Region& region : plan.partition.regions) {
    const auto families = kernels::families_for({region.graph, plan.track}, cpu);
    plan.configs.push_back(first_legal(*families[0]));
  }
  return plan;
}

TEST(Plan, IsItsHash) {
  const Plan plan = small_plan();
  const Plan copy = plan;
  EXPECT_EQ(copy, plan);
  EXPECT_EQ(copy.hash(), plan.hash());
  EXPECT_EQ(plan.hash().size(), 32u);
  EXPECT_EQ(small_plan(), plan);
  Plan other = plan;
  other.configs[0].set(0, other.configs[0].get(0) + 1);
  EXPECT_NE(other.hash(), plan.hash());
  other = plan;
  other.track = Track::tolerance;
  EXPECT_NE(other.hash(), plan.hash());
  other = plan;
  other.graph.nodes.back().name += "_renamed";
  other.partition.regions.back().nodes.pop_back();
  EXPECT_NE(other.hash(), plan.hash());
}

TEST(Plan, SaysItsRegionsAndTheirConfigs) {
  const Plan plan = small_plan();
  const std::string text = plan.text();
  EXPECT_TRUE(text.starts_with(fmt::format("plan of net for {}, track fp32\n", plan.target)))
      << text;
  EXPECT_NE(text.find("0 MatMul+Relu: x, w -> "), std::string::npos) << text;
  EXPECT_NE(text.find(plan.configs[0].text()), std::string::npos) << text;
}

TEST(Plan, GivesTheSameLaunchListAgain) {
  const Plan plan = small_plan();
  const auto cpu = *target::capabilities_of("cpu");
  const auto once = build_plan(plan, cpu);
  const auto again = build_plan(plan, cpu);
  ASSERT_TRUE(once) << describe(once.error());
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*once), to_json(*again));
  EXPECT_EQ(once->inputs.size(), 2u);
  ASSERT_EQ(once->outputs.size(), 1u);
  EXPECT_EQ(once->outputs[0].name, plan.graph.tensor(plan.graph.outputs[0]).name);
}
}  // namespace
}  // namespace warploom::plan
