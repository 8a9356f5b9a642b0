// Actions by name: how a person, or a script, says which step is meant.
//
//   stages=4                     that field of the config at hand, with whatever constraints couple
//   taller_tiles                 the user's own action of that name (own_action.h)
//   matmul_mma                   another family, where it is entered by guess
//   matmul_mma stages=2 warps=4  the same, with these fields as they are named
//
//   WARPLOOM_TRY(const Action action, named_action(actions, config, "stages=4"));
//   action.sentence              // "keep 4 tiles in flight instead of 2: …"
//
// Errors: no-schedule for a family that does not cover the region; schedule-illegal for a field
// that the family does not have, a value that it does not offer there, or one that its constraints
// forbid, with the constraints.
#pragma once
#include <string>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"

namespace warploom::search {
// Of a config that stays what it is: nothing is meant, which is an error too.
Result<Action> named_action(const ActionSpace& actions, const kernels::KernelConfig& from,
                            const std::string& name);

// A config by the last two forms: the fields that are named, the others by guess.
Result<kernels::KernelConfig> named_config(const ActionSpace& actions, const std::string& name);
}  // namespace warploom::search
