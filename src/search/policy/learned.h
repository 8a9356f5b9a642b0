// The policy that was trained on recorded outcomes: a small network over the features of an action
// in a state (features.def), trained by PPO in an offline tree (trainer.h), as QiMeng-Kernel's MTMC
// does with a language model in the network's place.
//
//   WARPLOOM_TRY(const Weights weights, shipped_weights());
//   LearnedPolicy policy(weights);
//   policy.weights(state, actions);     // the softmax of the network's scores
//   policy.promise(state, config);      // odds of the best tenth, to filter what is compiled
//
// To see what an action makes it makes its tile programs, which takes a millisecond or less and is
// remembered; nothing is compiled.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/policy/features.h"
#include "search/policy/network.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/policy/weights.h"

namespace warploom::search {
class LearnedPolicy final : public Policy {
 public:
  explicit LearnedPolicy(const Weights& weights) : network_(weights.network) {}

  std::string name() const override { return "learned"; }

  std::vector<double> weights(const State& state, std::span<const Action> actions) override;
  std::optional<double> promise(const State& state, const kernels::KernelConfig& config) override;

 private:
  Features& features_of(const SearchSpace& space);

  Network network_;
  std::map<const SearchSpace*, std::unique_ptr<Features>> features_;
};
}  // namespace warploom::search
