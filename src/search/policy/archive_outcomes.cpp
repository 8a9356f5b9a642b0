#include "search/policy/archive_outcomes.h"
#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "base/error.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "search/plan_archive.h"
#include "search/policy/outcomes.h"
#include "search/problem_record.h"

namespace warploom::search {
namespace {
using archive::Archive;
using archive::Candidate;

constexpr size_t kHeldOut = 5;  // one of so many

// A problem with its candidates, whoever judged them.
struct Searched {
  archive::Problem problem;
  std::vector<Candidate> candidates;
  bool is_foreign = false;
};

Result<std::vector<Searched>> searched_in(Archive& from) {
  std::vector<Searched> out;
  WARPLOOM_TRY(const auto own, from.problems());
  for (const archive::Problem& problem : own) {
    if (is_of_plans(problem)) continue;
    WARPLOOM_TRY(auto candidates, from.candidates(problem.key));
    out.push_back({problem, std::move(candidates)});
  }
  WARPLOOM_TRY(const auto foreign, from.foreign_problems());
  for (const auto& [file, problem] : foreign) {
    if (is_of_plans(problem)) continue;
    WARPLOOM_TRY(const auto records, from.foreign_candidates(problem.key));
    Searched one{problem, {}, true};
    for (const auto& record : records)
      one.candidates.push_back(record.record);
    out.push_back(std::move(one));
  }
  std::ranges::stable_sort(out, {}, [](const Searched& one) { return one.problem.key; });
  return out;
}

// Its plans in the order in which they were recorded; a parent is one of those before.
RecordedProblem recorded_of(const Searched& searched, kernels::Region region, std::string name) {
  RecordedProblem out;
  out.name = std::move(name);
  out.track = region.track;
  out.graph = std::move(region.graph);
  std::map<std::string, int> numbers;
  for (const Candidate& one : searched.candidates) {
    const auto config = kernels::config_from_text(one.schedule);
    if (!config || !one.source.empty()) continue;
    RecordedPlan plan;
    plan.config = config->text();
    const bool is_refused = one.stage == archive::Stage::refused;
    const double us = one.screened_us.value_or(one.median_us.value_or(0));
    if (is_refused) plan.code = one.error_code;
    if (!is_refused && us > 0) plan.us = us;
    if (!plan.is_known()) continue;
    if (!numbers.emplace(plan.config, as_int(out.plans.size())).second) continue;
    const auto parent = one.parents.empty() ? numbers.end() : numbers.find(one.parents[0]);
    if (parent != numbers.end() && parent->second < as_int(out.plans.size())) {
      plan.origin = Origin::forward;
      plan.parent = parent->second;
    }
    out.plans.push_back(std::move(plan));
  }
  return out;
}
}  // namespace

Result<TaughtBy> outcomes_of(Archive& from) {
  WARPLOOM_TRY(const std::vector<Searched> all, searched_in(from));
  TaughtBy out;
  std::map<std::string, size_t> targets;  // by device and capabilities
  size_t count = 0;
  for (const Searched& one : all) {
    auto region = region_of(one.problem);
    const auto capabilities = capabilities_of(one.problem);
    if (!region || !capabilities) {
      ++out.without;
      continue;
    }
    const std::string target = one.problem.device + one.problem.capabilities.dump();
    const auto [known, is_new] = targets.emplace(target, out.outcomes.size());
    if (is_new) out.outcomes.push_back({one.problem.device, *capabilities, {}});
    const std::string name = one.problem.name + " " + one.problem.key.substr(0, 8);
    RecordedProblem recorded = recorded_of(one, *std::move(region), name);
    ++count;
    if (count % kHeldOut == 0) recorded.use = Use::hold_out;
    if (one.is_foreign) ++out.foreign;
    out.outcomes[known->second].problems.push_back(std::move(recorded));
  }
  return out;
}
}  // namespace warploom::search
