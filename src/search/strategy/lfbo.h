// LFBO: likelihood-free Bayesian optimization (Song et al. 2022), the strongest published baseline
// for tuning kernels: 100 random configs, then rounds of 20. A random forest learns to tell those
// faster than the fastest third from all others, each weighted by how much faster it is, which is
// what expected improvement would weigh; a round takes the 20 that it holds for the likeliest of
// many: random ones, and changes of the best few. Published are 5 rounds; it goes on with more.
#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/forest.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class LfboStrategy final : public SearchStrategy {
 public:
  explicit LfboStrategy(const StrategySetup& setup);

  std::optional<Proposal> ask() override;
  void tell(const Judged& judged) override;

  void suggest(const kernels::KernelConfig& config) override { seen_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { seen_.skip(config); }

 private:
  void begin_round();
  std::vector<kernels::KernelConfig> pool();
  Row row_of(const kernels::KernelConfig& config) const;
  std::vector<double> weights() const;

  Explored seen_;
  Random random_;
  std::vector<Judged> told_;
  std::map<std::string, size_t> columns_;  // the first of each family's, whose flag comes first
  size_t width_ = 0;                       // of a row
  size_t begun_ = 0;                       // of the random ones
  std::deque<Proposal> round_;             // not asked for yet
};
}  // namespace warploom::search
