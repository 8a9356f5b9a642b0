#include "report/history.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "report/figures.h"
#include "report/lineage.h"
#include "report/plot.h"
#include "report/rounds.h"
#include "report/table.h"

namespace warploom::report {
namespace {
using nlohmann::json;

bool refused(const json& candidate) {
  return text_at(candidate, "/stage") == "refused" || !positive_at(candidate, "/median_us");
}

// Seconds of search when each candidate was first recorded, all runs together: what lies between
// runs does not count. Archives of older programs tell the last time in its place, so none counts
// as later than those that were recorded behind it.
std::vector<std::optional<double>> seconds_of(const archive::Moments& moments,
                                              const std::vector<archive::Run>& runs) {
  std::vector<std::optional<double>> out;
  if (moments.runs.empty() || moments.runs.size() != runs.size()) {
    out.assign(moments.candidates.size(), std::nullopt);
    return out;
  }
  auto when = moments.candidates;
  for (size_t i = when.size(); i-- > 1;)
    when[i - 1] = std::min(when[i - 1], when[i]);
  double searched = 0;  // by the runs before this one
  size_t run = 0;
  double last = 0;  // of this run
  for (const double at : when) {
    while (run + 1 < runs.size() && at >= moments.runs[run + 1]) {
      searched += std::max(runs[run].seconds, last);
      last = 0;
      ++run;
    }
    last = std::max(last, at - moments.runs[run]);
    out.emplace_back(searched + last);
  }
  return out;
}

// A candidate's record as the page and its script read it.
json shown(const archive::Candidate& candidate, size_t number, std::optional<double> seconds) {
  json one = candidate;
  one["n"] = number;
  one["seconds"] = json_of(seconds);
  const std::string code = text_at(one, "/error_code");
  one["why"] = code.empty() ? "" : code + ": " + text_at(one, "/verdict/refused/message");
  const bool accepted = code.empty();
  for (const std::string key : {"median_us", "low_us", "high_us", "reference_us"}) {
    const json figure = json_of(positive_at(one, "/" + key));
    one[key] = accepted ? figure : json();
  }
  for (const std::string key : {"error", "max_error"}) {
    const json figure = json_of(figure_at(one, "/" + key));
    one[key] = accepted ? figure : json();
  }
  const auto median = positive_at(one, "/median_us");
  const auto low = positive_at(one, "/low_us");
  const auto high = positive_at(one, "/high_us");
  one["spread"] = json_of(spread_of(median, low, high));
  return one;
}

// How often each code was the reason of a refusal, the most frequent first.
json refusals_of(const json& candidates) {
  std::map<std::string, int> counts;
  for (const json& one : candidates)
    if (const std::string code = text_at(one, "/error_code"); !code.empty()) ++counts[code];
  json out = json::array();
  for (const auto& [code, count] : counts) {
    const ErrorCode known = error_from_json({{"code", code}}).code;
    const bool ours = code_text(known) == code;
    json row = {{"code", code}, {"count", count}, {"meaning", ""}};
    if (ours) row["meaning"] = code_meaning(known);
    out.push_back(std::move(row));
  }
  const auto more = [](const json& a, const json& b) { return a["count"] > b["count"]; };
  std::stable_sort(out.begin(), out.end(), more);
  return out;
}

// Where a candidate stands on the axis of the search.
double place_of(const json& candidate, const Progress& progress) {
  return candidate[progress.seconds ? "seconds" : "n"].get<double>();
}

std::string picture_of(const json& history) {
  const Progress progress = progress_of(history);
  Plot plot;
  plot.css = "search";
  plot.title = "Best against time";
  plot.note = "Each candidate with the interval of its median; the line is the best so far.";
  plot.x = progress.seconds ? "seconds of search" : "candidate, in the order recorded";
  plot.y = "time of the kernels";
  plot.times = true;
  for (const json& one : history["candidates"]) {
    if (refused(one)) continue;
    Plot::Mark mark;
    mark.x = place_of(one, progress);
    mark.y = *positive_at(one, "/median_us");
    mark.css = text_at(one, "/stage");
    mark.text = text_at(one, "/schedule") + "\n" + time_text(mark.y);
    if (const auto error = figure_at(one, "/error")) mark.text += ", error " + error_text(*error);
    mark.low = positive_at(one, "/low_us");
    mark.high = positive_at(one, "/high_us");
    plot.marks.push_back(std::move(mark));
  }
  Plot::Line steps{.css = "so-far", .corners = {}};
  for (const auto& [when, us] : progress.bests) {
    if (!steps.corners.empty()) steps.corners.emplace_back(when, steps.corners.back().second);
    steps.corners.emplace_back(when, us);
  }
  if (!steps.corners.empty()) steps.corners.emplace_back(progress.end, steps.corners.back().second);
  plot.lines.push_back(std::move(steps));
  if (const auto us = positive_at(history, "/reference_us")) {
    Plot::Line reference{"reference", {{0, *us}, {progress.end, *us}}};
    plot.lines.push_back(std::move(reference));
  }
  return drawn(plot);
}

// What was asked of language models, without the texts.
json exchanges_of(const std::vector<json>& exchanges) {
  json out = json::array();
  for (const json& one : exchanges) {
    json row;
    for (const char* key : {"purpose", "model", "prompt_tokens", "answer_tokens", "money",
                            "seconds", "tries", "made"})
      row[key] = at(one, std::string("/") + key);
    const std::string code = text_at(one, "/failure/code");
    row["became"] = code.empty() ? text_at(one, "/made") : code;
    out.push_back(std::move(row));
  }
  return out;
}

std::string cost_of(const json& exchanges) {
  if (exchanges.empty()) return "";
  double tokens = 0;
  double money = 0;
  double seconds = 0;
  for (const json& one : exchanges) {
    tokens += figure_at(one, "/prompt_tokens").value_or(0);
    tokens += figure_at(one, "/answer_tokens").value_or(0);
    money += figure_at(one, "/money").value_or(0);
    seconds += figure_at(one, "/seconds").value_or(0);
  }
  std::string out = fmt::format("A language model was asked {} times: {:.0f} tokens, {}",
                                exchanges.size(), tokens, seconds_text(seconds));
  return money > 0 ? out + ", " + number_text(money) + " of what its tokens cost." : out + ".";
}

// The tree of all candidates, which actions paid, and where its runs began.
void add_lineage(json& history) {
  const LineageTable lineage = lineage_of(history["candidates"], at(history, "/problem/bound/us"));
  history["tables"]["steps"] = table("steps", lineage.rows);
  history["tables"]["paid"] = table("paid", paid_by(history["candidates"]));
  json near = json::array();
  for (const json& run : history["runs"])
    for (const json& one : list_at(run, "/near"))
      near.push_back(one);
  history["tables"]["near"] = table("near", near);
  history["left_out"] = lineage.left_out;
}
}  // namespace

Result<json> history_of(archive::Archive& from, const archive::Problem& problem) {
  WARPLOOM_TRY(const auto candidates, from.candidates(problem.key));
  WARPLOOM_TRY(const auto runs, from.runs(problem.key));
  WARPLOOM_TRY(const auto best, from.best(problem.key));
  WARPLOOM_TRY(const auto moments, from.moments(problem.key));
  const auto seconds = seconds_of(moments, runs);
  json out;
  out["problem"] = problem;
  for (const char* key : {"features", "graph", "capabilities"})
    out["problem"].erase(key);
  out["candidates"] = json::array();
  out["runs"] = runs;
  out["best"] = nullptr;
  if (best) out["best"] = *best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::optional<double> when;
    if (i < seconds.size()) when = seconds[i];
    out["candidates"].push_back(shown(candidates[i], i + 1, when));
  }
  for (json& run : out["runs"]) {
    if (text_at(run, "/reference") == "none") run["reference"] = "";
    run["budget_seconds"] = json_of(positive_at(run, "/budget_seconds"));
  }
  const json last = out["runs"].empty() ? json() : out["runs"].back();
  out["reference"] = text_at(last, "/reference");
  out["reference_us"] = json_of(positive_at(last, "/reference_us"));
  out["refusals"] = refusals_of(out["candidates"]);
  out["judged"] = candidates.size();
  WARPLOOM_TRY(const auto exchanges, from.exchanges(problem.key));
  out["exchanges"] = exchanges_of(exchanges);
  out["model_cost"] = cost_of(out["exchanges"]);
  out["picture"] = picture_of(out);
  out["rounds"] = rounds_picture(out);
  out["tables"] = {{"errors", table("errors", list_at(out, "/best/verdict/evidence"))}};
  for (const std::string name : {"refusals", "candidates", "runs", "exchanges"})
    out["tables"][name] = table(name, out[name]);
  add_lineage(out);
  return out;
}

Progress progress_of(const json& history) {
  Progress out;
  const json& candidates = list_at(history, "/candidates");
  const auto is_dated = [](const json& one) { return figure_at(one, "/seconds").has_value(); };
  out.seconds = std::ranges::all_of(candidates, is_dated);
  for (const json& one : candidates) {
    const double when = place_of(one, out);
    out.end = std::max(out.end, when);
    if (refused(one)) continue;
    const double us = *positive_at(one, "/median_us");
    if (out.bests.empty() || us < out.bests.back().second) out.bests.emplace_back(when, us);
  }
  return out;
}
}  // namespace warploom::report
