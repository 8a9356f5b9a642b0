// `warploom walk`: actions by name, one after another, each measured; and the five walks of
// examples/crfm, whose every step is an action here or says why there is none.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include "base/file.h"
#include "cli_fixture.h"
#include "support/paths.h"

namespace warploom::cli_test {
namespace {
class WalkCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_EQ(shell("$W new 'matmul(x[48,96], w[96,64])' --out m.onnx").status, 0);
  }

  // A walk from the naive kernel on, by these rounds.
  Ran walk(const json& rounds, const std::string& flags) {
    const json steps = {{"start", {"direct tile_x=1 tile_y=1 reduction_tile=1 unroll=1"}},
                        {"rounds", rounds}};
    EXPECT_TRUE(write_file(scratch.path() / "steps.json", steps.dump()));
    return shell("$W walk m.onnx --steps steps.json --target cpu --quiet --json " + flags);
  }
};

json round_of(int number, const std::string& action) {
  return {{"round", number}, {"idea", "an idea"}, {"actions", {action}}};
}

TEST_F(WalkCli, EachStepIsAnActionThatIsMeasured) {
  const Ran ran = walk({round_of(1, "tile_x=16"), round_of(2, "matmul_cpu tile_m=4")}, "");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& rows = ran.out["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["actions"][0]["kind"], "tiling");
  EXPECT_NE(rows[1]["actions"][0]["difference"].get<std::string>().find("tile_x 1 → 16"),
            std::string::npos);
  EXPECT_EQ(rows[2]["actions"][0]["kind"], "algorithm");
  for (const json& row : rows) {
    EXPECT_GT(row["us"], 0.0);
    EXPECT_LE(row["regions"][0]["error"], row["regions"][0]["max_error"]);
  }
}

TEST_F(WalkCli, ARefusedStepSaysWhyAndTheWalkGoesOn) {
  const Ran ran = walk({round_of(1, "tile_x=17"), round_of(2, "no_family"), round_of(3, "tile_x=1"),
                        round_of(4, "tile_x=16")},
                       "--dry");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& rows = ran.out["rows"];
  EXPECT_EQ(rows[1]["refused"]["code"], "schedule-illegal");
  EXPECT_EQ(rows[2]["refused"]["code"], "no-schedule");
  EXPECT_EQ(rows[3]["refused"]["found"], "it is so already");
  EXPECT_FALSE(rows[4].contains("refused"));
  EXPECT_EQ(rows[3]["regions"][0]["schedule"], rows[0]["regions"][0]["schedule"]);
}

TEST_F(WalkCli, AWalkGoesOnWhereItStopped) {
  ASSERT_EQ(walk(json::array({round_of(1, "tile_x=16")}), "--out w.json").status, 0);
  json before = json::parse(*read_file(scratch.path() / "w.json"));
  before["rows"][0]["regions"][0]["us"] = 12345.5;
  ASSERT_TRUE(write_file(scratch.path() / "w.json", before.dump()));
  const Ran again = walk(json::array({round_of(1, "tile_x=16")}), "--out w.json");
  EXPECT_EQ(again.out["rows"][0]["us"], 12345.5);  // taken up, not measured again
  const Ran other = walk(json::array({round_of(1, "tile_y=16")}), "--out w.json");
  EXPECT_NE(other.out["rows"][0]["us"], 12345.5);  // of other steps
}

TEST_F(WalkCli, StepsThatAreNoneAreRefused) {
  for (const char* steps :
       {"[]", "{", R"({"start": [1], "rounds": []})", R"({"start": [], "rounds": [{"round": 1}]})",
        R"({"start": [], "rounds": [{"round": 1, "idea": "x"}]})"}) {
    ASSERT_TRUE(write_file(scratch.path() / "broken.json", steps));
    expect_error(shell("$W walk m.onnx --steps broken.json --target cpu --dry --json"),
                 "plan-invalid", 2);
  }
  expect_error(shell("$W walk m.onnx --steps none.json --target cpu --dry --json"), "file-missing",
               2);
}

// On every kind of target, without a GPU: nothing is measured.
TEST_F(WalkCli, EveryStepOfCrfmsWalksIsAnActionOrSaysWhyThereIsNone) {
  const std::string script = test::source_path("examples/crfm/walk.py");
  for (const char* target : {"cpu", "sm_80", "sm_89", "sm_90a"}) {
    const Ran ran = shell("python3 " + script + " $W --dry --target " + target);
    ASSERT_EQ(ran.status, 0) << ran.err;
    ASSERT_EQ(ran.out.size(), 5u);
    EXPECT_GE(ran.out[0]["rows"].size(), 14u);
    for (const json& one : ran.out) {
      for (const json& row : one["rows"]) {
        EXPECT_FALSE(row.contains("refused")) << target << " " << one["problem"] << " " << row;
        const bool is_said = !row["actions"].empty() || row.contains("none") || row["round"] == 0;
        EXPECT_TRUE(is_said) << row;
      }
    }
  }
}
}  // namespace
}  // namespace warploom::cli_test
