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
    const json action = {{"name", "taller"},         {"family", "matmul_cpu"},
                         {"kind", "tiling"},         {"eases", "cache"},
                         {"words", "twice as high"}, {"set", {{"tile_m", "*2"}, {"tile_n", "/2"}}}};
    ASSERT_TRUE(write_file(scratch.path() / "taller.json", action.dump()));
  }
};

TEST_F(OwnActionsCli, AWalkCarriesThemOutByName) {
  const json steps = {
      {"start", {"matmul_cpu tile_m=2 tile_n=32"}},
      {"rounds", {{{"round", 1}, {"idea", "squarer tiles"}, {"actions", {"taller"}}}}}};
  ASSERT_TRUE(write_file(scratch.path() / "steps.json", steps.dump()));
  const std::string line = "$W walk m.onnx --steps steps.json --target cpu --quiet --json --dry ";
  const Ran ran = shell(line + "--actions taller.json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& action = ran.out["rows"][1]["actions"][0];
  EXPECT_NE(action["difference"].get<std::string>().find("tile_m 2 → 4"), std::string::npos);
  EXPECT_EQ(action["sentence"].get<std::string>().find("twice as high"), 0u);
  const Ran without = shell(line);
  EXPECT_EQ(without.out["rows"][1]["refused"]["code"], "no-schedule");
}

TEST_F(OwnActionsCli, ASearchTriesThemAndTheArchiveHasTheirWords) {
  const Ran ran = shell(
      "$W optimize m.onnx --target cpu --budget 20s --archive a.sqlite --quiet --candidates 30 "
      "--strategy branch --policy uniform --actions taller.json --out b --json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const std::string key = ran.out["regions"][0]["key"];
  const Ran listed = shell("$W archive --archive a.sqlite --json --problem " + key);
  EXPECT_NE(listed.text.find("twice as high"), std::string::npos);
}

TEST_F(OwnActionsCli, ThatCannotBeUsedAreRefused) {
  expect_error(shell("$W optimize m.onnx --target cpu --actions taller.json --json"),
               "flags-contradict", 2);
  expect_error(shell("$W optimize m.onnx --target cpu --strategy tree --actions none.json --json"),
               "file-missing", 2);
  ASSERT_TRUE(write_file(scratch.path() / "bad.json", R"({"name": "x"})"));
  expect_error(shell("$W optimize m.onnx --target cpu --strategy tree --actions bad.json --json"),
               "plan-invalid", 2);
}
}  // namespace
}  // namespace warploom::cli_test
