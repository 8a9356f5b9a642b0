// Plans of several regions, judged and run as one list.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "../verify/fake_kernels.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "plan/fusion.h"
#include "plan/link.h"
#include "plan/plan.h"
#include "plan/region.h"
#include "runtime/emulate.h"
#include "search/plan_judge.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "told.h"
#include "verify/fake_kernels.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using namespace plan;
using graph::Graph;
using graph::OpKind;
using graph::TensorId;

TEST(Plan, ThatIsWrongAsAWholeHasACodeOfItsOwn) {
  verify::Setup setup{.graph = fake::matmul_graph(), .flops = 1e5};
  EXPECT_TRUE(judge_plan(setup, fake::matmul_list("right"), 5));
  const auto wrong = judge_plan(setup, fake::matmul_list("wrong_tail"), 5);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kPlanWrong);
  EXPECT_NE(wrong.error().found.find("candidate-wrong"), std::string::npos) << wrong.error().found;
}

// Of two lines parts are scanned, and what comes before them is added: as one list, on the emulated
// GPU.
TEST(Plan, ScansLongLinesInParts) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  graph::Builder b("lines");
  const TensorId x = b.input("x", Dtype::f32, {2, 6144});
  b.output(b.add(graph::OpKind::CumSum, {x, b.integers("axis", std::vector<int64_t>{1})}));
  const Graph given = *b.finish();
  const Graph graph = *graph::split_scans(*graph::decompose(given), capabilities.num_sms);
  const Partition parts = *regions_of(graph, Track::fp32, capabilities);
  EXPECT_GE(parts.regions.size(), 3u);
  std::deque<LaunchList> built;
  std::vector<const LaunchList*> lists;
  for (const Region& region : parts.regions) {
    lists.push_back(nullptr);
    if (region.alias) continue;
    const SearchSpace space = search_space_of({region.graph, Track::fp32}, capabilities);
    const auto list = space.build(*next_of(strategy_of(space, Strategy::enumerate, 1)));
    ASSERT_TRUE(list) << describe(list.error());
    lists.back() = &built.emplace_back(*list);
  }
  std::vector<float> in(2 * 6144);
  std::vector<float> out(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(i % 7) - 2.5f;
  const auto expected = *graph::evaluate(given, std::vector{std::as_bytes(std::span(in))});
  const LaunchList list = link(graph, parts, lists);
  const auto ran =
      runtime::emulate(list, {{"x", std::as_writable_bytes(std::span(in))},
                              {list.outputs[0].name, std::as_writable_bytes(std::span(out))}});
  ASSERT_TRUE(ran) << describe(ran.error());
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_NEAR(out[i], expected[0][i], 1e-2) << i;
}

// relu(x) is an output and is read by its exp, an output, too: one region makes both.
TEST(Plan, OfARegionThatStoresTwoTensorsIsRight) {
  graph::Builder b("two");
  const TensorId x = b.input("x", Dtype::f32, {16, 48});
  const TensorId relu = b.add(OpKind::Relu, {x});
  const TensorId exp = b.add(OpKind::Exp, {relu});
  b.output(relu);
  b.output(exp);
  const auto cpu = *target::capabilities_of("cpu");
  plan::Plan plan{*b.finish(), Track::fp32, cpu.arch, {}, {}, {}};
  const plan::Region region = plan::region_of(plan.graph, {0, 1}, {relu, exp});
  EXPECT_EQ(region.stored().size(), 2u);
  const SearchSpace space = search_space_of({region.graph, Track::fp32}, cpu);
  ASSERT_FALSE(space.families.empty());
  plan.partition.regions = {region};
  for (const graph::Tensor& tensor : plan.graph.tensors)
    plan.partition.storage[tensor.name] = tensor.name;
  plan.configs = {*next_of(strategy_of(space, Strategy::enumerate, 1))};
  const auto list = build_plan(plan, cpu);
  ASSERT_TRUE(list) << describe(list.error());
  EXPECT_EQ(list->outputs.size(), 2u);
  EXPECT_TRUE(list->workspaces.empty());
  const Task task = make_task({plan.graph, Track::fp32}, cpu, 1);
  const auto verdict = judge_plan(task.setup, *list, 5);
  EXPECT_TRUE(verdict) << describe(verdict.error());
}
}  // namespace
}  // namespace warploom::search
