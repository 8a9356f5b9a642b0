// Strategies asked and told by configs alone.
#pragma once
#include <cstdint>
#include <optional>
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
inline StrategyPtr strategy_of(const SearchSpace& space, Strategy strategy, uint64_t seed = 1,
                               plan::Limits limits = {}) {
  return make_strategy(strategy, {.space = &space, .seed = seed, .limits = limits});
}

inline std::optional<kernels::KernelConfig> next_of(const StrategyPtr& strategy) {
  const std::optional<Proposal> next = strategy->ask();
  return next ? std::optional(next->config) : std::nullopt;
}

inline void learn(const StrategyPtr& strategy, const kernels::KernelConfig& config, double us) {
  strategy->tell({.config = config, .accepted = true, .us = us});
}

inline void refuse(const StrategyPtr& strategy, const kernels::KernelConfig& config,
                   bool is_wrong = false) {
  strategy->tell({.config = config, .is_wrong = is_wrong});
}
}  // namespace warploom::search
