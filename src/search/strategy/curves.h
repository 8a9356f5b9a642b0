// Curves: how many candidates a strategy needs, replayed over a space whose verdicts are all
// recorded. Nothing runs: what is proposed has the verdict that was measured once.
//
//   const Recording recording = …;                       // a closed space and its verdicts
//   const Curve one = curve_of(recording, {.strategy = Strategy::tree, .policy = policy, .seed =
//   3}); one.sequence                                         // the configs, in the order of
//   proposal one.candidates_to(0.95)                              // until one had 0.95 of the
//   best's speed one.share_at(16)                                     // of the best's speed, of
//   the best of 16
//
// The same recording, strategy, policy and seed give the same curve. A config that has no record
// counts as a candidate that was refused.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "search/action/actions_of.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
struct Recording {
  SearchSpace space;                                // closed (closed_space.h)
  std::map<std::string, Judged> verdicts;           // by the configs' texts
  std::shared_ptr<const ActionSpace> actions = {};  // of the space, shared by its replays; or none

  double best_us() const;  // 0: nothing was accepted
};

struct Curve {
  std::vector<std::string> sequence;  // the configs' texts
  std::vector<double> share;          // of the best's speed, that the best so far has; 0: none yet

  // How many candidates it took; nothing where it never came so far.
  std::optional<int> candidates_to(double wanted) const;
  double share_at(int candidates) const;
};

struct ReplaySetup {
  Strategy strategy = Strategy::random;
  PolicyPtr policy = {};  // none: analytic
  uint64_t seed = 1;
  int most = 256;  // candidates
  Start start = Start::guessed;
  double unlikely = 0;                           // see StrategySetup
  std::vector<kernels::KernelConfig> near = {};  // tried behind the first guesses
};

Curve curve_of(const Recording& recording, const ReplaySetup& setup);

// The median of some numbers and the interval that holds 95 % of the medians of resamples (1000
// bootstrap draws, always the same ones). Infinity stands for what never came; so it can be of all
// three. The numbers must not be none.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
};

MedianInterval median_interval(std::span<const double> numbers);
}  // namespace warploom::search
