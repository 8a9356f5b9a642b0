// Actions of a whole plan: which there are where it stands, and which are refused, with the
// constraints. They lead from one PlanChoice to another, as those of a region lead from one config
// to another (actions_of.h), and are of the same type.
//
//   rewrites    kind rewrite: the graph by an equal one; several steps at once where one makes the
//               next possible
//   boundaries  kind fusion: a region is cut in two, or two are joined, one step a place where
//               equal regions meet alike
//
//   const PlanActions here = rewrite_actions(primitives, Track::fp32);
//   here.legal[0].plan_steps       // {"sum_before y"}
//   here.legal[0].sentence         // "sum the operands x and w, not their product (…): …"
//   here.refused[0].why            // the constraints
//   WARPLOOM_TRY(choice, carry_out(here.legal[0], choice));
//
//   boundary_actions(boundaries, choice.boundaries).legal[0].sentence
//   // "cut between MatMul+Add and Softmax: each has a kernel of its own, and 4 KiB of t3 travel
//   // between them, alike in 2 places: more of the machine has work"
//
// Errors: schedule-illegal for a boundary that a rule forbids, with the rule; plan-invalid for a
// step that is none, and for an action of a region's config.
#pragma once
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "search/action/action.h"
#include "search/plan_choice.h"

namespace warploom::search {
struct RefusedPlanAction {
  Action action;
  std::vector<graph::FailedNeed> why;
};

struct PlanActions {
  std::vector<Action> legal;
  std::vector<RefusedPlanAction> refused;
};

// Of some rewrites, one after another.
Action action_of(const std::vector<graph::RewriteOffer>& offers);

// Of a change of boundaries, refused or not.
Action action_of(const plan::BoundaryOption& option);

// Those of a graph as it is so far (plan::primitives_for_target, rewritten).
// `known`: its inputs that hold the same in every call.
PlanActions rewrite_actions(const graph::Graph& graph, Track track,
                            const std::set<std::string>& known = {});

// Those of a partition.
PlanActions boundary_actions(plan::Boundaries& boundaries, const plan::BoundaryChanges& from);

// The action on boundaries that a person, or a script, means: "cut_region t3", "join_regions t3 +
// y"; in that place and in all that are like it.
Result<Action> named_boundary_action(plan::Boundaries& boundaries,
                                     const plan::BoundaryChanges& from, const std::string& name);

Result<PlanChoice> carry_out(const Action& action, const PlanChoice& choice);
}  // namespace warploom::search
