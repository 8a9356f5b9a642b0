// PlanChoice: what a search chooses of a whole plan before it searches the regions that come of it:
// how the graph is rewritten (graph/rewrite.h).
//
//   PlanChoice choice;                                     // "as given"
//   WARPLOOM_TRY(choice, choice_from_text("scale_after_sum y; sum_before y"));
//   WARPLOOM_TRY(graph, plan::lower_for_target(given, capabilities, track, choice.rewrites));
//
// Actions lead from one to another as they do between configs (action/action.h): an action of a
// whole plan has the steps that it adds.
//
//   const GraphActions here = graph_actions(primitives, Track::fp32);
//   here.legal[0].sentence         // "sum the operands x and w, not their product (…): …"
//   here.refused[0].why            // the constraints
//   WARPLOOM_TRY(choice, carry_out(here.legal[0], choice));
//
// Errors: plan-invalid for a step that is none.
#pragma once
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "search/action/action.h"

namespace warploom::search {
struct PlanChoice {
  std::vector<graph::Rewrite> rewrites;

  bool is_as_given() const { return rewrites.empty(); }

  std::string text() const;  // "scale_after_sum y; sum_before y"; "as given" where there are none

  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

Result<PlanChoice> choice_from_text(const std::string& text);

struct RefusedGraphAction {
  Action action;
  std::vector<graph::FailedNeed> why;
};

struct GraphActions {
  std::vector<Action> legal;
  std::vector<RefusedGraphAction> refused;
};

// The action of some rewrites, one after another.
Action action_of(const std::vector<graph::RewriteOffer>& offers);

// Those of a graph as it is so far (plan::primitives_for_target, rewritten).
// `known`: its inputs that hold the same in every call.
GraphActions graph_actions(const graph::Graph& graph, Track track,
                           const std::set<std::string>& known = {});

Result<PlanChoice> carry_out(const Action& action, const PlanChoice& choice);
}  // namespace warploom::search
