// The coder that edits configs by rule.
#pragma once
#include <string>
#include "base/error.h"
#include "search/action/action.h"
#include "search/coder/coder.h"
#include "search/policy/state.h"

namespace warploom::search {
class RuleCoder final : public Coder {
 public:
  std::string name() const override { return "rule"; }

  Result<Draft> carry_out(const State& state, const Action& action, int /*variant*/) override {
    WARPLOOM_TRY(kernels::KernelConfig config,
                 search::carry_out(*state.space, action, state.config));
    return Draft{.config = std::move(config)};
  }
};
}  // namespace warploom::search
