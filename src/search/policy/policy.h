// Policy: how promising each legal action is in a state.
//
//   uniform    all alike
//   analytic   by the gain that the cost model expects; where there is none, by the family's guess
//              and by what binds (a roofline): actions that ease it first
//   learned    a small network that was trained on measured searches (learned.h)
//
//   const Result<PolicyPtr> policy = make_policy(PolicyKind::analytic);
//   const std::vector<double> weights = (*policy)->weights(state, actions.legal);
//   // weights[i] of actions.legal[i]: at least 0, their sum 1
//
// A policy only weighs: what is timed decides. Strategies draw by the weights, or take them as
// priors (strategy/strategy.h). The same state and actions always give the same weights.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "base/error.h"
#include "search/action/action.h"
#include "search/policy/state.h"

namespace warploom::search {
class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string name() const = 0;

  // One weight an action, at least 0, their sum 1; none for no actions.
  virtual std::vector<double> weights(const State& state, std::span<const Action> actions) = 0;

  // How likely a config is to be among the best tenth of its space; nothing where the policy does
  // not tell. Strategies leave out what is unlikely before it is compiled.
  virtual std::optional<double> promise(const State& /*state*/,
                                        const kernels::KernelConfig& /*config*/) {
    return std::nullopt;
  }
};

using PolicyPtr = std::shared_ptr<Policy>;

enum class PolicyKind : uint8_t { uniform, analytic, learned };
inline constexpr const char* kPolicyNames[] = {"uniform", "analytic", "learned"};

// `weights`: a file of the learned one's, as `warploom train` writes them; empty: those that the
// program carries. weights-invalid where they are not for this program.
Result<PolicyPtr> make_policy(PolicyKind kind, const std::string& weights = "");

// Weights of these scores: softmax of score / temperature. None: none.
std::vector<double> softmax(std::span<const double> scores, double temperature = 1);
}  // namespace warploom::search
