#include "search/policy/learned.h"
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/policy/features.h"
#include "search/policy/network.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
void set_row(Eigen::MatrixXd& x, size_t row, const FeatureVector& seen) {
  for (size_t i = 0; i < kFeatures; ++i)
    x(as_int64(row), as_int64(i)) = seen[i];
}
}  // namespace

Features& LearnedPolicy::features_of(const SearchSpace& space) {
  auto& known = features_[&space];
  if (!known) known = std::make_unique<Features>(space);
  return *known;
}

// An action that cannot be carried out has no weight.
std::vector<double> LearnedPolicy::weights(const State& state, std::span<const Action> actions) {
  Features& features = features_of(*state.space);
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(as_int64(actions.size()), as_int64(kFeatures));
  std::vector<bool> possible(actions.size(), false);
  for (size_t i = 0; i < actions.size(); ++i) {
    const auto then = carry_out(*state.space, actions[i], state.config);
    possible[i] = then.has_value();
    if (then) set_row(x, i, features.of(state, actions[i], *then));
  }
  const auto heads = network_.forward(std::move(x)).heads;
  std::vector<double> scores(heads.scores.begin(), heads.scores.end());
  if (std::ranges::find(possible, true) == possible.end()) return softmax(scores);
  for (size_t i = 0; i < actions.size(); ++i)
    if (!possible[i]) scores[i] = -HUGE_VAL;
  return softmax(scores);
}

std::optional<double> LearnedPolicy::promise(const State& state,
                                             const kernels::KernelConfig& config) {
  const auto action = action_between(state.config, config);
  if (!action) return std::nullopt;
  Eigen::MatrixXd x(1, as_int64(kFeatures));
  set_row(x, 0, features_of(*state.space).of(state, *action, config));
  const auto heads = network_.forward(std::move(x)).heads;
  return 1 / (1 + std::exp(-heads.promises[0]));
}
}  // namespace warploom::search
