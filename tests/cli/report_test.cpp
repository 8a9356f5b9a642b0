// `warploom report` and `warploom archive`: pages and tables of what searches did.
#include <filesystem>
#include <regex>
#include <string>
#include "base/file.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "report_fixture.h"
#include "support/paths.h"

namespace warploom {
namespace {
TEST_F(Report, ASearchBecomesOnePageThatReadsWithoutScripts) {
  search();
  const std::string text = page();
  for (const std::string tag : {"details", "table", "section", "figure", "svg", "pre"})
    EXPECT_EQ(count(text, "<" + tag + " ") + count(text, "<" + tag + ">"),
              count(text, "</" + tag + ">"))
        << tag;
  for (const char* part :
       {"class=\"search\"", "class=\"roofline\"", "tablebox candidates", "tablebox errors",
        "tablebox refusals", "tablebox runs", "tablebox regions", "searched by",
        "details class=\"kernel\"", "program "})
    EXPECT_NE(text.find(part), text.npos) << part;
  EXPECT_EQ(text.find("class=\"note\">The "), text.npos) << "something is missing";
  const json data = data_of(text);
  ASSERT_TRUE(data.is_object());
  EXPECT_GE(data["problems"][0]["candidates"].size(), 7u);
  EXPECT_NE(data["regions"][0]["bound"], "") << "what bounds it";
}

TEST_F(Report, NothingOnThePageIsFetched) {
  fill(archive());
  EXPECT_EQ(run("report --archive a.sqlite --json")["problems"], 2) << err;
  const std::string text = page();
  EXPECT_FALSE(std::regex_search(text, std::regex("(src|href|action|data)=[\"'][^#\"']")));
  for (const char* asks : {"@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_EQ(text.find(asks), text.npos) << asks;
  EXPECT_NE(text.find("default-src 'none'"), text.npos);  // and the browser would refuse it
}

TEST_F(Report, TextOfCandidatesIsNoMarkup) {
  fill(archive());
  EXPECT_EQ(run("report --archive a.sqlite --json")["problems"], 2) << err;
  const json data = data_of(page());
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["problems"][0]["candidates"][2]["verdict"]["refused"]["message"], kHostile);
  EXPECT_EQ(data["problems"][0]["problem"]["text"], kHostile);
  EXPECT_EQ(count(page(), "</script>"), 2);
  EXPECT_EQ(count(page(), "<!--"), 0);
}

TEST_F(Report, LayoutsOfAGpuPlanAreDrawnWithoutAGpu) {
  const std::string show = "show " + test::source_path("examples/matmul_bf16_4096.textproto") +
                           " --json --target sm_80 --what source";
  const json shown = run(show);
  ASSERT_TRUE(shown.contains("launch_list")) << err;
  const auto schedule = kernels::config_from_text(shown["schedule"].get<std::string>());
  ASSERT_TRUE(schedule);
  const json region = {{"name", "MatMul"},
                       {"times", 1},
                       {"schedule", kernels::to_json(*schedule)},
                       {"best_us", 500}};
  json plan = {{"launch_list", shown["launch_list"]}, {"track", "bf16"}, {"regions", {region}}};
  plan["model"] = *read_file(test::source_path("examples/matmul_bf16_4096.textproto"));
  write("plan.json", plan.dump());
  EXPECT_EQ(run("report plan.json --json")["problems"], 0) << err;
  const std::string text = page();
  EXPECT_NE(text.find("tablebox instructions"), text.npos);
  EXPECT_NE(text.find("<td>ldmatrix"), text.npos);
  EXPECT_GT(count(text, "class=\"drawing\""), 2);
  EXPECT_NE(text.find("history of the search is missing"), text.npos);
}

TEST_F(Report, WhatAPlanLacksIsSaid) {
  write("plan.json",
        R"({"launch_list": {"arch": "sm_90a"}, "track": "fp32", "regions": [{"name": "x"}, 7]})");
  fill(archive());
  EXPECT_EQ(run("report plan.json --archive a.sqlite --json")["problems"], 0) << err;
  EXPECT_NE(page().find("does not hold its model"), std::string::npos);
  EXPECT_NE(page().find("does not say which problems"), std::string::npos);
  const json schedule = {{"family", "direct"}, {"fields", {{"x", 0}}}};
  json plan = {{"launch_list", {{"arch", "x86-64-v4"}, {"kernels", {7, {{"name", 1}}}}}},
               {"track", "fp32"}};
  plan["model"] = *read_file(kExample);
  for (const json& region :
       {json(7), json({{"schedule", 1}}),
        json({{"name", "MatMul"}, {"schedule", schedule}, {"best_us", "x"}})}) {
    plan["regions"] = json::array({region});
    write("plan.json", plan.dump());
    EXPECT_EQ(run("report plan.json --archive a.sqlite --json")["problems"], 0) << err << out;
  }
  EXPECT_NE(page().find("layouts of MatMul are missing"), std::string::npos);
  plan["regions"] = json::array({{{"name", "Softmax"}, {"schedule", schedule}}});
  write("plan.json", plan.dump());
  EXPECT_EQ(run("report plan.json --archive a.sqlite --json")["problems"], 0) << err << out;
  EXPECT_NE(page().find("has no figures of MatMul"), std::string::npos);
}

TEST_F(Report, APlanNestedDeeplyIsRefused) {
  const int kDeep = 100'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  write("plan.json", R"({"launch_list": {"arch": "x86-64-v4", "kernels": )" + deep +
                         R"(}, "track": "fp32", "seed": )" + deep + R"(, "device": )" + deep +
                         R"(, "regions": [)" + deep + "]}");
  fill(archive());
  EXPECT_EQ(run("report plan.json --archive a.sqlite --json")["error"]["code"], "plan-invalid")
      << err << out;
}

TEST_F(Report, ABundleAndAnArchiveOfAnEarlierVersionAreAPage) {
  const fs::path kept = test::source_path("tests/fixtures/829200f");
  fs::copy_file(kept / "archive.sqlite", scratch.path() / "old.sqlite");
  for (const auto& bundle : fs::directory_iterator(kept / "bundles")) {
    const json made = run("report " + bundle.path().string() + " --archive old.sqlite --json");
    EXPECT_GT(made.value("problems", 0), 0) << bundle.path() << err << out;
    const std::string text = page();
    const std::string shown = text.substr(0, text.find("id=\"data\""));
    EXPECT_FALSE(
        std::regex_search(shown, std::regex(">-1<|>none<|(1(0[1-9]|[1-9]\\d)|[2-9]\\d\\d) %")));
    EXPECT_NE(shown.find("class=\"so-far\""), shown.npos);
  }
}

TEST_F(Report, AnotherFileIsNotWrittenOver) {
  fill(archive());
  write("mine.html", "<p>what I wrote</p>");
  EXPECT_EQ(code_of("report --archive a.sqlite --out mine.html"), "file-unwritable");
  EXPECT_EQ(page("mine.html"), "<p>what I wrote</p>");
  EXPECT_EQ(run("report --archive a.sqlite --json")["problems"], 2) << err;
  EXPECT_EQ(run("report --archive a.sqlite --json")["problems"], 2) << "a report is written anew";
}

TEST_F(Report, WhatIsNotKnownIsADashAndNoFigure) {
  fill(archive());
  ASSERT_EQ(run("report --archive a.sqlite --json")["problems"], 2) << err;
  const std::string text = page();
  const std::string shown = text.substr(0, text.find("id=\"data\""));
  EXPECT_FALSE(std::regex_search(shown, std::regex(">-1<|>0\\.0<|>inf<|>nan<|>none<")));
  EXPECT_NE(shown.find("title=\"it was refused before it was timed\">–</td>"), shown.npos);
  const json refused = data_of(text)["problems"][0]["candidates"][2];
  EXPECT_TRUE(refused["median_us"].is_null()) << refused;
}

TEST_F(Report, AnArchiveWithoutProblemsIsAPageThatSaysSo) {
  archive();
  EXPECT_EQ(run("report --archive a.sqlite --json")["problems"], 0) << err;
  EXPECT_NE(page().find("no problem yet"), std::string::npos);
}

TEST_F(Report, FilesThatCannotBeReadAreNamed) {
  write("not.sqlite", "a text that is no database at all, however long it may be made to look");
  write("plan.json", "[]");
  fill(archive());
  for (const std::string command : {"report", "archive"}) {
    EXPECT_EQ(code_of(command + " --archive not.sqlite"), "archive-foreign");
    EXPECT_EQ(code_of(command + " --archive none.sqlite"), "file-missing");
    EXPECT_EQ(code_of(command), "file-missing");
  }
  EXPECT_FALSE(fs::exists(scratch.path() / "none.sqlite"));
  EXPECT_EQ(code_of("report plan.json"), "plan-invalid");
  EXPECT_EQ(code_of("report nowhere"), "file-missing");
  EXPECT_EQ(code_of("report --archive a.sqlite --out /proc/x/y.html"), "file-unwritable");
  std::string bytes = *read_file(scratch.path() / "a.sqlite");
  bytes.resize(50);
  write("half.sqlite", bytes);
  EXPECT_EQ(code_of("report --archive half.sqlite"), "archive-damaged");
}

TEST_F(Report, ArchiveListsProblemsThenOnesCandidatesBestFirst) {
  fill(archive());
  const json all = run("archive --archive a.sqlite --json");
  ASSERT_EQ(all["problems"].size(), 2u) << err;
  EXPECT_EQ(all["problems"][0]["candidates"], 3);
  EXPECT_EQ(all["problems"][0]["best_us"], 10);
  EXPECT_EQ(all["problems"][0]["last_run"], "running");
  const json one = run("archive --archive a.sqlite --problem 00 --json");
  ASSERT_EQ(one["candidates"].size(), 3u) << err;
  EXPECT_EQ(one["candidates"][0]["schedule"], "direct rows=2");
  EXPECT_EQ(one["candidates"][2]["error_code"], "candidate-wrong");
  EXPECT_EQ(one["runs"][0]["reference"], "oneDNN");
  run("archive --archive a.sqlite");
  EXPECT_NE(out.find("KEY"), out.npos) << out;
}

TEST_F(Report, AKeyThatNamesNoneOrSeveralProblemsIsAUsageError) {
  fill(archive());
  EXPECT_EQ(code_of("archive --archive a.sqlite --problem 0"), "usage");
  EXPECT_EQ(code_of("archive --archive a.sqlite --problem ff"), "usage");
}
}  // namespace
}  // namespace warploom
