// Actions that a user adds in a file: read, carried out with what constraints couple, refused,
// taken by searches, and replayed without the file.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "../support/paths.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/action/named.h"
#include "search/action/own_action.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using nlohmann::json;

json taller() {
  return {{"name", "taller"},          {"family", "matmul_wgmma"},
          {"kind", "reordering"},      {"code_region", "output tile"},
          {"eases", "latency"},        {"words", "twice as high"},
          {"set", {{"block_m", "*2"}}}};
}

OwnChange changed(OwnChange::How how, int64_t by) {
  return {.how = how, .by = by};
}

class OwnActionsOf : public testing::Test {
 protected:
  static SearchSpace space_with(const std::vector<json>& actions) {
    graph::Builder b("mm");
    const auto x = b.input("x", Dtype::f16, {2048, 2048});
    b.output(b.add(graph::OpKind::MatMul, {x, b.input("w", Dtype::f16, {2048, 2048})}));
    SearchSpace out = search_space_of({*graph::decompose(*b.finish()), Track::fp16},
                                      *target::capabilities_of("sm_90a"));
    OwnActions own;
    for (const json& one : actions)
      own.all.push_back(*own_action_from_json(one));
    out.own_actions = std::make_shared<const OwnActions>(std::move(own));
    return out;
  }

  static KernelConfig wgmma(const SearchSpace& space, const std::string& fields) {
    const auto out = named_config(ActionSpace(space), "matmul_wgmma " + fields);
    EXPECT_TRUE(out) << describe(out.error());
    return *out;
  }
};

TEST_F(OwnActionsOf, AConfigAreAmongItsActionsInTheirWords) {
  const SearchSpace space = space_with({taller()});
  const KernelConfig from = wgmma(space, "block_m=64 block_n=128 stages=2");
  const Actions here = ActionSpace(space).at(from);
  const auto found = std::ranges::find_if(
      here.legal, [](const Action& one) { return one.sentence.starts_with("twice as high"); });
  ASSERT_NE(found, here.legal.end());
  const Action& action = *found;
  EXPECT_NE(action.sentence.find("more work hides"), std::string::npos) << action.sentence;
  EXPECT_EQ(action.kind, ActionKind::reordering);
  EXPECT_EQ(action.code_region, "output tile");
  EXPECT_EQ(action.eases, Bottleneck::latency);
  const auto to = carry_out(space, action, from);
  ASSERT_TRUE(to) << describe(to.error());
  EXPECT_EQ(to->get("block_m"), 128);
}

TEST_F(OwnActionsOf, SeveralFieldsAreChangedTogetherAndNothingElseWhereThatIsLegal) {
  json action = taller();
  action["set"] = {{"block_m", "*2"}, {"block_n", "/2"}};
  const SearchSpace space = space_with({action});
  const KernelConfig from = wgmma(space, "block_m=64 block_n=128 stages=2");
  const auto own = ActionSpace(space).own("taller", from);
  ASSERT_TRUE(own && *own);
  const KernelConfig to = *carry_out(space, **own, from);
  EXPECT_EQ(to.get("block_m"), 128);
  EXPECT_EQ(to.get("block_n"), 64);
  for (const Setting& one : (*own)->settings)
    EXPECT_EQ(to.get(one.field), one.to);
  EXPECT_EQ((*own)->sentence.find("(with block_"), std::string::npos) << (*own)->sentence;
}

TEST_F(OwnActionsOf, WhatConstraintsCoupleIsSetToo) {
  json action = taller();
  action["set"] = {{"stages", "8"}};
  const SearchSpace space = space_with({action});
  const KernelConfig from = wgmma(space, "block_m=128 block_n=256 block_k=64 stages=2");
  const auto own = ActionSpace(space).own("taller", from);
  ASSERT_TRUE(own && *own) << describe(own->error());
  EXPECT_GT((*own)->settings.size(), 1u);
  EXPECT_NE((*own)->sentence.find("(with "), std::string::npos);
  const auto to = carry_out(space, **own, from);
  ASSERT_TRUE(to) << describe(to.error());
  EXPECT_EQ(to->get("stages"), 8);
}

TEST_F(OwnActionsOf, WhatIsNotOfferedIsRefusedWithTheField) {
  json action = taller();
  action["set"] = {{"block_m", "*1000"}};
  const SearchSpace space = space_with({action});
  const KernelConfig from = wgmma(space, "block_m=64 block_n=128 stages=2");
  const Actions here = ActionSpace(space).at(from);
  const auto found = std::ranges::find_if(here.refused, [](const RefusedAction& one) {
    return one.action.sentence.starts_with("twice as high");
  });
  ASSERT_NE(found, here.refused.end());
  const RefusedAction& refused = *found;
  ASSERT_EQ(refused.why.size(), 1u);
  EXPECT_EQ(refused.why[0].fields, std::vector<size_t>{*from.type()->find("block_m")});
  EXPECT_EQ(refused.why[0].found, "64000");
  const auto named = named_action(ActionSpace(space), from, "taller");
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, ErrorCode::kScheduleIllegal);
}

TEST_F(OwnActionsOf, WhereItChangesNothingOrTheFamilyIsAnotherThereIsNone) {
  json action = taller();
  action["set"] = {{"block_m", 64}};
  const SearchSpace space = space_with({action});
  SearchSpace without = space;
  without.own_actions = {};
  for (const KernelConfig& from :
       {wgmma(space, "block_m=64 block_n=128 stages=2"), ActionSpace(space).entries("direct")[0]}) {
    const Actions here = ActionSpace(space).at(from);
    const Actions before = ActionSpace(without).at(from);
    EXPECT_EQ(here.legal.size(), before.legal.size());
    EXPECT_EQ(here.refused.size(), before.refused.size());
    const auto own = ActionSpace(space).own("taller", from);
    ASSERT_TRUE(own);
    EXPECT_EQ(own->error().code, ErrorCode::kScheduleIllegal);
  }
  EXPECT_FALSE(ActionSpace(space).own("another", wgmma(space, "block_m=64")));
}

TEST_F(OwnActionsOf, AnArchiveReplaysThemWithoutTheFile) {
  const SearchSpace space = space_with({taller()});
  SearchSpace without = space;
  without.own_actions = {};
  const KernelConfig from = wgmma(space, "block_m=64 block_n=128 stages=2");
  const Action action = **ActionSpace(space).own("taller", from);
  const auto read = action_from_json(to_json(action), without);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, action);
  EXPECT_EQ(*carry_out(without, *read, from), *carry_out(space, action, from));
}

TEST(OwnActionFiles, SayWhatBecomesOfAField) {
  using How = OwnChange::How;
  EXPECT_EQ(changed(How::set, 8).of(3), 8);
  EXPECT_EQ(changed(How::add, -1).of(3), 2);
  EXPECT_EQ(changed(How::multiply, 2).of(3), 6);
  EXPECT_EQ(changed(How::divide, 3).of(6), 2);
  EXPECT_EQ(changed(How::divide, 2).of(3), std::nullopt);
  EXPECT_EQ(changed(How::multiply, 4).of(INT64_MAX / 2), std::nullopt);
  EXPECT_EQ(changed(How::add, 1).of(INT64_MAX), std::nullopt);
  const auto change = [](const json& value) {
    json action = taller();
    action["set"] = {{"block_m", value}};
    return own_action_from_json(action)->changes.at(0);
  };
  EXPECT_EQ(change("*2").how, How::multiply);
  EXPECT_EQ(change("/4").by, 4);
  EXPECT_EQ(change("-1").by, -1);
  EXPECT_EQ(change("+3").how, How::add);
  EXPECT_EQ(change("64").how, How::set);
  EXPECT_EQ(change(64).by, 64);
}

TEST(OwnActionFiles, ThatSayOfNoActionAreRefusedWithTheirPlace) {
  const std::vector<std::pair<std::string, json>> wrong = {{"family", "no_family"},
                                                           {"kind", "magic"},
                                                           {"eases", "pain"},
                                                           {"name", "two words"},
                                                           {"name", ""},
                                                           {"words", ""},
                                                           {"words", 3},
                                                           {"set", json::object()},
                                                           {"set", json::array()},
                                                           {"set", {{"no", 1}}},
                                                           {"set", {{"block_m", "*x"}}},
                                                           {"set", {{"block_m", "*0"}}},
                                                           {"set", {{"block_m", "/-2"}}},
                                                           {"set", {{"block_m", "*99999999"}}},
                                                           {"set", {{"block_m", {}}}}};
  for (const auto& [key, value] : wrong) {
    json action = taller();
    action[key] = value;
    const auto read = own_action_from_json(action);
    ASSERT_FALSE(read) << key << " " << value;
    EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid) << key << " " << value;
  }
  for (const char* key : {"name", "family", "kind", "words", "set"}) {
    json action = taller();
    action.erase(key);
    EXPECT_EQ(own_action_from_json(action).error().code, ErrorCode::kPlanInvalid) << key;
  }
  for (const char* key : {"code_region", "eases"}) {
    json action = taller();
    action.erase(key);
    EXPECT_TRUE(own_action_from_json(action)) << key;
  }
}

TEST(OwnActionFiles, AreReadFromFoldersAndNamedInErrors) {
  const ScratchFolder folder("own-actions");
  const auto file = [&](const char* name, const std::string& text) {
    const auto path = folder.path() / name;
    EXPECT_TRUE(write_file(path, text));
    return path.string();
  };
  const std::string good = file("good.json", taller().dump());
  EXPECT_EQ(read_own_actions({good})->all.size(), 1u);
  const auto twice = read_own_actions({good, good});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().found, "taller");
  for (const std::string text : {"", "no JSON", "[]", "{}"}) {
    const std::string bad = file("bad.json", text);
    const auto read = read_own_actions({bad});
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid) << text;
    EXPECT_NE(read.error().place.find("bad.json"), std::string::npos) << read.error().place;
  }
  EXPECT_EQ(read_own_actions({(folder.path() / "none.json").string()}).error().code,
            ErrorCode::kFileMissing);
}

TEST(OwnActionFiles, TheExampleIsOne) {
  const auto read = read_own_actions({test::source_path("examples/actions/taller_tiles.json")});
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->all[0].name, "taller_tiles");
  EXPECT_EQ(read->all[0].changes.size(), 2u);
}
}  // namespace
}  // namespace warploom::search
