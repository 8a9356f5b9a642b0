// Compare: what several policies need on recorded problems, with intervals over seeds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "search/policy/policy.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/replay.h"
#include "search/policy/trainer.h"

namespace warploom::search {
// A median and the interval that holds 95 % of medians of resampled seeds (bootstrap).
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Spread, median, low, high)

// One policy on one problem, by best-first search (replay.h). Tries are plans; shares are of the
// best's speed.
struct Comparison {
  std::string problem;
  std::string family;  // of the best plan
  std::string strategy = "best_first";
  std::string policy;
  int plans = 0;  // that are recorded
  int seeds = 0;
  Spread to_095 = {};
  Spread to_098 = {};
  double best_at_16 = 0;  // medians
  double best_at_64 = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Comparison, problem, family, strategy, policy, plans, seeds,
                                   to_095, to_098, best_at_16, best_at_64)

// A policy's rows together: of each problem's median the geometric mean.
struct Summary {
  std::string policy;
  int problems = 0;
  double to_095 = 0;
  double to_098 = 0;
  double best_at_16 = 0;  // mean
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Summary, policy, problems, to_095, to_098, best_at_16)

// The family of the best recorded plan; "" where none is right.
std::string best_family(const RecordedProblem& problem);

// A policy by its name, for that space alone: policies remember what they saw.
struct Contender {
  std::string name;
  PolicyPtr policy;
  bool filters = false;  // what it promises least is tried last
};

std::vector<Comparison> compared(const Trees& trees, const std::vector<Contender>& contenders,
                                 int seeds);
std::vector<Summary> summed_up(const std::vector<Comparison>& rows);
}  // namespace warploom::search
