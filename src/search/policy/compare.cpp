#include "search/policy/compare.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>
#include "base/casts.h"
#include "kernels/config/reader.h"
#include "runtime/timing.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/replay.h"
#include "search/policy/trainer.h"

namespace warploom::search {
namespace {
Spread spread_of(const std::vector<double>& values) {
  const auto interval = runtime::median_interval(values);
  return {interval.median_us, interval.low_us, interval.high_us};
}

double at(const std::vector<double>& best_at, size_t tries) {
  return best_at.empty() ? 0 : best_at[std::min(tries, best_at.size() - 1)];
}

Comparison row_of(const RecordedTree& tree, const Contender& contender, int seeds) {
  std::vector<double> to_095;
  std::vector<double> to_098;
  std::vector<double> at_16;
  std::vector<double> at_64;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Replayed one =
        replayed(tree, *contender.policy, {.seed = as_uint64(seed), .filters = contender.filters});
    to_095.push_back(one.to_095);
    to_098.push_back(one.to_098);
    at_16.push_back(at(one.best_at, 16));
    at_64.push_back(at(one.best_at, 64));
  }
  Comparison out;
  out.problem = tree.problem().name;
  out.family = best_family(tree.problem());
  out.policy = contender.name;
  out.plans = as_int(tree.problem().plans.size());
  out.seeds = seeds;
  out.to_095 = spread_of(to_095);
  out.to_098 = spread_of(to_098);
  out.best_at_16 = spread_of(at_16).median;
  out.best_at_64 = spread_of(at_64).median;
  return out;
}
}  // namespace

std::string best_family(const RecordedProblem& problem) {
  const RecordedPlan* best = nullptr;
  for (const RecordedPlan& plan : problem.plans)
    if (plan.is_right() && (!best || plan.us < best->us)) best = &plan;
  if (!best) return "";
  const auto config = kernels::config_from_text(best->config);
  return config ? config->family() : "";
}

std::vector<Comparison> compared(const Trees& trees, const std::vector<Contender>& contenders,
                                 int seeds) {
  std::vector<Comparison> out;
  for (const auto& tree : trees)
    for (const Contender& contender : contenders)
      out.push_back(row_of(*tree, contender, seeds));
  return out;
}

std::vector<Summary> summed_up(const std::vector<Comparison>& rows) {
  std::vector<Summary> out;
  for (const Comparison& row : rows) {
    auto found = std::ranges::find(out, row.policy, &Summary::policy);
    if (found == out.end()) found = out.insert(out.end(), Summary{.policy = row.policy});
    ++found->problems;
    found->to_095 += std::log(1 + row.to_095.median);
    found->to_098 += std::log(1 + row.to_098.median);
    found->best_at_16 += row.best_at_16;
  }
  for (Summary& one : out) {
    one.to_095 = std::exp(one.to_095 / one.problems) - 1;
    one.to_098 = std::exp(one.to_098 / one.problems) - 1;
    one.best_at_16 /= one.problems;
  }
  return out;
}
}  // namespace warploom::search
