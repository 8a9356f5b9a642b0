// ActionSpace: which actions there are at a config, and which are refused, with the constraints.
//
//   const ActionSpace actions(space);
//   const Actions here = actions.at(config);
//   here.legal[0].sentence      // "keep 4 tiles in flight instead of 2: …"
//   here.refused[0].why[0]      // "at most 232448 bytes of shared memory …", with its fields
//
// Every value that a family offers for a field is an action, and so is every other family, and
// what the user adds (own_action.h). A change
// that breaks a coupled constraint is repaired: the fields that the constraint reads are set too,
// as few and as little as possible, in a bounded search; only then it is refused.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "kernels/config/constraints.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/search_space.h"

namespace warploom::search {
struct RefusedAction {
  Action action;
  kernels::FailedConstraints why;  // of the change that is meant, without repairs
};

struct Actions {
  std::vector<Action> legal;
  std::vector<RefusedAction> refused;
};

using ActionsPtr = std::shared_ptr<const Actions>;

// Threads share it.
class ActionSpace {
 public:
  // The space must outlive it. `seed`: of the walk that finds where other families are entered.
  explicit ActionSpace(const SearchSpace& space, uint64_t seed = 1);

  Actions at(const kernels::KernelConfig& config) const;

  // The same, kept for the next time that somebody asks.
  ActionsPtr shared_at(const kernels::KernelConfig& config) const;

  // The user's own action of that name, at a config: schedule-illegal where it cannot be carried
  // out, with the constraints; nothing where there is none of the name.
  std::optional<Result<Action>> own(const std::string& name,
                                    const kernels::KernelConfig& config) const;

  // By guess the best few configs that a bounded walk through a family finds, best first.
  const std::vector<kernels::KernelConfig>& entries(const std::string& family) const;

  const SearchSpace& space() const { return *space_; }

 private:
  void add_changes(const kernels::Family& family, const kernels::Space& fields,
                   const kernels::KernelConfig& config, Actions& out) const;
  void add_own(const kernels::Family& family, const kernels::KernelConfig& config,
               Actions& out) const;

  const SearchSpace* space_;
  std::map<std::string, kernels::Space> fields_;  // by family
  std::map<std::string, std::vector<kernels::KernelConfig>> entries_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, ActionsPtr> known_;  // by the configs' texts
};

// The legal config nearest to one that a family may neither offer nor allow: every value as the
// family offers it, then repaired as an action is; the fields to `keep` stay what they are. Nothing
// where the bounded search finds none.
std::optional<kernels::KernelConfig> nearest_legal(const kernels::Family& family,
                                                   const kernels::KernelConfig& wanted,
                                                   const std::vector<size_t>& keep = {});

// The same for one config alone.
Actions actions_of(const SearchSpace& space, const kernels::KernelConfig& config);
}  // namespace warploom::search
