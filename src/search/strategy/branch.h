// Branching search with a bank, as Stanford CRFM's: rounds of ideas and variants. Each round has
// some seeds: the best kernels so far, and from the bank of good ones those that differ most from
// what is chosen already. Of each seed some ideas are drawn, actions by the policy, and each idea
// is implemented several times: by the coder's own variants, and where it has one only, followed by
// another action of the policy. What comes of a round seeds the next.
//
//   round 1   seeds: the starts
//             matmul_cpu …  × "register tiles of 8 rows"  × 2   → 2 candidates
//                           × "B is copied by a task"     × 2   → 2 candidates
//   round 2   seeds: the two best, and one that is good and far from both
//
// Where a round's seeds have nothing new, configs at random take its place.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class BranchStrategy final : public SearchStrategy {
 public:
  explicit BranchStrategy(const StrategySetup& setup);

  std::optional<Proposal> ask() override;

  void tell(const Judged& judged) override { seen_.tell(judged); }

  void suggest(const kernels::KernelConfig& config) override { seen_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { seen_.skip(config); }

 private:
  void begin_round();
  std::vector<const Node*> seeds() const;
  void branch(const Node& seed);
  bool implement(const Node& seed, const Choice& idea, int variant);

  Explored seen_;
  Random random_;
  std::deque<Proposal> round_;  // not asked for yet
};
}  // namespace warploom::search
