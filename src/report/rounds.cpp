#include "report/rounds.h"
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "report/figures.h"
#include "report/plot.h"

namespace warploom::report {
namespace {
using nlohmann::json;

double place_of(const json& candidate, bool by_candidates) {
  const char* const at = by_candidates ? "/n" : "/proposed/round";
  return figure_at(candidate, at).value_or(0);
}

std::string said_of(const json& candidate, double us) {
  const std::string sentence = text_at(candidate, "/action/sentence");
  const std::string idea = sentence.empty() ? text_at(candidate, "/schedule") : sentence;
  return idea + "\n" + time_text(us);
}
}  // namespace

Rounds rounds_of(const json& history) {
  Rounds out;
  const json& candidates = list_at(history, "/candidates");
  out.are_candidates = std::ranges::none_of(
      candidates, [](const json& one) { return positive_at(one, "/proposed/round").has_value(); });
  std::map<double, Round> rounds;
  for (const json& one : candidates) {
    const double number = place_of(one, out.are_candidates);
    Round& round = rounds[number];
    round.number = number;
    ++round.candidates;
    const auto us = positive_at(one, "/median_us");
    if (us && (!round.own_us || *us < *round.own_us)) round.own_us = us;
  }
  std::optional<double> best;
  for (auto& [number, round] : rounds) {
    if (round.own_us && (!best || *round.own_us < *best)) best = round.own_us;
    round.best_us = best;
    out.rounds.push_back(round);
  }
  return out;
}

std::string rounds_picture(const json& history) {
  const Rounds all = rounds_of(history);
  Plot plot;
  plot.css = "rounds";
  plot.title = all.are_candidates ? "Best by candidate" : "Best by round";
  plot.note = all.are_candidates
                  ? "The line is the best so far; this strategy has no rounds."
                  : "Each candidate in its round, the fastest of a round ringed; the line is the "
                    "best so far.";
  plot.x = all.are_candidates ? "candidate" : "round";
  plot.y = "time of the kernels";
  plot.times = true;
  std::map<double, double> own;
  Plot::Line steps{.css = "so-far", .corners = {}};
  for (const Round& round : all.rounds) {
    if (round.own_us) own[round.number] = *round.own_us;
    if (!round.best_us) continue;
    if (!steps.corners.empty())
      steps.corners.emplace_back(round.number, steps.corners.back().second);
    steps.corners.emplace_back(round.number, *round.best_us);
  }
  if (steps.corners.empty()) return "";
  for (const json& one : list_at(history, "/candidates")) {
    const auto us = positive_at(one, "/median_us");
    if (!us) continue;
    Plot::Mark mark;
    mark.x = place_of(one, all.are_candidates);
    mark.y = *us;
    const auto fastest = own.find(mark.x);
    const bool is_fastest = fastest != own.end() && fastest->second == *us;
    mark.css = is_fastest && !all.are_candidates ? "promoted" : "screened";
    mark.text = said_of(one, *us);
    plot.marks.push_back(std::move(mark));
  }
  if (const auto us = positive_at(history, "/reference_us")) {
    const double end = all.rounds.back().number;
    plot.lines.push_back({"reference", {{all.rounds.front().number, *us}, {end, *us}}});
  }
  plot.lines.push_back(std::move(steps));
  return drawn(plot);
}
}  // namespace warploom::report
