// `warploom report` and `warploom archive`: pages and tables of what searches did.
#include <gtest/gtest.h>
#include <filesystem>
#include <regex>
#include "archive/archive.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/command.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const std::string kExample = WARPLOOM_SOURCE_DIR "/examples/matmul_small.textproto";
const std::string kHostile = "a < b && \"c\" </script><!--<script> é";

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

// What the page gives its script.
json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
}

class Report : public testing::Test {
 protected:
  ScratchFolder scratch{"report-test"};
  std::string err;

  json run(const std::string& command) {
    const std::string line = "export XDG_CACHE_HOME='" + scratch.path().string() + "/cache'; cd '" +
                             scratch.path().string() + "'; " WARPLOOM_BINARY_DIR "/warploom " +
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
    const json found =
        run("optimize " + kExample +
            " --json --target cpu --candidates 6 --budget 60s --out made --archive a.sqlite");
    ASSERT_TRUE(found.contains("regions")) << err;
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
  EXPECT_GT(data["regions"][0]["part"].get<double>(), 0);
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

// Clicks through the page as it stands and writes what came of it into the document.
constexpr std::string_view kClicks = R"(<script>
  const said = {}, one = what => document.querySelector(what), click = what => (typeof what === 'string' ? one(what) : what)
    .dispatchEvent(new MouseEvent('click', { bubbles: true }));
  const column = n => [...document.querySelectorAll('.candidates tbody tr')].map(row => row.cells[n].textContent);
  click('.candidates thead th:nth-child(4) button');
  const times = column(3).filter(text => text !== '0' && text !== '–').map(Number);
  said.sorted = times.length > 1 && times.every((value, i) => i === 0 || times[i - 1] <= value);
  said.aria = one('.candidates th[aria-sort]')?.getAttribute('aria-sort') ?? '';
  one('details.kernel').open = false;
  click('details.kernel summary');
  said.kernel = one('details.kernel').open && one('details.kernel pre').textContent.length > 100;
  click('.refusals tbody button');
  said.filtered = [...document.querySelectorAll('.candidates tbody tr')].filter(row => !row.hidden).length;
  click('figure.search .mark.promoted');
  said.panel = !one('#panel').hidden && one('#panel').textContent.includes('median');
  one('#panel').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  said.closed = one('#panel').hidden;
  const press = (what, key) => what.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  press(one('figure.search .mark[tabindex="0"]'), 'ArrowRight');
  press(document.activeElement, 'Enter');
  said.keyboard = !one('#panel').hidden && document.querySelectorAll('figure.search .mark[tabindex="0"]').length === 1;
  click('.candidates tbody tr.refused');
  said.refusal = one('#panel').textContent.includes('</' + 'script>');
  one('figure.search .mark').dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: 50, clientY: 50 }));
  said.tip = one('#tip').textContent;
  said.lineage = document.querySelectorAll('figure.lineage .node').length;
  said.roof = document.querySelectorAll('figure.roofline .roof').length;
  document.documentElement.dataset.said = encodeURIComponent(JSON.stringify(said));
</script></body>)";

TEST_F(Report, InABrowserItSortsFiltersAndShowsCandidates) {
  const auto chromium = find_program("chromium");
  if (chromium.empty()) GTEST_SKIP() << "chromium is not installed";
  search();
  std::string text = page();
  text.replace(text.rfind("</body>"), 7, kClicks);
  write("clicked.html", text);
  const auto ran = run_process(
      {chromium.string(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
       "--user-data-dir=" + (scratch.path() / "profile").string(), "--dump-dom",
       "file://" + (scratch.path() / "clicked.html").string()},
      {.time = std::chrono::seconds(100), .output_bytes = 16 << 20});
  ASSERT_TRUE(ran && ran->succeeded()) << ran->err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(ran->out, match, std::regex("data-said=\"([^\"]*)\"")))
      << ran->err << "a script of the page failed";
  std::string decoded;
  const std::string said = match[1];
  for (std::size_t i = 0; i < said.size(); ++i) {
    decoded +=
        said[i] == '%' ? static_cast<char>(std::stoi(said.substr(i + 1, 2), nullptr, 16)) : said[i];
    if (said[i] == '%') i += 2;
  }
  const json all = json::parse(decoded);
  for (const char* key : {"sorted", "kernel", "panel", "closed", "refusal", "keyboard"})
    EXPECT_EQ(all[key], true) << key << all.dump(1);
  EXPECT_EQ(all["aria"], "ascending");
  EXPECT_EQ(all["filtered"], 1);
  EXPECT_NE(all["tip"].get<std::string>().find("µs"), std::string::npos) << all["tip"];
  EXPECT_GE(all["lineage"], 2);
  EXPECT_EQ(all["roof"], 1);
}

TEST_F(Report, LayoutsOfAGpuPlanAreDrawnWithoutAGpu) {
  const std::string show = "show " +
                           std::string(WARPLOOM_SOURCE_DIR "/examples/matmul_bf16_4096.textproto") +
                           " --json --target sm_80 --what source";
  const json shown = run(show);
  ASSERT_TRUE(shown.contains("launch_list")) << err;
  const auto schedule = cli::parse_schedule(shown["schedule"].get<std::string>());
  ASSERT_TRUE(schedule);
  const json region = {{"name", "MatMul"},
                       {"times", 1},
                       {"schedule", kernels::to_json(*schedule)},
                       {"best_us", 500}};
  json plan = {{"launch_list", shown["launch_list"]}, {"track", "bf16"}, {"regions", {region}}};
  plan["model"] = *read_file(WARPLOOM_SOURCE_DIR "/examples/matmul_bf16_4096.textproto");
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
