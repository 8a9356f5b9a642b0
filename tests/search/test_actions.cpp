// Actions: what there is at a config, in words, with repairs and refusals.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/action/named.h"
#include "search/coder/coder.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using kernels::MatmulCpuConfig;
using kernels::MatmulWgmmaConfig;

SearchSpace matmul_space(const std::string& target, int64_t size) {
  graph::Builder b("mm");
  const auto x = b.input("x", Dtype::f32, {size, size});
  const auto w = b.input("w", Dtype::f32, {size, size});
  b.output(b.add(graph::OpKind::MatMul, {x, w}));
  return search_space_of({*graph::decompose(*b.finish()), Track::fp32},
                         *target::capabilities_of(target));
}

KernelConfig first_of(const SearchSpace& space, const std::string& family) {
  return ActionSpace(space).entries(family).at(0);
}

TEST(Actions, EveryFieldOfEveryFamilyIsOfOneKind) {
  std::set<std::string> fields;
  for (const kernels::ConfigType* type : kernels::config_types())
    for (const kernels::FieldInfo& field : type->fields) {
      fields.emplace(field.name);
      const ActionField* const row = action_field(field.name);
      ASSERT_NE(row, nullptr) << type->family << " " << field.name
                              << ": add its row to src/search/action/action_fields.def";
      EXPECT_FALSE(row->code_region.empty());
      EXPECT_NE(row->raise_words, "");
    }
  EXPECT_GT(fields.size(), 30u);
}

TEST(Actions, SayInWordsWhatTheyDoAndWhatThatGains) {
  KernelConfig from = MatmulWgmmaConfig{.stages = 2};
  KernelConfig to = MatmulWgmmaConfig{.block_k = 32, .stages = 4};
  const auto stages = static_cast<size_t>(MatmulWgmmaConfig::Field::stages);
  const auto block_k = static_cast<size_t>(MatmulWgmmaConfig::Field::block_k);
  const Action action = action_of(*to.type(), {{stages, 2, 4}, {block_k, 64, 32}});
  EXPECT_EQ(action.kind, ActionKind::pipelining);
  EXPECT_EQ(action.sentence,
            "keep 4 tiles in flight instead of 2 (with block_k=32): more work hides the latency of "
            "loads");
}

TEST(Actions, ThatAreLegalMakeLegalConfigs) {
  for (const std::string target : {"cpu", "sm_90a", "sm_80"}) {
    const SearchSpace space = matmul_space(target, 512);
    for (const auto& family : space.families) {
      const KernelConfig from = first_of(space, family->name());
      const Actions here = ActionSpace(space).at(from);
      EXPECT_GT(here.legal.size(), 3u) << target << " " << family->name();
      for (const Action& action : here.legal) {
        const auto to = carry_out(space, action, from);
        ASSERT_TRUE(to) << action.sentence << describe(to.error());
        EXPECT_NE(*to, from);
      }
    }
  }
}

TEST(Actions, SetCoupledFieldsTooWhereOneAloneWouldBreakAConstraint) {
  const SearchSpace space = matmul_space("sm_90a", 1024);
  size_t repaired = 0;
  for (const Action& action : actions_of(space, first_of(space, "matmul_wgmma")).legal)
    if (!action.changes_family && action.settings.size() > 1) ++repaired;
  EXPECT_GT(repaired, 0u);
}

TEST(Actions, RefusedOnesNameTheConstraintsAndTheirFields) {
  const SearchSpace space = matmul_space("sm_90a", 1024);
  size_t refused = 0;
  for (const auto& family : space.families)
    for (const RefusedAction& one : actions_of(space, first_of(space, family->name())).refused) {
      ++refused;
      ASSERT_FALSE(one.why.empty()) << one.action.sentence;
      EXPECT_FALSE(one.why[0].expected.empty());
      EXPECT_FALSE(one.why[0].fields.empty());
    }
  EXPECT_GT(refused, 0u);
}

TEST(Actions, LeadToEveryOtherFamilyThatCoversTheRegion) {
  const SearchSpace space = matmul_space("sm_90a", 512);
  std::set<std::string> families;
  for (const Action& action : actions_of(space, first_of(space, "matmul_simt")).legal)
    if (action.changes_family) families.insert(action.family());
  EXPECT_EQ(families.size(), space.families.size() - 1);
}

TEST(Actions, OfAnIllegalResultFailWithItsConstraint) {
  const SearchSpace space = matmul_space("cpu", 512);
  const KernelConfig from = first_of(space, "matmul_cpu");
  const auto tile_m = static_cast<size_t>(MatmulCpuConfig::Field::tile_m);
  const Action action = action_of(*from.type(), {{tile_m, from.get(tile_m), 100'000}});
  const auto made = carry_out(space, action, from);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kScheduleIllegal);
}

TEST(Actions, OfAFamilyThatIsNotThereFailWithNoSchedule) {
  const SearchSpace space = matmul_space("cpu", 512);
  const KernelConfig elsewhere = MatmulWgmmaConfig{};
  const KernelConfig from = first_of(space, "matmul_cpu");
  const auto made = carry_out(space, *action_between(from, elsewhere), from);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNoSchedule);
}

TEST(Actions, InFreeWordsAreNotForARule) {
  const SearchSpace space = matmul_space("cpu", 512);
  const RegionFacts facts = facts_of(space);
  const State state{.space = &space, .facts = &facts, .config = first_of(space, "matmul_cpu")};
  const auto made = (*make_coder(CoderKind::rule))->carry_out(state, idea_of("multiply faster"), 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kScheduleIllegal);
}

TEST(Actions, AreReadBackAsTheyWereWritten) {
  for (const std::string target : {"cpu", "sm_90a"}) {
    const SearchSpace space = matmul_space(target, 512);
    const KernelConfig from = first_of(space, space.families[0]->name());
    for (const Action& action : actions_of(space, from).legal) {
      const auto read = action_from_json(to_json(action), space);
      ASSERT_TRUE(read) << describe(read.error());
      EXPECT_EQ(*read, action) << to_json(action).dump();
    }
  }
}

TEST(Actions, ThatAreNoneFailWithPlanInvalid) {
  const SearchSpace space = matmul_space("cpu", 512);
  const KernelConfig from = first_of(space, "matmul_cpu");
  nlohmann::json action = to_json(actions_of(space, from).legal[0]);
  action["settings"][0]["field"] = "colour";
  for (const nlohmann::json& bad : {action, nlohmann::json(3), nlohmann::json{{"kind", "magic"}}}) {
    const auto read = action_from_json(bad, space);
    ASSERT_FALSE(read) << bad.dump();
    EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid);
  }
}

TEST(NamedActions, AFieldsValueIsTheActionThatSetsIt) {
  const SearchSpace space = matmul_space("sm_90a", 512);
  const ActionSpace actions(space);
  const auto from = named_config(actions, "matmul_wgmma stages=3");
  ASSERT_TRUE(from) << describe(from.error());
  EXPECT_EQ(from->get("stages"), 3);
  const auto action = named_action(actions, *from, "stages=4");
  ASSERT_TRUE(action) << describe(action.error());
  EXPECT_EQ(action->kind, ActionKind::pipelining);
  EXPECT_EQ(carry_out(space, *action, *from)->get("stages"), 4);
}

TEST(NamedActions, AFamilyIsEnteredWithTheFieldsAsNamed) {
  const SearchSpace space = matmul_space("sm_90a", 512);
  const ActionSpace actions(space);
  const KernelConfig from = first_of(space, "direct");
  const auto action = named_action(actions, from, "matmul_mma block_m=64 warps=4 stages=2");
  ASSERT_TRUE(action) << describe(action.error());
  EXPECT_TRUE(action->changes_family);
  const auto to = carry_out(space, *action, from);
  ASSERT_TRUE(to) << describe(to.error());
  EXPECT_EQ(to->family(), "matmul_mma");
  EXPECT_EQ(to->get("block_m"), 64);
  EXPECT_EQ(to->get("stages"), 2);
}

TEST(NamedActions, WhatIsNotThereSaysWhy) {
  const SearchSpace space = matmul_space("sm_90a", 512);
  const ActionSpace actions(space);
  const KernelConfig from = first_of(space, "matmul_wgmma");
  const auto code_of = [&](const std::string& name) {
    const auto action = named_action(actions, from, name);
    return action ? ErrorCode::kInternal : action.error().code;
  };
  EXPECT_EQ(code_of("no_family"), ErrorCode::kNoSchedule);
  EXPECT_EQ(code_of("no_field=1"), ErrorCode::kScheduleIllegal);
  EXPECT_EQ(code_of("stages=many"), ErrorCode::kScheduleIllegal);
  EXPECT_EQ(code_of("stages=1000"), ErrorCode::kScheduleIllegal);
  EXPECT_EQ(code_of("stages=" + std::to_string(*from.get("stages"))), ErrorCode::kScheduleIllegal);
  EXPECT_EQ(code_of(""), ErrorCode::kNoSchedule);
}

TEST(NearestLegal, KeepsTheFieldsThatItIsToldTo) {
  const SearchSpace space = matmul_space("sm_90a", 4096);
  const auto family = std::ranges::find(space.families, "matmul_wgmma", &kernels::Family::name);
  KernelConfig wanted = first_of(space, "matmul_wgmma");
  const size_t stages = *wanted.type()->find("stages");
  wanted.set(stages, 8);
  wanted.set(*wanted.type()->find("block_k"), 64);
  ASSERT_FALSE((*family)->validate(wanted));
  const auto kept = nearest_legal(**family, wanted, {stages});
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->get(stages), 8);
  EXPECT_TRUE((*family)->validate(*kept));
}

TEST(Policies, WeighEveryActionAndSumToOne) {
  for (const std::string target : {"cpu", "sm_90a"}) {
    const SearchSpace space = matmul_space(target, 512);
    const RegionFacts facts = facts_of(space);
    const State state{.space = &space,
                      .facts = &facts,
                      .config = first_of(space, space.families[0]->name()),
                      .us = 1000};
    const Actions here = actions_of(space, state.config);
    for (const PolicyKind kind : {PolicyKind::uniform, PolicyKind::analytic}) {
      const auto weights = (*make_policy(kind))->weights(state, here.legal);
      ASSERT_EQ(weights.size(), here.legal.size());
      double sum = 0;
      for (const double weight : weights)
        sum += weight;
      EXPECT_NEAR(sum, 1, 1e-9);
      EXPECT_GE(*std::ranges::min_element(weights), 0);
    }
  }
}

TEST(Policies, AnalyticPrefersWhatTheFamilyGuessesToBeFaster) {
  const SearchSpace space = matmul_space("cpu", 512);
  const RegionFacts facts = facts_of(space);
  const KernelConfig from = first_of(space, "matmul_cpu");
  const State state{.space = &space, .facts = &facts, .config = from};
  const auto& family = *std::ranges::find(space.families, "matmul_cpu", &kernels::Family::name);
  std::vector<Action> own;
  for (const Action& action : actions_of(space, from).legal)
    if (!action.changes_family) own.push_back(action);
  const auto weights = (*make_policy(PolicyKind::analytic))->weights(state, own);
  const auto guess = [&](size_t i) { return family->guess(*carry_out(space, own[i], from)); };
  const auto most = as_size(std::ranges::max_element(weights) - weights.begin());
  const auto least = as_size(std::ranges::min_element(weights) - weights.begin());
  EXPECT_LT(guess(most), guess(least));
}

TEST(Policies, WhatBindsFollowsFromTheRoofline) {
  const SearchSpace space = matmul_space("sm_90a", 4096);
  const RegionFacts facts = facts_of(space);
  ASSERT_EQ(facts.bound.of, "arithmetic");
  State state{.space = &space, .facts = &facts};
  EXPECT_EQ(bottleneck_of(state), Bottleneck::unknown);
  state.us = 1.2 * facts.bound.us;
  EXPECT_EQ(bottleneck_of(state), Bottleneck::arithmetic);
  state.us = 20 * facts.bound.us;
  EXPECT_EQ(bottleneck_of(state), Bottleneck::latency);
}
}  // namespace
}  // namespace warploom::search
