// Beam search: breadth, the fallback and then one config of every other family that covers the
// region; then depth, the best of each family by guess, and some at random; then changes of one
// field of the best few so far, with a random one now and then, until nothing new is left.
//
// Where the target has a cost model, nobody guesses: it starts from what the model finds best when
// it climbs from random configs, and takes the changes that it expects most of first. Predictions
// only order: what is timed decides.
#pragma once
#include <map>
#include <optional>
#include <vector>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "search/strategy/predictions.h"
#include "search/strategy/queue.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class BeamStrategy final : public SearchStrategy {
 public:
  // The queue has the order, and what is for breadth.
  BeamStrategy(const SearchSpace& space, const Ranked& families, CandidateQueue queue,
               Predictions predictions, Random random);

  std::optional<Proposal> ask() override;
  void tell(const Judged& judged) override;

  void suggest(const kernels::KernelConfig& config) override { queue_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { queue_.skip(config); }

 private:
  void climb(std::vector<kernels::KernelConfig> from);
  void mutate();

  const SearchSpace* space_;
  CandidateQueue queue_;
  Predictions predictions_;
  Random random_;
  std::multimap<double, kernels::KernelConfig> best_;  // by time
  int rounds_ = 0;
};
}  // namespace warploom::search
