#include "search/strategy/strategy.h"
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/strategy/beam.h"
#include "search/strategy/branch.h"
#include "search/strategy/evolution.h"
#include "search/strategy/lfbo.h"
#include "search/strategy/linear.h"
#include "search/strategy/listed.h"
#include "search/strategy/predictions.h"
#include "search/strategy/queue.h"
#include "search/strategy/ranked.h"
#include "search/strategy/tree.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

// Automatic: spaces of so many legal configs are enumerated.
constexpr size_t kSmallSpace = 96;

// Breadth first: the fallback, then the best of every other family.
void lead(const StrategySetup& setup, const Ranked& families, Predictions& predictions,
          CandidateQueue& queue) {
  const std::optional<Fallback> fallback = fallback_within(*setup.space, setup.limits);
  if (fallback) queue.offer(fallback->config);
  for (const auto& family : families) {
    if (family.empty() || (fallback && family[0].family() == fallback->config.family())) continue;
    std::vector<KernelConfig> best(family.begin(),
                                   family.begin() + as_int64(std::min(family.size(), kAhead)));
    predictions.sort(best);
    queue.offer(best[0]);
  }
  queue.make_leads();
}

// Those that begin with every legal config by guess.
StrategyPtr ranked_strategy(Strategy strategy, const StrategySetup& setup) {
  Random random(setup.seed, "proposer");
  const Ranked families = ranked_families(*setup.space, random, setup.limits);
  std::vector<KernelConfig> order = in_turn(families);
  const bool is_broad = strategy == Strategy::automatic || strategy == Strategy::beam;
  if (strategy == Strategy::automatic)
    strategy = order.size() <= kSmallSpace ? Strategy::enumerate : Strategy::beam;
  Predictions predictions(*setup.space, setup.limits);
  CandidateQueue queue;
  queue.set_order(order);
  if (is_broad) lead(setup, families, predictions, queue);
  if (strategy == Strategy::beam)
    return std::make_unique<BeamStrategy>(*setup.space, families, std::move(queue),
                                          std::move(predictions), random);
  if (strategy == Strategy::random) {
    random.shuffle(order);
    queue.set_order(std::move(order));
  }
  return std::make_unique<ListedStrategy>(std::move(queue));
}
}  // namespace

StrategyPtr make_strategy(Strategy strategy, const StrategySetup& setup) {
  switch (strategy) {
    case Strategy::linear: return std::make_unique<LinearStrategy>(std::move(setup));
    case Strategy::branch: return std::make_unique<BranchStrategy>(std::move(setup));
    case Strategy::tree: return std::make_unique<TreeStrategy>(std::move(setup));
    case Strategy::evolution: return std::make_unique<EvolutionStrategy>(std::move(setup));
    case Strategy::lfbo: return std::make_unique<LfboStrategy>(std::move(setup));
    default: return ranked_strategy(strategy, setup);
  }
}
}  // namespace warploom::search
