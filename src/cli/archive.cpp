#include "archive/archive.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "archive/travel.h"
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
  std::string export_to;
  std::string import_from;
};

// A problem's record without what other programs than this one read of it.
json shown_problem(const archive::Problem& problem) {
  json out = problem;
  for (const char* key : {"features", "graph", "capabilities"})
    out.erase(key);
  return out;
}

// What other archives brought, a row a problem.
Result<json> foreign_rows(Archive& from) {
  json rows = json::array();
  WARPLOOM_TRY(const auto problems, from.foreign_problems());
  for (const auto& [file, problem] : problems) {
    WARPLOOM_TRY(const auto candidates, from.foreign_candidates(problem.key));
    json row = shown_problem(problem);
    row.erase("text");
    row["from"] = file;
    row["candidates"] = candidates.size();
    row["best_us"] = nullptr;
    std::optional<double> best;
    for (const auto& one : candidates) {
      const bool is_refused = one.record.stage == archive::Stage::refused;
      const auto us = one.record.median_us;
      if (!is_refused && us && (!best || *us < *best)) best = us;
    }
    if (best) row["best_us"] = *best;
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<Answer> list_problems(Archive& from, const std::vector<archive::Problem>& problems) {
  json rows = json::array();
  for (const archive::Problem& problem : problems) {
    WARPLOOM_TRY(const auto candidates, from.candidates(problem.key));
    WARPLOOM_TRY(const auto best, from.best(problem.key));
    WARPLOOM_TRY(const auto runs, from.runs(problem.key));
    json row = shown_problem(problem);
    row.erase("text");
    row["candidates"] = candidates.size();
    row["best_us"] = nullptr;
    row["last_run"] = nullptr;
    if (best) row["best_us"] = best->median_us;
    if (!runs.empty()) row["last_run"] = runs.back().status;
    rows.push_back(std::move(row));
  }
  WARPLOOM_TRY(json foreign, foreign_rows(from));
  json record = {{"problems", rows}, {"foreign", std::move(foreign)}};
  const bool is_empty = problems.empty() && record["foreign"].empty();
  if (is_empty) return Answer{record, "the archive holds no problem yet\n"};
  json shown = record;
  shown["has_problems"] = !problems.empty();
  shown["has_foreign"] = !record["foreign"].empty();
  return Answer{record, text_of("problems", shown)};
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
  const json record = {{"problem", shown_problem(problem)},
                       {"candidates", candidates},
                       {"runs", runs},
                       {"exchanges", exchanges}};
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

json counts_of(const archive::Travelled& count) {
  return {{"problems", count.problems}, {"candidates", count.candidates}, {"runs", count.runs}};
}

Result<Answer> export_to(Archive& from, const Flags& flags) {
  WARPLOOM_TRY(const auto count, archive::export_archive(from, flags.export_to, flags.problem));
  json record = counts_of(count);
  record["exported_to"] = flags.export_to;
  return Answer{record, text_of("travelled", record)};
}

// An archive where there is none yet is made.
Result<Answer> import_from(const Flags& flags) {
  std::filesystem::path path(flags.archive);
  if (path.empty()) path = cache_folder() / "archive.sqlite";
  WARPLOOM_TRY(Archive into, Archive::open(path));
  WARPLOOM_TRY(const auto count, archive::import_archive(into, flags.import_from));
  json record = counts_of(count);
  record["imported_from"] = flags.import_from;
  return Answer{record, text_of("travelled", record)};
}

Status check_flags(const Flags& flags) {
  const bool is_import = !flags.import_from.empty();
  const bool is_other = !flags.export_to.empty() || !flags.problem.empty();
  if (!is_import || !is_other) return ok();
  Error error{ErrorCode::kFlagsContradict, "a file is imported whole, and alone"};
  error.place = "--import";
  error.expected = "--import without --export and --problem";
  error.found = "one of them";
  error.remedy = "run the command twice";
  return fail(error);
}

Result<Answer> list(const Flags& flags) {
  WARPLOOM_CHECK(check_flags(flags));
  if (!flags.import_from.empty()) return import_from(flags);
  WARPLOOM_TRY(Archive from, archive_at(flags.archive));
  if (!flags.export_to.empty()) return export_to(from, flags);
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
      {"--export", &flags->export_to,
       "write what was judged here, or of --problem, to a new file for another machine's archive"},
      {"--import", &flags->import_from,
       "take such a file in: searches begin with its bests and judge them anew, none is believed"},
      {"--archive", &flags->archive, "the archive file; default: in the cache folder"}};
  command.action = [flags](const Session&) { return list(*flags); };
  return command;
}
}  // namespace warploom::cli
