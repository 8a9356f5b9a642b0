// Candidate: a config, what it was built to, and what came of judging it.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "verify/evaluator.h"

namespace warploom::search {
struct Candidate {
  kernels::KernelConfig config;
  LaunchList list;  // empty for one that the archive knows and that was not built again
  verify::Verdict verdict;
  std::vector<std::string> parents;  // texts of the configs that it was made from
  std::optional<Action> action;      // that made it of the first of them
  nlohmann::json proposed = {};      // as archive::Candidate has it
  std::string compiler;
  bool judged_here = false;    // in this search, or before it was stopped
  bool answered = false;       // its verdict is of before the search was stopped
  bool promoted = false;       // judged whole in a fresh process
  bool finalist = false;       // measured again, in turns with the reference
  double screened_us = 0;      // what proposals went by: the time before that
  double compile_seconds = 0;  // 0: no compiler ran, since a cache had it or it was not wanted
  double strain = 0;           // strain_of(verdict), of the last judgement that has evidence
};

inline void sort_by_time(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, {},
                           [](const Candidate& one) { return one.verdict.median_us; });
}

// A candidate's time on a scale that all share. Finalists are timed in turns with one reference,
// each at another moment: what slows the machine in that moment slows both, so that their ratio
// tells more than the time. `reference_us` is the reference's usual time; 0: there is none, and the
// time is taken as it is.
inline double comparable_us(const Candidate& one, double reference_us) {
  const double speedup = one.verdict.speedup.median;
  const bool is_known = reference_us > 0 && speedup > 0;
  return is_known ? reference_us / speedup : one.verdict.median_us;
}

// How much of what its track allows a candidate's error takes, at the worst: 1 is all of it. 0
// where nothing was compared.
inline double strain_of(const verify::Verdict& verdict) {
  double worst = 0;
  for (const verify::Evidence& seen : verdict.evidence) {
    const double share = seen.bound > 0 ? seen.error / seen.bound : 0;
    worst = std::max({worst, share, seen.worst_ratio});
  }
  return worst;
}
}  // namespace warploom::search
