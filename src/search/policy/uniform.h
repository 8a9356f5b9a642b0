// The policy that holds all actions for equally promising.
#pragma once
#include <span>
#include <string>
#include <vector>
#include "base/casts.h"
#include "search/policy/policy.h"

namespace warploom::search {
class UniformPolicy final : public Policy {
 public:
  std::string name() const override { return "uniform"; }

  std::vector<double> weights(const State&, std::span<const Action> actions) override {
    return std::vector<double>(actions.size(), 1 / as_double(actions.size()));
  }
};
}  // namespace warploom::search
