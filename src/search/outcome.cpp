// Outcomes: of several regions one, and as JSON.
#include "search/outcome.h"
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "plan/boundary_change.h"
#include "runtime/noise.h"
#include "runtime/standing.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
using nlohmann::json;

namespace {
using verify::Verdict;

json known(double figure) {
  return figure > 0 ? json(figure) : json();
}

json known(const std::string& text) {
  return text.empty() ? json() : json(text);
}

json interval(double low, double high) {
  return low > 0 ? json{low, high} : json();
}

// What both a whole and a region say of their times.
json figures_of(const Verdict& v) {
  const auto why = why_undecided(v.speedup, v.noise);
  json out;
  out["best_us"] = known(v.median_us);
  out["best_interval_us"] = interval(v.low_us, v.high_us);
  out["reference_us"] = known(v.reference_us);
  out["reference_interval_us"] = interval(v.reference_low_us, v.reference_high_us);
  out["reference_dropped"] = known(v.reference_dropped);
  out["prepare_us"] = known(v.prepare_us);
  out["prepare_bytes"] = v.prepare_bytes > 0 ? json(v.prepare_bytes) : json();
  out["speedup"] = known(v.speedup.median);
  out["speedup_interval"] = interval(v.speedup.low, v.speedup.high);
  out["standing"] = runtime::name_of(standing_of(v.speedup, v.noise));
  out["undecided_because"] = why;
  out["special_values"] = name_of(v.special);
  out["not_promised"] = v.not_promised;
  out["machine"] = runtime::to_json(v.noise);
  return out;
}

json region_json(const Outcome& region, int number) {
  json out = figures_of(region.verdict);
  out.update(against_bound(region.bound, region.verdict.median_us));
  out["number"] = number;
  out["name"] = region.problem;
  out["label"] = known(region.label);
  out["output"] = known(region.output);
  out["times"] = region.times;
  out["schedule"] = kernels::to_json(region.schedule);
  out["reference"] = known(region.reference);
  out["key"] = region.key;
  out["set_up"] = json::array();
  for (const verify::SetUpPart& part : region.set_up)
    out["set_up"].push_back({{"phase", part.name}, {"seconds", part.seconds}});
  return out;
}
}  // namespace

json against_bound(const verify::Bound& bound, double us) {
  const bool is_known = bound.us > 0 && us > 0;
  const double fraction = is_known ? bound.us / us : 0;
  std::string text = bound.us > 0 ? "" : "no bound is known";
  if (is_known && fraction <= 1)
    text = fmt::format("{:.0f} % of the {} bound", 100 * fraction, bound.of);
  if (fraction > 1)
    text = bound.of == "DRAM" ? "above the DRAM bound: data stays in cache"
                              : "at the arithmetic bound";
  const double measured = us > 0 ? bound.measured_us / us : 0;
  const std::string_view rate = bound.of == "DRAM" ? "copy rate" : "peak rate";
  if (measured > 0 && fraction <= 1)
    text += fmt::format(", {:.0f} % of the {} measured here", 100 * measured, rate);
  json out;
  out["measured_bound_us"] = known(bound.measured_us);
  out["measured_fraction"] = known(measured);
  out["roofline_fraction"] = is_known && fraction <= 1 ? json(fraction) : json();
  out["bound"] = known(std::string(bound.of));
  out["bound_us"] = known(bound.us);
  out["bound_text"] = known(text);
  return out;
}

void sum_up(Outcome& whole, const std::vector<Outcome>& regions) {
  whole.verdict = {};
  whole.device_notes.clear();
  whole.candidates = 0;
  whole.refused = 0;
  whole.interrupted = false;
  whole.recalled = !regions.empty();
  whole.proven = !regions.empty();
  whole.regions = regions;
  std::set<std::string> references;
  Verdict& sum = whole.verdict;
  for (const Outcome& one : regions) {
    const Verdict& v = one.verdict;
    for (const auto us : {&Verdict::median_us, &Verdict::low_us, &Verdict::high_us})
      sum.*us += one.times * v.*us;
    for (const auto error : {&Verdict::error, &Verdict::max_error, &Verdict::reference_error})
      sum.*error = std::max(sum.*error, v.*error);
    sum.prepare_us += one.times * v.prepare_us;
    sum.prepare_bytes += one.times * v.prepare_bytes;
    sum.noise = worse_of(sum.noise, v.noise);
    sum.samples = sum.samples == 0 ? v.samples : std::min(sum.samples, v.samples);
    sum.evidence = v.evidence;  // of the only one; several are judged whole
    if (!v.sandbox.empty()) sum.sandbox = v.sandbox;
    sum.special = std::max(sum.special, v.special);
    for (const std::string& what : v.not_promised)
      if (!contains(sum.not_promised, what)) sum.not_promised.push_back(what);
    for (const std::string& note : one.device_notes)
      if (!contains(whole.device_notes, note)) whole.device_notes.push_back(note);
    whole.candidates += one.candidates;
    whole.refused += one.refused;
    whole.interrupted |= one.interrupted;
    whole.recalled &= one.recalled;
    whole.proven &= one.proven;
    if (sum.reference_dropped.empty()) sum.reference_dropped = v.reference_dropped;
    if (!one.reference.empty()) references.insert(one.reference);
    if (v.reference_us <= 0) continue;
    for (const auto us :
         {&Verdict::reference_us, &Verdict::reference_low_us, &Verdict::reference_high_us})
      sum.*us += one.times * v.*us;
    const double weight = one.times * v.median_us;
    const bool is_first = whole.compared_us <= 0;
    const int pairs = is_first ? v.speedup.pairs : sum.speedup.pairs;
    sum.speedup.pairs = std::min(pairs, v.speedup.pairs);
    whole.compared_us += weight;
    sum.speedup.median += weight * v.speedup.median;
    sum.speedup.low += weight * v.speedup.low;
    sum.speedup.high += weight * v.speedup.high;
  }
  whole.regions_us = sum.median_us;
  whole.regions_reference_us = sum.reference_us;
  whole.reference = listed(references, {}, " + ");
  if (whole.compared_us <= 0) return;
  sum.speedup.median /= whole.compared_us;
  sum.speedup.low /= whole.compared_us;
  sum.speedup.high /= whole.compared_us;
}

std::string Outcome::schedule_text() const {
  if (regions.size() <= 1) return schedule.text();
  const auto line = [](const Outcome& region) {
    const std::string repeats = region.times > 1 ? fmt::format(" x{}", region.times) : "";
    return region.problem + repeats + ": " + region.schedule.text();
  };
  return listed(regions, line, "\n");
}

json to_json(const Outcome& outcome) {
  const Verdict& v = outcome.verdict;
  json out = figures_of(v);
  out.update(against_bound(outcome.bound, v.median_us));
  const bool judged = !v.evidence.empty();
  out["problem"] = outcome.problem;
  out["target"] = outcome.target;
  out["device"] = outcome.device;
  out["card"] = outcome.card;
  out["track"] = name_of(outcome.track);
  out["reference"] = known(outcome.reference);
  out["best_low_us"] = known(v.low_us);
  out["best_high_us"] = known(v.high_us);
  out["samples"] = v.samples > 0 ? json(v.samples) : json();
  out["error"] = judged ? json(v.error) : json();
  out["max_error"] = judged ? json(v.max_error) : json();
  out["reference_error"] = v.reference_error >= 0 ? json(v.reference_error) : json();
  out["proven"] = outcome.proven;
  out["candidates"] = outcome.candidates;
  out["refused"] = outcome.refused;
  out["seconds"] = outcome.seconds;
  out["seed"] = outcome.seed;
  out["interrupted"] = outcome.interrupted;
  out["recalled"] = outcome.recalled;
  out["plan"] = outcome.plan.hash();
  out["schedule"] = outcome.schedule_text();
  out["references_missing"] = outcome.without_reference;
  out["compared_us"] = known(outcome.compared_us);
  out["regions_us"] = known(outcome.regions_us);
  out["regions_reference_us"] = known(outcome.regions_reference_us);
  if (outcome.regions.size() > 1)
    out["reference_covers"] = outcome.reference_covers_model ? "model" : "regions";
  // A part's reference is none of the whole.
  const bool covers_part = !outcome.without_reference.empty() && !outcome.reference_covers_model;
  if (covers_part && v.reference_us > 0) {
    json part = {{"compared_us", out["compared_us"]}};
    for (const char* key : {"reference_us", "reference_interval_us", "speedup", "speedup_interval",
                            "standing", "undecided_because"})
      part[key] = std::exchange(out[key], nullptr);
    out["standing"] = runtime::name_of(runtime::Standing::unknown);
    out["undecided_because"] = json::array();
    out["part"] = part;
  }
  out["rewrites"] = json::array();
  for (const graph::Rewrite& one : outcome.plan.rewrites)
    out["rewrites"].push_back(one.text());
  out["choices"] = outcome.choices.is_null() ? json::array() : outcome.choices;
  out["plans_key"] = known(outcome.plans_key);
  out["coders"] = json::array();
  for (const Outcome& region : outcome.regions)
    if (!region.coder.is_null()) out["coders"].push_back(region.coder);
  out["boundaries"] = nullptr;
  if (outcome.boundaries.were_choice)
    out["boundaries"] = {{"changes", plan::to_json(outcome.plan.partition.changes)},
                         {"text", to_text(outcome.plan.partition.changes)},
                         {"tried", outcome.boundaries.tried},
                         {"note", known(outcome.boundaries.note)}};
  out["regions"] = json::array();
  int number = 0;
  for (const Outcome& region : outcome.regions)
    out["regions"].push_back(region_json(region, ++number));
  return out;
}
}  // namespace warploom::search
