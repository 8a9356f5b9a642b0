// What the tests of `warploom report` share: a folder with an archive, commands run in it.
#pragma once
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include "archive/archive.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/command.h"
#include "shared_search.h"
#include "support/paths.h"

namespace warploom {
namespace fs = std::filesystem;
using nlohmann::json;

inline const std::string kExample = test::source_path("examples/matmul_small.textproto");
inline const std::string kHostile = "a < b && \"c\" </script><!--<script> é";

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size())
    ++found;
  return found;
}

// What the page gives its script.
inline json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
}

class Report : public testing::Test {
 protected:
  ScratchFolder scratch{"report-test"};
  std::string err;

  json run(const std::string& command) {
    const std::string line = "export XDG_CACHE_HOME='" + scratch.path().string() + "/cache'; cd '" +
                             scratch.path().string() + "'; " + test::built_path("warploom") + " " +
                             command;
    const auto ran = run_process({"bash", "-c", line},
                                 {.time = std::chrono::seconds(200), .output_bytes = 16 << 20});
    EXPECT_TRUE(ran && ran->signal == 0 && !ran->timed_out) << command;
    err = ran->err;
    out = ran->out;
    return json::parse(ran->out, nullptr, false);
  }

  std::string code_of(const std::string& command) {
    const json answer = run(command + " --json");
    return answer.is_object() && answer.contains("error") ? answer["error"].value("code", "") : "";
  }

  std::string page(const std::string& name = "report.html") {
    auto text = read_file(scratch.path() / name);
    EXPECT_TRUE(text);
    return text.value_or("");
  }

  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(scratch.path() / name, text));
  }

  archive::Archive archive(const std::string& name = "a.sqlite") {
    return *archive::Archive::open(scratch.path() / name);
  }

  // A child of `parent` that was refused.
  static archive::Candidate refusal(const std::string& problem, const std::string& schedule,
                                    const std::string& parent) {
    return {.problem = problem,
            .schedule = schedule,
            .fields = {{"family", "direct"}, {"fields", {{"rows", 3}}}},
            .family = "direct",
            .parents = {parent},
            .error_code = "candidate-wrong",
            .verdict = {{"refused",
                         {{"code", "candidate-wrong"}, {"message", kHostile}, {"found", "0.5"}}}}};
  }

  static archive::Candidate good(const std::string& problem, const std::string& schedule,
                                 double us) {
    return {.problem = problem,
            .schedule = schedule,
            .fields = {{"family", "direct"}, {"fields", {{"rows", 1}}}},
            .family = "direct",
            .stage = archive::Stage::promoted,
            .median_us = us,
            .low_us = us * 0.9,
            .high_us = us * 1.1};
  }

  void fill(archive::Archive to) {
    ASSERT_TRUE(to.add_problem({"00aa", "first", "fp32", "x86-64-v4", "a CPU", kHostile}));
    ASSERT_TRUE(to.add_problem({"01bb", "second", "fp32", "x86-64-v4", "a CPU", ""}));
    ASSERT_TRUE(to.record(good("00aa", "direct rows=1", 20)));
    ASSERT_TRUE(to.record(good("00aa", "direct rows=2", 10)));
    ASSERT_TRUE(to.record(refusal("00aa", "direct rows=3", "direct rows=2")));
    ASSERT_TRUE(to.begin_run({.problem = "00aa", .reference = "oneDNN", .reference_us = 15}));
  }

  // A bundle of six candidates, and refused ones beside them in its archive.
  void search() {
    const auto shared = shared_search("report", kExample, "--candidates 6 --budget 60s");
    ASSERT_TRUE(shared) << describe(shared.error());
    ASSERT_TRUE(copy_of_search(*shared, "b", scratch.path() / "made"));
    ASSERT_TRUE(copy_of_search(*shared, "a.sqlite", scratch.path() / "a.sqlite"));
    const auto text = read_file(*shared / "outcome.json");
    const json found = json::parse(text.value_or(""), nullptr, false);
    ASSERT_TRUE(found.is_object() && found.contains("regions"));
    const std::string key = found["regions"][0]["key"];
    archive::Archive known = archive();
    const auto best = known.best(key);
    ASSERT_TRUE(best && *best) << "the plan's key is no problem of the archive";
    ASSERT_TRUE(known.record(refusal(key, "direct rows=3", (*best)->schedule)));
    const json made = run("report made --archive a.sqlite --json");
    EXPECT_EQ(made, json({{"file", "report.html"}, {"problems", 1}})) << err;
  }

  std::string out;
};
}  // namespace warploom
