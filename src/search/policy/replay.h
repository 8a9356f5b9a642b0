// Replay: how many plans a policy has to try on a recorded problem until one is nearly the best.
//
// The search is best-first: it starts at a plan drawn by the seed, and tries next what has the most
// promise of all actions at all plans that it has seen: the policy's weight, the plan's time, and
// chance by the seed. What it tries has the recorded outcome, so nothing runs. The same problem,
// policy and seed give the same figures.
//
//   const Replayed one = replayed(tree, policy, seed);
//   one.to_095      // plans tried until one was within 1/0.95 of the best recorded time
//   one.best_at[k]  // the best's time over that of the best plan among the first k
#pragma once
#include <cstdint>
#include <vector>
#include "search/policy/policy.h"
#include "search/policy/recorded_tree.h"

namespace warploom::search {
struct Replayed {
  int to_095 = 0;  // more than all of the plans where it never came so far
  int to_098 = 0;
  std::vector<double> best_at = {};  // after 0, 1, … tries; from 0 to 1
};

struct ReplayOptions {
  uint64_t seed = 1;
  double chance = 1;     // of Gumbel noise on the logarithm of weights: 1 draws by the weights
  double steepness = 2;  // how much a plan that is twice as slow counts less, in logarithms
  bool filters = false;  // what a policy promises least is tried last
};

Replayed replayed(const RecordedTree& tree, Policy& policy, const ReplayOptions& options);
}  // namespace warploom::search
