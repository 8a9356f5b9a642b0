#include "base/file.h"
#include "cli/command.h"
#include "cli/text.h"
namespace warploom::cli {
namespace {
struct Flags {
  std::string problem, archive;
};

// "candidate-wrong", or where there is none how far it came.
std::string fate_of(const archive::Candidate& one) {
  return one.error_code.empty() ? nlohmann::json(one.stage).get<std::string>() : one.error_code;
}

Result<Answer> list_problems(archive::Archive& from, const std::vector<archive::Problem>& problems) {
  nlohmann::json rows = nlohmann::json::array();
  std::vector<Cells> table = {{"KEY", "NAME", "TRACK", "TARGET", "DEVICE", "CANDIDATES", "BEST", "LAST RUN"}};
  for (const archive::Problem& problem : problems) {
    WARPLOOM_TRY(const auto candidates, from.candidates(problem.key));
    WARPLOOM_TRY(const auto best, from.best(problem.key));
    WARPLOOM_TRY(const auto runs, from.runs(problem.key));
    const double best_us = best ? best->median_us : 0;
    const std::string status = runs.empty() ? "none" : runs.back().status;
    table.push_back({problem.key.substr(0, 8), problem.name, problem.track, problem.target, problem.device,
                     std::to_string(candidates.size()), time_text(best_us), status});
    nlohmann::json row = problem;
    row.erase("text");
    row.update({{"candidates", candidates.size()}, {"best_us", best_us}, {"last_run", status}});
    rows.push_back(std::move(row));
  }
  return Answer{{{"problems", rows}}, problems.empty() ? "the archive holds no problem yet\n" : columns(table)};
}

Result<Answer> list_candidates(archive::Archive& from, const archive::Problem& problem) {
  WARPLOOM_TRY(auto candidates, from.candidates(problem.key));
  WARPLOOM_TRY(const auto runs, from.runs(problem.key));
  std::ranges::stable_sort(candidates, {}, [](const archive::Candidate& one) {
    return std::pair(one.stage == archive::Stage::refused || one.median_us <= 0, one.median_us);
  });
  std::string text = fmt::format("{} {} on {} ({}), {}\n{}\n", bold(problem.key), problem.name, problem.target, problem.device,
                                 problem.track, problem.text);
  std::vector<Cells> table = {{"TIME", "95 % OF MEDIANS", "ERROR", "VERDICT", "SCHEDULE"}};
  for (const archive::Candidate& one : candidates)
    table.push_back({time_text(one.median_us), one.median_us > 0 ? time_text(one.low_us) + " to " + time_text(one.high_us) : "-",
                     fmt::format("{:.2e}", one.error), fate_of(one), one.schedule});
  text += columns(table);
  table = {{"RUN", "CANDIDATES", "SECONDS", "SEED", "REFERENCE", "BEST"}};
  for (const archive::Run& run : runs)
    table.push_back({run.status, std::to_string(run.candidates), fmt::format("{:.1f}", run.seconds), std::to_string(run.seed),
                     fmt::format("{} {}", run.reference, time_text(run.reference_us)), run.best});
  return Answer{{{"problem", problem}, {"candidates", candidates}, {"runs", runs}}, text + "\n" + columns(table)};
}

Result<Answer> list(const Flags& flags) {
  WARPLOOM_TRY(archive::Archive from, archive_at(flags.archive));
  WARPLOOM_TRY(auto problems, from.problems());
  if (flags.problem.empty()) return list_problems(from, problems);
  std::erase_if(problems, [&](const archive::Problem& one) { return !one.key.starts_with(flags.problem); });
  if (problems.size() == 1) return list_candidates(from, problems[0]);
  return fail({ErrorCode::kUsage, "the key does not name one problem", "--problem", "the first digits of one key",
               fmt::format("{} problems whose key begins with '{}'", problems.size(), flags.problem),
               "see the keys with `warploom archive`"});
}
}  // namespace
Result<archive::Archive> archive_at(const std::string& file) {
  const std::filesystem::path path = file.empty() ? cache_folder() / "archive.sqlite" : std::filesystem::path(file);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return archive::Archive::open(path);
  return fail({ErrorCode::kFileMissing, "there is no archive", path.string(), "an archive that a search wrote", "no such file",
               "search first with `warploom optimize`, or name another with --archive"});
}

Command archive_command() {
  const auto flags = std::make_shared<Flags>();
  return {"archive",
          "what is known from earlier searches: problems, and of one its candidates, best first, and its runs",
          {{"--problem", &flags->problem, "a problem's key, or its first digits"},
           {"--archive", &flags->archive, "the archive file; default: in the cache folder"}},
          [flags](const Session&) { return list(*flags); }};
}
}  // namespace warploom::cli
