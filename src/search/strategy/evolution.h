// Evolution: a population of the last configs that were right, each new one a child of two or of
// one. A parent is the fastest of a few drawn from the population; a child has each field of either
// parent, where that is legal, or else is its parent changed by an action that the policy draws.
// The oldest leaves the population (regularized evolution), which begins with random configs.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class EvolutionStrategy final : public SearchStrategy {
 public:
  explicit EvolutionStrategy(const StrategySetup& setup);

  std::optional<Proposal> ask() override;
  void tell(const Judged& judged) override;

  void suggest(const kernels::KernelConfig& config) override { seen_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { seen_.skip(config); }

 private:
  const Node* parent();
  std::optional<Proposal> crossed(const Node& one, const Node& other);
  std::optional<Proposal> mutated(const Node& from);

  Explored seen_;
  Random random_;
  std::deque<const Node*> population_;  // the oldest first
  size_t begun_ = 0;                    // configs of the first population
};
}  // namespace warploom::search
