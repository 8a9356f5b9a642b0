// PlanChoice: what a search chooses of a whole plan, beside the configs of its regions: how the
// graph is rewritten (graph/rewrite.h), and where boundaries between regions of what comes of that
// are elsewhere than fusion has them (plan/boundary_change.h).
//
//   PlanChoice choice;                                     // "as given"
//   WARPLOOM_TRY(choice, choice_from_text("scale_after_sum y; sum_before y; cut_region t3"));
//   WARPLOOM_TRY(graph, plan::lower_for_target(given, capabilities, track, choice.rewrites));
//   WARPLOOM_TRY(partition, boundaries.under(choice.boundaries));
//
// It is to a plan what a config is to a region: actions lead from one to another
// (action/plan_actions.h), and the archive keeps them as candidates (plan_archive.h).
//
// Errors: plan-invalid for a step that is none, and for a rewrite behind a boundary: boundaries are
// of the graph that all rewrites leave.
#pragma once
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/rewrite.h"
#include "plan/boundary_change.h"

namespace warploom::search {
struct PlanChoice {
  std::vector<graph::Rewrite> rewrites = {};
  plan::BoundaryChanges boundaries = {};

  bool is_as_given() const { return rewrites.empty() && boundaries.empty(); }

  // Its steps: "scale_after_sum y", "sum_before y", "cut_region t3".
  std::vector<std::string> steps() const;

  std::string text() const;  // the steps with "; " between; "as given" where there are none

  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

// Whether a step changes a boundary between regions.
bool is_boundary_step(const std::string& step);

// The choice with one step more.
Result<PlanChoice> with_step(PlanChoice choice, const std::string& step);

// The text of a choice; and of programs before this one that of a partition, "boundaries: as fused"
// and "boundaries: cut_region t3".
Result<PlanChoice> choice_from_text(const std::string& text);
}  // namespace warploom::search
