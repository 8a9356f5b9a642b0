#include "search/policy/analytic.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr double kEases = 1;       // doublings that easing what binds counts for
constexpr double kGuessTrust = 1;  // of a guess's doublings
constexpr double kMostGain = 4;    // doublings that anything is believed to gain or lose
constexpr double kNewFamily = -1;  // what another family is expected to gain where nobody knows
constexpr double kTemperature = 0.5;

std::optional<double> guessed(const SearchSpace& space, const KernelConfig& config) {
  const auto family = std::ranges::find(space.families, config.family(), &kernels::Family::name);
  if (family == space.families.end()) return std::nullopt;
  const double guess = (*family)->guess(config);
  return guess > 0 ? std::optional(guess) : std::nullopt;
}
}  // namespace

std::optional<double> AnalyticPolicy::predicted(const SearchSpace& space,
                                                const KernelConfig& config) {
  if (!space.predict || !space.capabilities.gpu) return std::nullopt;
  const auto [known, is_new] = predicted_.try_emplace(config.text());
  if (!is_new) return known->second;
  const double us = space.predict(config).value_or(0);
  if (us > 0) known->second = us;
  return known->second;
}

double AnalyticPolicy::expected_gain(const State& state, const KernelConfig& config) {
  const SearchSpace& space = *state.space;
  std::optional<double> now = predicted(space, state.config);
  std::optional<double> then = predicted(space, config);
  double trust = 1;
  if (!now || !then) {
    if (config.family() != state.config.family()) return kNewFamily;
    now = guessed(space, state.config);
    then = guessed(space, config);
    trust = kGuessTrust;
  }
  if (!now || !then) return 0;
  return std::clamp(trust * std::log2(*now / *then), -kMostGain, kMostGain);
}

std::vector<double> AnalyticPolicy::weights(const State& state, std::span<const Action> actions) {
  const Bottleneck binds = bottleneck_of(state);
  std::vector<double> scores;
  for (const Action& action : actions) {
    const auto config = carry_out(*state.space, action, state.config);
    double score = config ? expected_gain(state, *config) : -kMostGain;
    if (binds != Bottleneck::unknown && action.eases == binds) score += kEases;
    scores.push_back(score);
  }
  return softmax(scores, kTemperature);
}
}  // namespace warploom::search
