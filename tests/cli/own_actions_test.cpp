// Actions of one's own, from their file to the archive: `--actions` of optimize and walk.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include "base/file.h"
#include "cli_fixture.h"

namespace warploom::cli_test {
namespace {
class OwnActionsCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_EQ(shell("$W new 'matmul(x[48,96], w[96,64])' --out m.onnx").status, 0);
    const json action = {{"name", "more_tasks"},  {"family", "matmul_cpu"},
                         {"kind", "tiling"},      {"eases", "cache"},
                         {"words", "more tasks"}, {"set", {{"tasks_m", "*2"}}}};
    ASSERT_TRUE(write_file(scratch.path() / "more_tasks.json", action.dump()));
  }
};

TEST_F(OwnActionsCli, AWalkCarriesThemOutByName) {
  const json steps = {
      {"start", {"matmul_cpu tile_m=2 tile_n=32 tasks_m=1"}},
      {"rounds", {{{"round", 1}, {"idea", "both cores"}, {"actions", {"more_tasks"}}}}}};
  ASSERT_TRUE(write_file(scratch.path() / "steps.json", steps.dump()));
  const std::string line = "$W walk m.onnx --steps steps.json --target cpu --quiet --json --dry ";
  const Ran ran = shell(line + "--actions more_tasks.json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& action = ran.out["rows"][1]["actions"][0];
  EXPECT_NE(action["difference"].get<std::string>().find("tasks_m 1 → 2"), std::string::npos);
  EXPECT_EQ(action["sentence"].get<std::string>().find("more tasks"), 0u);
  const Ran without = shell(line);
  EXPECT_EQ(without.out["rows"][1]["refused"]["code"], "no-schedule");
}

// Which actions it draws is chance's (tests/search/test_own_action.cpp has what becomes of them).
TEST_F(OwnActionsCli, ASearchGoesByThem) {
  const Ran ran = shell(
      "$W optimize m.onnx --target cpu --budget 20s --archive a.sqlite --quiet --candidates 10 "
      "--strategy branch --policy uniform --actions more_tasks.json --out b --json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  EXPECT_GT(ran.out["candidates"].get<int>(), 1);
}

TEST_F(OwnActionsCli, ThatCannotBeUsedAreRefused) {
  expect_error(shell("$W optimize m.onnx --target cpu --actions more_tasks.json --json"),
               "flags-contradict", 2);
  expect_error(shell("$W optimize m.onnx --target cpu --strategy tree --actions none.json --json"),
               "file-missing", 2);
  ASSERT_TRUE(write_file(scratch.path() / "bad.json", R"({"name": "x"})"));
  expect_error(shell("$W optimize m.onnx --target cpu --strategy tree --actions bad.json --json"),
               "plan-invalid", 2);
}
}  // namespace
}  // namespace warploom::cli_test
