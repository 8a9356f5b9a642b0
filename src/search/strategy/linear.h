// Linear search, as QiMeng-Kernel's MTMC goes at inference: one action a step. It stands on the
// best of its starts, draws an action by the policy, and moves where that is faster; what is not
// faster is never tried again from there. It ends where no action gains anything.
#pragma once
#include <optional>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class LinearStrategy final : public SearchStrategy {
 public:
  explicit LinearStrategy(const StrategySetup& setup);

  std::optional<Proposal> ask() override;

  void tell(const Judged& judged) override { seen_.tell(judged); }

  void suggest(const kernels::KernelConfig& config) override { seen_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { seen_.skip(config); }

 private:
  Explored seen_;
  Random random_;
};
}  // namespace warploom::search
