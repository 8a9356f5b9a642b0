#include "report/advice.h"
#include <fmt/format.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "base/rendered.h"
#include "report/figures.h"
#include "report/history.h"

namespace warploom::report {
namespace {
using nlohmann::json;

constexpr double kNearBudget = 0.9;      // so much of a budget used up is all of it
constexpr double kStillImproving = 0.6;  // of the search's time: a best found behind it is late
constexpr double kMostRefused = 0.5;     // of all candidates
constexpr double kWideInterval = 0.1;    // ± so much
constexpr double kFarFromBound = 0.4;

struct Advice {
  std::string title;
  std::string text;
};

using Rule = std::optional<Advice> (*)(const json& history);

std::string name_of(const json& history) {
  return text_at(history, "/problem/name");
}

// Whether the interval of the best and the reference's time overlap.
bool undecided(const json& history) {
  const auto low = positive_at(history, "/best/speedup_low");
  const auto high = positive_at(history, "/best/speedup_high");
  if (low && high) return *low < 1 && *high > 1;
  const auto from = positive_at(history, "/best/low_us");
  const auto to = positive_at(history, "/best/high_us");
  const auto reference = positive_at(history, "/reference_us");
  return from && to && reference && *from < *reference && *to > *reference;
}

std::optional<Advice> nothing_right(const json& history) {
  const size_t candidates = list_at(history, "/candidates").size();
  if (!at(history, "/best").is_null() || candidates == 0) return std::nullopt;
  std::string text = fmt::format(
      "None of the {} candidates of {} was accepted. The table of refusals "
      "says why; a longer `--budget` or another `--track` may help.",
      candidates, name_of(history));
  return Advice{"Nothing is right yet", std::move(text)};
}

// What a search that ended before its budget did lets one hope for.
Advice ended_early(const json& history, double seconds, double budget) {
  const std::string took = seconds_text(seconds);
  std::string text = fmt::format(
      "{} took {} of {}: nothing was left to try, or nothing that the rest of the time allowed. "
      "Another `--seed`, `--strategy` or `--track` tries others.",
      name_of(history), took, seconds_text(budget));
  return {"The search ended before its budget did", std::move(text)};
}

// When the best was found.
std::string moment_text(const Progress& progress) {
  const double found = progress.bests.back().first;
  if (progress.seconds) return fmt::format("after {}", seconds_text(found));
  return fmt::format("as candidate {:.0f} of {:.0f}", found, progress.end);
}

std::optional<Advice> budget_was_the_limit(const json& history) {
  const json& runs = list_at(history, "/runs");
  if (runs.empty() || at(history, "/best").is_null()) return std::nullopt;
  const auto seconds = positive_at(runs.back(), "/seconds");
  const auto budget = positive_at(runs.back(), "/budget_seconds");
  const auto judged = positive_at(runs.back(), "/candidates");
  const Progress progress = progress_of(history);
  if (!seconds || !budget || !judged || progress.bests.empty()) return std::nullopt;
  if (*seconds < kNearBudget * *budget) return ended_early(history, *seconds, *budget);
  const double found = progress.bests.back().first;
  const bool late = found > kStillImproving * progress.end;
  const char* const title =
      late ? "A longer search is likely to find more" : "The budget was the limit";
  const char* const hope = late ? ", and was still improving."
                                : ", and nothing was better since: less is to be hoped for.";
  const std::string rate = number_text(*judged / *seconds);
  const std::string time = seconds_text(*seconds);
  std::string text = fmt::format(
      "{}: {:.0f} candidates were judged in {}, {} a second, until the budget was used up. ",
      name_of(history), *judged, time, rate);
  text += fmt::format("The best came {}{} ", moment_text(progress), hope);
  text += fmt::format("Ten times the budget would judge about {:.0f}: `--resume --budget {:.0f}s`.",
                      10 * *judged, 10 * *budget);
  return Advice{title, std::move(text)};
}

std::optional<Advice> mostly_refused(const json& history) {
  const json& refusals = list_at(history, "/refusals");
  const auto all = as_double(list_at(history, "/candidates").size());
  if (refusals.empty()) return std::nullopt;
  const double count = figure_at(refusals[0], "/count").value_or(0);
  if (count < kMostRefused * all) return std::nullopt;
  const std::string code = text_at(refusals[0], "/code");
  const std::string meaning = text_at(refusals[0], "/meaning");
  std::string text =
      fmt::format("{}: {:.0f} of {:.0f} with {}: {}. A click on the code shows them.",
                  name_of(history), count, all, code, meaning);
  return Advice{"Most candidates were refused for one reason", std::move(text)};
}

std::optional<Advice> not_decided(const json& history) {
  if (!undecided(history)) return std::nullopt;
  std::string text = fmt::format(
      "{}: the intervals of the best and of {} overlap. Time them in turns "
      "on a quiet machine: `warploom bench BUNDLE --time 30s`.",
      name_of(history), text_at(history, "/reference"));
  return Advice{"Undecided against the reference", std::move(text)};
}

std::optional<Advice> machine_was_busy(const json& history) {
  const json& busy = at(history, "/best/machine/busy");
  if (!busy.is_boolean() || !busy.get<bool>()) return std::nullopt;
  std::string text = fmt::format(
      "{}: while the best was timed it was {}. Stop what else runs and time "
      "again: `warploom bench BUNDLE`.",
      name_of(history), text_at(history, "/best/machine/text"));
  return Advice{"The machine was busy", std::move(text)};
}

std::optional<Advice> wide_interval(const json& history) {
  const auto median = positive_at(history, "/best/median_us");
  const auto low = positive_at(history, "/best/low_us");
  const auto high = positive_at(history, "/best/high_us");
  const auto spread = spread_of(median, low, high);
  if (!spread || *spread < kWideInterval) return std::nullopt;
  const std::string least = time_text(*low);
  const std::string most = time_text(*high);
  std::string text = fmt::format(
      "{}: its median lies between {} and {}. Stop what else runs on the "
      "machine and measure longer: `warploom bench BUNDLE --time 30s`.",
      name_of(history), least, most);
  return Advice{"The best's time is known poorly", std::move(text)};
}

std::optional<Advice> slower_than_reference(const json& history) {
  const auto best = positive_at(history, "/best/median_us");
  const auto reference = positive_at(history, "/reference_us");
  if (!best || !reference || *best <= *reference) return std::nullopt;
  if (undecided(history)) return std::nullopt;
  const std::string library = text_at(history, "/reference");
  const std::string its_time = time_text(*reference);
  const std::string best_time = time_text(*best);
  std::string text = fmt::format(
      "{}: {} takes {}, the best {}. Search longer, or call the library "
      "there.",
      name_of(history), library, its_time, best_time);
  return Advice{"The reference is faster", std::move(text)};
}

std::optional<Advice> nothing_to_compare(const json& history) {
  const bool searched = !list_at(history, "/runs").empty();
  if (!searched || positive_at(history, "/reference_us")) return std::nullopt;
  std::string text = fmt::format(
      "{}: no reference was measured. `warploom doctor` says which of the "
      "vendor's libraries are here.",
      name_of(history));
  return Advice{"Nothing to compare with", std::move(text)};
}

// In the order of the page: what decides whether the figures mean anything comes first.
constexpr Rule kRules[] = {nothing_right,        machine_was_busy,      not_decided,
                           wide_interval,        slower_than_reference, mostly_refused,
                           budget_was_the_limit, nothing_to_compare};

std::optional<Advice> far_from_bound(const json& region, const std::string& profile) {
  const auto part = share_at(region, "/part");
  if (!part || *part > kFarFromBound) return std::nullopt;
  const std::string bound = text_at(region, "/bound");
  const std::string name = text_at(region, "/name");
  const std::string_view other = bound == "arithmetic" ? "memory" : "arithmetic";
  std::string text = fmt::format(
      "{} reaches {} of what {} would allow. Its kernels wait for something else: "
      "launches, latency, or {}. A profile says which: `{}`.",
      name, percent_text(*part), bound, other, profile);
  return Advice{"Far from the machine's bound", std::move(text)};
}

// `words` between grave accents as code.
std::string html_of(const std::string& text) {
  std::string out;
  bool code = false;
  for (const char letter : escaped(text)) {
    if (letter != '`') {
      out += letter;
      continue;
    }
    code = !code;
    out += code ? "<code>" : "</code>";
  }
  return out;
}

// Beneath the other of the same title, if there is one.
void add(json& to, const std::optional<Advice>& advice) {
  if (!advice) return;
  for (json& there : to)
    if (there["title"] == advice->title) {
      there["texts"].push_back(html_of(advice->text));
      return;
    }
  json row;
  row["title"] = advice->title;
  row["texts"] = json::array({html_of(advice->text)});
  to.push_back(std::move(row));
}
}  // namespace

json advice_of(const json& plan, const json& histories, const json& regions) {
  json out = json::array();
  for (const Rule rule : kRules)
    for (const json& history : histories)
      add(out, rule(history));
  const bool gpu = text_at(plan, "/launch_list/arch").starts_with("sm_");
  const std::string profile =
      gpu ? "warploom show BUNDLE --what ncu" : "perf record warploom run --trust BUNDLE";
  for (const json& region : regions)
    add(out, far_from_bound(region, profile));
  const bool nothing = out.empty() && (plan.is_object() || !histories.empty());
  if (nothing)
    add(out, Advice{"Nothing stands out",
                    "The figures are narrow and near the bound, or the page has too few of them."});
  return out;
}
}  // namespace warploom::report
