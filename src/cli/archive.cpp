#include "base/file.h"
#include "cli/command.h"

namespace warploom::cli {
namespace {
struct Flags {
  std::string problem;
  std::string archive;
};

Result<Answer> list_problems(archive::Archive& from,
                             const std::vector<archive::Problem>& problems) {
  nlohmann::json rows = nlohmann::json::array();
  for (const archive::Problem& problem : problems) {
    WARPLOOM_TRY(const auto candidates, from.candidates(problem.key));
    WARPLOOM_TRY(const auto best, from.best(problem.key));
    WARPLOOM_TRY(const auto runs, from.runs(problem.key));
    nlohmann::json row = problem;
    row.erase("text");
    row.update(
        {{"candidates", candidates.size()},
         {"best_us", best ? nlohmann::json(best->median_us) : nlohmann::json()},
         {"last_run", runs.empty() ? nlohmann::json() : nlohmann::json(runs.back().status)}});
    rows.push_back(std::move(row));
  }
  const nlohmann::json json = {{"problems", rows}};
  return Answer{
      json, problems.empty() ? "the archive holds no problem yet\n" : text_of("problems", json)};
}

Result<Answer> list_candidates(archive::Archive& from, const archive::Problem& problem) {
  WARPLOOM_TRY(auto candidates, from.candidates(problem.key));
  WARPLOOM_TRY(const auto runs, from.runs(problem.key));
  std::ranges::stable_sort(candidates, {}, [](const archive::Candidate& one) {
    return std::pair(one.stage == archive::Stage::refused || !one.median_us, one.median_us);
  });
  const nlohmann::json json = {{"problem", problem}, {"candidates", candidates}, {"runs", runs}};
  nlohmann::json shown = json;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const archive::Candidate& candidate = candidates[i];
    nlohmann::json& one = shown["candidates"][i];
    one["machine"] = candidate.machine.is_object() ? candidate.machine["text"] : nlohmann::json();
    one["speedup"] = nullptr;
    if (candidate.speedup_low && candidate.speedup_high)
      one["speedup"] =
          fmt::format("{:.2f}x to {:.2f}x", *candidate.speedup_low, *candidate.speedup_high);
  }
  for (nlohmann::json& run : shown["runs"])
    if (run["reference"] == "") run["reference"] = nullptr;
  return Answer{json, text_of("candidates", shown)};
}

Result<Answer> list(const Flags& flags) {
  WARPLOOM_TRY(archive::Archive from, archive_at(flags.archive));
  WARPLOOM_TRY(auto problems, from.problems());
  if (flags.problem.empty()) return list_problems(from, problems);
  std::erase_if(problems,
                [&](const archive::Problem& one) { return !one.key.starts_with(flags.problem); });
  if (problems.size() == 1) return list_candidates(from, problems[0]);
  return fail(
      {ErrorCode::kUsage, "the key does not name one problem", "--problem",
       "the first digits of one key",
       fmt::format("{} problems whose key begins with '{}'", problems.size(), flags.problem),
       "see the keys with `warploom archive`"});
}
}  // namespace

Result<archive::Archive> archive_at(const std::string& file) {
  const std::filesystem::path path =
      file.empty() ? cache_folder() / "archive.sqlite" : std::filesystem::path(file);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return archive::Archive::open(path);
  return fail({ErrorCode::kFileMissing, "there is no archive", path.string(),
               "an archive that a search wrote", "no such file",
               "search first with `warploom optimize`, or name another with --archive"});
}

Command archive_command() {
  const auto flags = std::make_shared<Flags>();
  return {"archive",
          "what is known from earlier searches: problems, and of one its candidates, best first, "
          "and its runs",
          "warploom archive --problem 3f2a",
          {{"--problem", &flags->problem, "a problem's key, or its first digits"},
           {"--archive", &flags->archive, "the archive file; default: in the cache folder"}},
          [flags](const Session&) { return list(*flags); }};
}
}  // namespace warploom::cli
