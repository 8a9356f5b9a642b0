// `warploom record` and `warploom train`: outcomes in, weights out, errors with their codes.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "base/file.h"
#include "cli_fixture.h"
#include "search/policy/weights.h"

namespace warploom::cli_test {
namespace {
class Train : public Cli {
 protected:
  // Outcomes of a transposition, which has dozens of plans that compile in no time.
  void record() {
    const Ran ran = shell(
        "$W new 'transpose(x[64,96])' --out t.onnx > /dev/null && "
        "$W record t.onnx --into o.gz --target cpu --budget 60s --plans 6 --closed --json");
    ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
    ASSERT_EQ(ran.out["problems"][0]["known"], ran.out["problems"][0]["plans"]);
  }
};

TEST_F(Train, RecordedOutcomesBecomeWeights) {
  record();
  const Ran ran =
      shell("$W train --from o.gz --out w.json --curve c.json --rounds 2 --seeds 2 --quiet --json");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  EXPECT_EQ(ran.out["trained"]["problems"], 1);
  EXPECT_TRUE(search::read_weights(scratch.path() / "w.json"));
  std::vector<std::string> policies;
  for (const json& row : ran.out["summary"])
    policies.push_back(row["policy"]);
  const std::vector<std::string> expected = {"uniform", "analytic", "shipped", "learned",
                                             "learned_filter"};
  EXPECT_TRUE(policies.empty() || policies == expected) << ran.text;
  const auto curve = read_file(scratch.path() / "c.json");
  ASSERT_TRUE(curve);
  EXPECT_EQ(json::parse(*curve)["curve"].back()["part"], "ppo");
}

TEST_F(Train, ProgressGoesToStandardErrorAlone) {
  record();
  const Ran ran = shell("$W train --from o.gz --rounds 1 --seeds 1 --json");
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(ran.out.is_object()) << ran.text;
  EXPECT_NE(ran.err.find("imitation"), std::string::npos);
}

TEST_F(Train, AMissingFileIsSaidSo) {
  expect_error(shell("$W train --from nowhere.gz --json"), "file-missing", 2);
}

TEST_F(Train, AFileThatIsNoneOfOutcomesIsRefused) {
  expect_error(shell("$W train --from mm.textproto --json"), "outcomes-invalid", 2);
}

TEST_F(Train, AFileThatIsCutOffIsRefused) {
  record();
  expect_error(shell("head -c 300 o.gz > cut.gz; $W train --from cut.gz --json"),
               "outcomes-invalid", 2);
}

TEST_F(Train, OutcomesWithNothingMeasuredAreRefused) {
  const Ran drawn = shell(
      "$W new 'transpose(x[64,96])' --out t.onnx > /dev/null && "
      "$W record t.onnx --into o.gz --target cpu --phase propose --closed --plans 6 --json");
  ASSERT_EQ(drawn.status, 0) << drawn.text << drawn.err;
  expect_error(shell("$W train --from o.gz --quiet --json"), "outcomes-invalid", 2);
}

TEST_F(Train, WeightsThatAreNoneAreRefused) {
  record();
  expect_error(shell("echo '{}' > w.json; $W train --from o.gz --weights w.json --json"),
               "weights-invalid", 2);
}

TEST_F(Train, AProblemIsRecordedOnce) {
  record();
  expect_error(shell("$W record t.onnx --into o.gz --phase propose --json"), "outcomes-invalid", 2);
}
}  // namespace
}  // namespace warploom::cli_test
