// Files that earlier versions wrote are still read: tests/fixtures/README.md says which.
#include <gtest/gtest.h>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "kernels/config/reader.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kFirst = test::source_path("tests/fixtures/829200f");

class Fixtures : public testing::Test {
 protected:
  ScratchFolder scratch{"fixtures-test"};

  // What `warploom ARGUMENTS --json` says, in a copy of the fixtures that it may write beside.
  json warploom(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::built_path("warploom"));
    arguments.push_back("--json");
    const auto result = run_process(arguments, {.time = std::chrono::seconds(200)});
    EXPECT_TRUE(result);
    return json::parse(result->out, nullptr, false);
  }

  fs::path copy_of(const fs::path& fixture) {
    const fs::path copy = scratch.path() / fixture.filename();
    fs::copy(kFirst / fixture, copy, fs::copy_options::recursive);
    return copy;
  }
};

TEST_F(Fixtures, AnEarlierArchiveKeepsItsProblemsAndCandidates) {
  const fs::path archive = copy_of("archive.sqlite");
  const json listed = warploom({"archive", "--archive", archive.string()});
  ASSERT_TRUE(listed.contains("problems")) << listed;
  ASSERT_EQ(listed["problems"].size(), 4u);
  for (const json& problem : listed["problems"]) {
    EXPECT_GT(problem["candidates"].get<int>(), 0) << problem;
    EXPECT_GT(problem["best_us"].get<double>(), 0) << problem;
    const std::string key = problem["key"];
    const json one = warploom({"archive", "--archive", archive.string(), "--problem", key});
    EXPECT_EQ(one["candidates"].size(), problem["candidates"].get<size_t>());
    EXPECT_FALSE(one["runs"].empty());
  }
}

TEST_F(Fixtures, EarlierBundlesAreJudgedWhereTheirMachineFits) {
  for (const char* name : {"conv_small", "softmax_small", "two_regions"}) {
    const fs::path bundle = copy_of(fs::path("bundles") / name);
    const json judged = warploom({"verify", (bundle / "plan.json").string()});
    const std::string code = judged.contains("error") && judged["error"].is_object()
                                 ? judged["error"].value("code", "")
                                 : "";
    if (code == "wrong-machine") GTEST_SKIP() << "made for a CPU with AVX-512";
    EXPECT_TRUE(judged.value("accepted", false)) << name << ": " << judged;
  }
}

TEST_F(Fixtures, ReportsAreMadeOfEarlierBundles) {
  for (const char* name : {"conv_small", "softmax_small", "two_regions"}) {
    const fs::path page = scratch.path() / (std::string(name) + ".html");
    const json said = warploom({"report", (kFirst / "bundles" / name).string(), "--archive",
                                copy_of("archive.sqlite").string(), "--out", page.string()});
    EXPECT_TRUE(fs::exists(page)) << said;
    fs::remove(scratch.path() / "archive.sqlite");
  }
}

TEST_F(Fixtures, PlansOfEveryFamilyAreRead) {
  std::set<std::string> families;
  for (const auto& file : fs::directory_iterator(kFirst / "plans")) {
    const auto text = read_file(file.path());
    ASSERT_TRUE(text) << describe(text.error());
    const json plan = json::parse(*text);
    const auto schedule = kernels::config_from_text(plan["schedule"]);
    ASSERT_TRUE(schedule) << file.path() << describe(schedule.error());
    families.insert(schedule->family());
    const auto list = launch_list_from_json(plan["plan"]);
    ASSERT_TRUE(list) << file.path() << describe(list.error());
    EXPECT_FALSE(list->kernels.empty());
  }
  const std::set<std::string> every = {"direct",      "im2win",       "matmul_mma",
                                       "matmul_simt", "matmul_wgmma", "rowwise"};
  EXPECT_EQ(families, every);
}
}  // namespace
}  // namespace warploom
