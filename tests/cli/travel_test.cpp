// `warploom archive --export` and `--import`, `train --from` an archive and `optimize --weights`:
// what one machine found begins another's searches and teaches its policy.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include "base/file.h"
#include "cli_fixture.h"
#include "search/policy/weights.h"

namespace warploom::cli_test {
namespace {
class TravelCli : public Cli {
 protected:
  void search(const std::string& expression, const std::string& archive,
              const std::string& flags = "--candidates 12") {
    const Ran ran = shell("rm -f m.onnx; $W new '" + expression +
                          "' --out m.onnx > /dev/null && "
                          "$W optimize m.onnx --target cpu --budget 20s --quiet --out b "
                          "--archive " +
                          archive + " " + flags + " --json");
    ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  }

  Ran exported() { return shell("$W archive --archive a.sqlite --export found.wlx --json"); }
};

TEST_F(TravelCli, WhatWasFoundHereIsForeignThere) {
  search("transpose(x[64,96])", "a.sqlite");
  ASSERT_EQ(exported().status, 0);
  const Ran in = shell("$W archive --archive b.sqlite --import found.wlx --json");
  ASSERT_EQ(in.status, 0) << in.text << in.err;
  EXPECT_EQ(in.out["problems"], 1);
  EXPECT_EQ(in.out["candidates"], 12);
  const Ran listed = shell("$W archive --archive b.sqlite --json");
  EXPECT_TRUE(listed.out["problems"].empty());
  ASSERT_EQ(listed.out["foreign"].size(), 1u);
  EXPECT_EQ(listed.out["foreign"][0]["from"], "found.wlx");
  EXPECT_GT(listed.out["foreign"][0]["best_us"], 0.0);
  EXPECT_NE(shell("$W archive --archive b.sqlite").text.find("found.wlx"), std::string::npos);
}

TEST_F(TravelCli, AForeignBestIsJudgedHereBeforeItCounts) {
  search("transpose(x[64,96])", "a.sqlite");
  ASSERT_EQ(exported().status, 0);
  ASSERT_EQ(shell("$W archive --archive b.sqlite --import found.wlx").status, 0);
  search("transpose(x[64,96])", "b.sqlite", "--candidates 5");
  const Ran listed = shell("$W archive --archive b.sqlite --json");
  const std::string key = listed.out["problems"][0]["key"];
  const Ran problem = shell("$W archive --archive b.sqlite --json --problem " + key);
  const json& near = problem.out["runs"][0]["near"];
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near[0]["from"], "found.wlx");
  bool is_judged = false;
  for (const json& one : problem.out["candidates"])
    is_judged = is_judged || one["schedule"] == near[0]["schedule"];
  EXPECT_TRUE(is_judged);
}

TEST_F(TravelCli, BrokenFilesAndContradictionsHaveTheirCodes) {
  search("transpose(x[64,96])", "a.sqlite");
  ASSERT_EQ(exported().status, 0);
  expect_error(exported(), "file-unwritable", 3);
  expect_error(shell("$W archive --archive b.sqlite --import none.wlx --json"), "file-missing", 2);
  expect_error(shell("$W archive --archive b.sqlite --import mm.textproto --json"),
               "archive-foreign", 2);
  expect_error(shell("head -c 200 found.wlx > cut.wlx; "
                     "$W archive --archive b.sqlite --import cut.wlx --json"),
               "archive-damaged", 2);
  expect_error(shell("$W archive --archive b.sqlite --import found.wlx --problem 3f --json"),
               "flags-contradict", 2);
  expect_error(shell("$W archive --archive none.sqlite --export x.wlx --json"), "file-missing", 2);
}

TEST_F(TravelCli, AnArchiveTrainsThePolicyThatASearchThenTakes) {
  search("transpose(x[64,96])", "a.sqlite", "--strategy tree --candidates 40");
  const Ran trained = shell("$W train --from a.sqlite --out w.json --rounds 1 --quiet --json");
  ASSERT_EQ(trained.status, 0) << trained.text << trained.err;
  EXPECT_EQ(trained.out["trained"]["problems"], 1);
  EXPECT_EQ(trained.out["trained"]["archive"]["problems_left_out"], 0);
  EXPECT_TRUE(search::read_weights(scratch.path() / "w.json"));
  search("transpose(x[80,96])", "a.sqlite",
         "--candidates 12 --strategy tree --policy learned --weights w.json");
}

TEST_F(TravelCli, WeightsOfNoPolicyOrBrokenOnesAreRefusedBeforeTheSearch) {
  const std::string line = "$W optimize mm.textproto --target cpu --json --weights ";
  expect_error(shell(line + "w.json"), "flags-contradict", 2);
  expect_error(shell(line + "w.json --policy learned"), "file-missing", 2);
  expect_error(shell("echo '{}' > w.json; " + line + "w.json --policy learned"), "weights-invalid",
               2);
}
}  // namespace
}  // namespace warploom::cli_test
