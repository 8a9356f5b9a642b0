// Every candidate of tests/verify/corpus through the real program: cheats and wrong kernels are
// refused by the code that their heads expect, controls are accepted. WARPLOOM_CORPUS_OUT names a
// file for results.json with these verdicts in it, which docs/verification.md shows.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "support/paths.h"
#include "support/sample.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const std::string kProgram = test::built_path("warploom");
const fs::path kFolder = test::source_path("tests/verify/corpus");
constexpr double kNoFaster = 0.2;  // of a control's time: what only a cheat that works undercuts

struct Candidate {
  fs::path path;
  std::map<std::string, std::string> head;  // "expect" → "candidate-wrong"

  std::string name() const { return fs::relative(path, kFolder).string(); }

  std::string said(const std::string& key) const { return head.contains(key) ? head.at(key) : ""; }
};

// The lines `// KEY: TEXT` that a file begins with; one that goes on is indented by two more.
std::map<std::string, std::string> head_of(const fs::path& path) {
  std::map<std::string, std::string> head;
  std::string key;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && line.starts_with("// ");) {
    const size_t colon = line.find(": ");
    if (line.starts_with("//   "))
      head[key] += line.substr(4);
    else if (colon != line.npos)
      head[key = line.substr(3, colon - 3)] = line.substr(colon + 2);
  }
  return head;
}

std::vector<Candidate> candidates(const std::string& ending) {
  std::vector<Candidate> all;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder))
    if (entry.path().extension() == ending) all.push_back({entry.path(), head_of(entry.path())});
  std::ranges::sort(all, {}, &Candidate::path);
  return all;
}

struct Judged {
  std::string code = "nothing";
  std::string by;
  std::string device;
  double us = 0;
  // What was accepted may keep something from call to call: the machine was busy, and its verdict
  // says that this is not promised.
  bool may_keep = false;
};

Judged judged(const Candidate& candidate, const std::string& target, const fs::path& cache) {
  const std::string problem =
      (kFolder / "problems" / candidate.said("problem")).string() + ".textproto";
  const auto ran = run_process(
      {"env", "XDG_CACHE_HOME=" + cache.string(), kProgram, "verify", candidate.path.string(),
       "--problem", problem, "--target", target, "--limit", "1s", "--json"},
      {.time = std::chrono::seconds(60)});
  const json out = ran ? json::parse(ran->out, nullptr, false) : json();
  if (!out.is_object()) return {.by = ran ? ran->err : "not started"};
  if (!out["error"].is_object()) {
    const double us = out["median_us"].is_number() ? out["median_us"].get<double>() : 0;
    Judged accepted{"accepted", "", out.value("device", ""), us};
    for (const std::string& words : out.value("not_promised", std::vector<std::string>()))
      accepted.may_keep |= words.starts_with("that it keeps nothing from call to call");
    return accepted;
  }
  std::string by = out["error"].value("message", "");
  std::string place = out["error"].value("place", "");
  if (const size_t at = place.find(" inputs, seed"); at != place.npos)
    by += " (" + place.substr(0, at) + " inputs)";
  return {out["error"].value("code", ""), by, ""};
}

// What each candidate got, one after the other, since clocks are compared: a third of a second
// each, most of it the compiler's.
std::vector<Judged> verdicts(const std::vector<Candidate>& all, const std::string& target) {
  const ScratchFolder cache("corpus-test");
  std::vector<Judged> found;
  for (const Candidate& one : all)
    found.push_back(judged(one, target, cache.path()));
  return found;
}

void renew(const std::vector<Candidate>& all, const std::vector<Judged>& found,
           const std::string& column) {
  const char* const out = std::getenv("WARPLOOM_CORPUS_OUT");
  if (!out) return;
  json results = json::parse(read_file(kFolder / "results.json").value_or("{}"), nullptr, false);
  json rows = json::object();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!found[i].device.empty()) results["devices"][column] = found[i].device;
    rows[all[i].name()] = {{"code", found[i].code}, {"by", found[i].by}};
  }
  results["verdicts"][column] = rows;
  EXPECT_TRUE(write_file(out, results.dump(1) + "\n"));
}

// A head may name several codes, "candidate-wrong or candidate-unstable": what chance decides.
bool is_among(const std::string& expected, const std::string& code) {
  constexpr std::string_view kOr = " or ";
  const std::string words = fmt::format("{}{}{}", kOr, expected, kOr);
  return words.find(fmt::format("{}{}{}", kOr, code, kOr)) != std::string::npos;
}

void expect_each_its_code(const std::vector<Candidate>& all, const std::vector<Judged>& found) {
  std::map<std::string, double> times;
  for (size_t i = 0; i < all.size(); ++i)
    times[all[i].name()] = found[i].us;
  int pending = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string control = all[i].said("no faster than");
    const std::string expected = all[i].said("expect");
    const bool right = is_among(expected, found[i].code) &&
                       (control.empty() || found[i].us > kNoFaster * times[control]);
    const bool undecided =
        !right && found[i].may_keep && is_among(expected, "candidate-keeps-state");
    const bool waits = undecided || all[i].head.contains("pending");
    if (undecided) std::cout << all[i].name() << ": the machine is too busy to tell\n";
    pending += waits;
    if (waits)
      std::cout << all[i].name()
                << (right ? ": pending, and right now" : ": pending, found " + found[i].code)
                << "\n";
    EXPECT_TRUE(right || waits) << all[i].name() << ": expected " << expected << ", found "
                                << found[i].code << " " << found[i].by << ", " << found[i].us
                                << " us beside the control's " << times[control];
  }
  std::cout << all.size() << " candidates, " << pending << " of them pending\n";
}

TEST(Corpus, EveryHeadSaysWhatItIs) {
  int wrong = 0;
  int controls = 0;
  for (const std::string ending : {".cpp", ".cu"})
    for (const Candidate& one : candidates(ending)) {
      EXPECT_FALSE(one.said("expect").empty() || one.said("problem").empty()) << one.name();
      EXPECT_EQ(
          one.head.contains("cheat") + one.head.contains("bug") + one.head.contains("control"), 1)
          << one.name();
      wrong += one.head.contains("bug");
      controls += one.head.contains("control");
    }
  EXPECT_GE(wrong, 12);
  EXPECT_GE(controls, 6);
}

// A part that the commit draws, with every kind and code among it; all where the table is made
// anew.
std::vector<Candidate> drawn_cpu_candidates() {
  constexpr double kShare = 0.2;
  std::vector<Candidate> all = candidates(".cpp");
  if (std::getenv("WARPLOOM_CORPUS_OUT")) return all;
  const auto labels_of = [](const Candidate& one) {
    const std::string kind = one.path.parent_path().filename().string();
    return std::set<std::string>{kind + one.said("expect")};
  };
  const size_t count = all.size();
  std::vector<Candidate> some = test::sampled("corpus", kShare, std::move(all), labels_of);
  test::note_sample("corpus", some.size(), count);
  return some;
}

TEST(Corpus, EveryCpuCandidateGetsItsCode) {
  const std::vector<Candidate> all = drawn_cpu_candidates();
  const std::vector<Judged> found = verdicts(all, "cpu");
  renew(all, found, "cpu");
  expect_each_its_code(all, found);
}

TEST(Corpus, EveryGpuCandidateGetsItsCode) {
  const std::vector<Candidate> all = candidates(".cu");
  if (!runtime::Executor::open(Engine::cuda))
    GTEST_SKIP() << all.size() << " candidates need a GPU";
  const std::vector<Judged> found = verdicts(all, "auto");
  renew(all, found, "gpu");
  expect_each_its_code(all, found);
}

TEST(Corpus, AKernelFileThatDoesNotFitItsProblemIsRefused) {
  const ScratchFolder scratch("corpus-test");
  const Candidate lost{scratch.path() / "lost.cpp", {{"problem", "relu"}}};
  ASSERT_TRUE(write_file(lost.path, "// warploom: kernel relu grid=41 args=x,z\n"));
  EXPECT_EQ(judged(lost, "cpu", scratch.path()).code, "kernel-invalid");
  EXPECT_EQ(judged({kFolder / "honest/relu.cu", {{"problem", "relu"}}}, "cpu", scratch.path()).code,
            "flags-contradict");
  const auto alone = run_process({kProgram, "verify", lost.path.string(), "--json"});
  ASSERT_TRUE(alone);
  EXPECT_NE(alone->out.find("\"usage\""), std::string::npos) << alone->out;
}

TEST(Corpus, TheTableIsOfTheseCandidates) {
  const auto text = read_file(kFolder / "results.json");
  ASSERT_TRUE(text);
  const json verdicts = json::parse(*text, nullptr, false).value("verdicts", json::object());
  for (const auto& [column, ending] : {std::pair("cpu", ".cpp"), {"gpu", ".cu"}}) {
    if (!verdicts.contains(column)) continue;  // not measured yet
    const json& rows = verdicts[column];
    for (const Candidate& one : candidates(ending)) {
      ASSERT_TRUE(rows.contains(one.name()))
          << one.name() << " is not in results.json; WARPLOOM_CORPUS_OUT writes it anew";
      EXPECT_TRUE(one.head.contains("pending") ||
                  is_among(one.said("expect"), rows[one.name()].value("code", "")))
          << one.name();
    }
  }
}
}  // namespace
}  // namespace warploom
