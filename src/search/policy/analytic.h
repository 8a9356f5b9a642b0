// The policy that goes by what is known of kernels: the cost model's prediction for the config that
// an action makes, where the target has one; else the family's guess, which compares configs of one
// family; and, for either, whether the action eases what binds by the roofline.
//
//   score    log2(time now / time then), by the model or else half of it by the guess,
//            + 1 where the action eases what binds
//   weights  the softmax of that
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "search/policy/policy.h"

namespace warploom::search {
class AnalyticPolicy final : public Policy {
 public:
  std::string name() const override { return "analytic"; }

  std::vector<double> weights(const State& state, std::span<const Action> actions) override;

 private:
  // Doublings of speed that are expected of going from the state's config to this one.
  double expected_gain(const State& state, const kernels::KernelConfig& config);
  std::optional<double> predicted(const SearchSpace& space, const kernels::KernelConfig& config);

  std::map<std::string, std::optional<double>> predicted_;  // by the configs' texts
};
}  // namespace warploom::search
