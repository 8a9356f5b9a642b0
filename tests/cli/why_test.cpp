// `warploom why` and `warploom replay`: where a kernel came from, and strategies on records.
#include <gtest/gtest.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include "cli_fixture.h"

namespace warploom::cli_test {
namespace {
class Why : public Cli {
 protected:
  void search(const std::string& flags) {
    const Ran ran = shell(
        "$W new 'matmul(x[48,96], w[96,64])' --out m.onnx > /dev/null && "
        "$W optimize m.onnx --target cpu --budget 20s --archive a.sqlite --no-resume --quiet "
        "--candidates 12 --out b " +
        flags + " --json");
    ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  }
};

TEST_F(Why, TellsTheStepsToTheBestAndWhatIsRefusedFromThere) {
  search("--strategy tree --policy analytic");
  const Ran ran = shell("$W why m.onnx --target cpu --archive a.sqlite --json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& region = ran.out["regions"][0];
  ASSERT_FALSE(region["steps"].empty());
  EXPECT_EQ(region["steps"][0]["sentence"], "");
  EXPECT_EQ(region["steps"].back()["schedule"], region["schedule"]);
  for (size_t i = 1; i < region["steps"].size(); ++i)
    EXPECT_NE(region["steps"][i]["sentence"], "");
  if (region["steps"].size() > 1) {
    EXPECT_EQ(region["steps"][1]["policy"], "analytic");
    EXPECT_GT(region["steps"][1]["chance"], 0.0);
    EXPECT_GE(region["steps"][1]["round"], 1);
  }
  EXPECT_TRUE(region["began"].is_null());
  for (const json& refused : region["refused"])
    EXPECT_FALSE(refused["constraints"].empty());
}

TEST_F(Why, SaysWhereAnEarlierProblemsBestBegan) {
  search("--strategy tree --policy analytic");
  const Ran ran = shell(
      "$W new 'matmul(x[56,96], w[96,64])' --out n.onnx > /dev/null && "
      "$W optimize n.onnx --target cpu --budget 20s --archive a.sqlite --quiet --candidates 6 "
      "--strategy linear --out c --json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const std::string key = ran.out["regions"][0]["key"];
  const Ran listed = shell("$W archive --archive a.sqlite --json --problem " + key);
  const std::string near = listed.out["runs"][0]["near"][0]["schedule"];
  const Ran why =
      shell("$W why n.onnx --target cpu --archive a.sqlite --json --schedule '" + near + "'");
  ASSERT_EQ(why.status, 0) << why.text << why.err;
  const json& began = why.out["regions"][0]["began"];
  ASSERT_TRUE(began.is_string());
  EXPECT_NE(began.get<std::string>().find("away"), std::string::npos);
}

TEST_F(Why, OfWhatWasNeverSearchedSaysSo) {
  search("--strategy linear --policy uniform");
  expect_error(shell("$W new 'relu(x[8,8])' --out r.onnx > /dev/null; "
                     "$W why r.onnx --target cpu --archive a.sqlite --json"),
               "file-missing", 2);
  expect_error(
      shell("$W why m.onnx --target cpu --archive a.sqlite --schedule 'direct x=1' --json"),
      "file-missing", 2);
}

TEST_F(Why, OfAnArchiveThatIsNotThereSaysSo) {
  expect_error(shell("$W why mm.textproto --target cpu --archive none.sqlite --json"),
               "file-missing", 2);
}

TEST_F(Why, ReplayCountsCandidatesOfEveryStrategy) {
  const Ran made = shell(
      "$W new 'transpose(x[64,96])' --out t.onnx > /dev/null && "
      "$W record t.onnx --into o.gz --target cpu --budget 60s --plans 6 --closed --json");
  ASSERT_EQ(made.status, 0) << made.text << made.err;
  const std::string line = "$W replay o.gz --seeds 3 --policy uniform --json";
  const Ran ran = shell(line);
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  EXPECT_EQ(ran.out["rows"].size(), 8u);
  for (const json& row : ran.out["rows"]) {
    EXPECT_EQ(row["seeds"], 3);
    EXPECT_GT(row["best_at_16"], 0.0);
    EXPECT_LE(row["best_at_256"], 1.0);
  }
  EXPECT_EQ(shell(line).out, ran.out);
}

TEST_F(Why, ReplayOfWhatIsNoRecordIsRefused) {
  expect_error(shell("$W replay mm.textproto --json"), "outcomes-invalid", 2);
}
}  // namespace
}  // namespace warploom::cli_test
