// Search space: the configs that a search may try for one region on one target.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "target/capabilities.h"

namespace warploom::search {
struct OwnActions;

struct SearchSpace {
  kernels::Region region;
  target::Capabilities capabilities;
  std::vector<kernels::FamilyPtr> families;
  std::function<Result<LaunchList>(const kernels::KernelConfig&)> build;
  // Microseconds by the cost model; 0 or none where nothing is known.
  std::function<Result<double>(const kernels::KernelConfig&)> predict = {};
  // Actions that the user adds (action/own_action.h); null: none.
  std::shared_ptr<const OwnActions> own_actions = {};
};

// All that the families of kernels/ have for a region. `constants`: those of its inputs that hold
// the same in every call; kernels that read them alone prepare (plan/prepare.h). `exact`: without
// those whose special values are finite; every region keeps one.
SearchSpace search_space_of(const kernels::Region& region, const target::Capabilities& capabilities,
                            const std::set<std::string>& constants = {}, bool exact = false);
}  // namespace warploom::search
