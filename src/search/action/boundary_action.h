// BoundaryAction: a typed step from one partition of a graph to another, of the kind fusion: a
// region is cut in two, or two are joined (plan/boundaries.h), alike wherever equal regions meet
// alike.
//
//   changes   {{cut_region, "t3"}, {cut_region, "t13"}}
//   sentence  "cut between MatMul+Add and Softmax: each has a kernel of its own, and 4 KiB of t3
//             travel between them, alike in 2 places: more of the machine has work"
//
// Actions on a region's config are of another type (action.h); the archive keeps both in one form,
// so that a lineage is told alike.
//
// Errors: schedule-illegal for a change that a rule forbids, with the rule; plan-invalid where a
// name says of no change.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include "base/error.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "search/action/action.h"

namespace warploom::search {
struct BoundaryAction {
  plan::BoundaryKind kind = plan::BoundaryKind::cut_region;
  plan::BoundaryChanges changes;  // one a place
  std::string code_region;
  Bottleneck eases = Bottleneck::unknown;
  std::string sentence;
};

// Of an option, refused or not.
BoundaryAction boundary_action_of(const plan::BoundaryOption& option);

// The action that a person, or a script, means: "cut_region t3", "join_regions t3 + y"; in that
// place and in all that are like it.
Result<BoundaryAction> named_boundary_action(plan::Boundaries& boundaries,
                                             const plan::BoundaryChanges& from,
                                             const std::string& name);

// Whether a name is one of these.
bool names_boundary(const std::string& name);

// What to_json(Action) has, with "name" ("cut_region") and "changes"; a setting a place.
nlohmann::json to_json(const BoundaryAction& action);
}  // namespace warploom::search
