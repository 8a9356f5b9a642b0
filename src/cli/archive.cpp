#include "archive/archive.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"

namespace warploom::cli {
namespace {
using archive::Archive;
using nlohmann::json;

struct Flags {
  std::string problem;
  std::string archive;
};

Result<Answer> list_problems(Archive& from, const std::vector<archive::Problem>& problems) {
  json rows = json::array();
  for (const archive::Problem& problem : problems) {
    WARPLOOM_TRY(const auto candidates, from.candidates(problem.key));
    WARPLOOM_TRY(const auto best, from.best(problem.key));
    WARPLOOM_TRY(const auto runs, from.runs(problem.key));
    json row = problem;
    row.erase("text");
    row["candidates"] = candidates.size();
    row["best_us"] = nullptr;
    row["last_run"] = nullptr;
    if (best) row["best_us"] = best->median_us;
    if (!runs.empty()) row["last_run"] = runs.back().status;
    rows.push_back(std::move(row));
  }
  const json record = {{"problems", rows}};
  if (problems.empty()) return Answer{record, "the archive holds no problem yet\n"};
  return Answer{record, text_of("problems", record)};
}

Result<Answer> list_candidates(Archive& from, const archive::Problem& problem) {
  WARPLOOM_TRY(auto candidates, from.candidates(problem.key));
  WARPLOOM_TRY(const auto runs, from.runs(problem.key));
  const auto order = [](const archive::Candidate& one) {
    const bool untimed = one.stage == archive::Stage::refused || !one.median_us;
    return std::pair(untimed, one.median_us);
  };
  std::ranges::stable_sort(candidates, {}, order);
  WARPLOOM_TRY(const auto exchanges, from.exchanges(problem.key));
  const json record = {
      {"problem", problem}, {"candidates", candidates}, {"runs", runs}, {"exchanges", exchanges}};
  json shown = record;
  shown["has_exchanges"] = !exchanges.empty();
  for (json& exchange : shown["exchanges"]) {
    const json failure = exchange.value("failure", json());
    exchange["became"] =
        failure.is_object() ? failure.value("code", "") : exchange.value("made", "");
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    const archive::Candidate& candidate = candidates[i];
    json& one = shown["candidates"][i];
    one["machine"] = nullptr;
    if (candidate.machine.is_object()) one["machine"] = candidate.machine["text"];
    one["speedup"] = nullptr;
    if (candidate.speedup_low && candidate.speedup_high)
      one["speedup"] =
          fmt::format("{:.2f}x to {:.2f}x", *candidate.speedup_low, *candidate.speedup_high);
  }
  for (json& run : shown["runs"])
    if (run["reference"] == "") run["reference"] = nullptr;
  return Answer{record, text_of("candidates", shown)};
}

Result<Answer> list(const Flags& flags) {
  WARPLOOM_TRY(Archive from, archive_at(flags.archive));
  WARPLOOM_TRY(auto problems, from.problems());
  if (flags.problem.empty()) return list_problems(from, problems);
  const auto is_other = [&](const archive::Problem& one) {
    return !one.key.starts_with(flags.problem);
  };
  std::erase_if(problems, is_other);
  if (problems.size() == 1) return list_candidates(from, problems[0]);
  const std::string found =
      fmt::format("{} problems whose key begins with '{}'", problems.size(), flags.problem);
  return fail({ErrorCode::kUsage, "the key does not name one problem", "--problem",
               "the first digits of one key", found, "see the keys with `warploom archive`"});
}
}  // namespace

Result<Archive> archive_at(const std::string& file) {
  std::filesystem::path path(file);
  if (file.empty()) path = cache_folder() / "archive.sqlite";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return Archive::open(path);
  Error error{ErrorCode::kFileMissing, "there is no archive", path.string()};
  error.expected = "an archive that a search wrote";
  error.found = "no such file";
  error.remedy = "search first with `warploom optimize`, or name another with --archive";
  return fail(error);
}

Command archive_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "archive";
  command.help =
      "what is known from earlier searches: problems, and of one its candidates, best first, "
      "its runs, and what a model was asked";
  command.example = "warploom archive --problem 3f2a";
  command.flags = {
      {"--problem", &flags->problem, "a problem's key, or its first digits"},
      {"--archive", &flags->archive, "the archive file; default: in the cache folder"}};
  command.action = [flags](const Session&) { return list(*flags); };
  return command;
}
}  // namespace warploom::cli
