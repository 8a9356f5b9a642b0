#include "search/plan_choice.h"
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rows.h"
#include "graph/rewrite.h"
#include "plan/boundary_change.h"

namespace warploom::search {
namespace {
constexpr std::string_view kAsGiven = "as given";
constexpr std::string_view kBetween = "; ";
// Of programs before this one.
constexpr std::string_view kOfPartition = "boundaries: ";
constexpr std::string_view kAsFused = "as fused";
}  // namespace

std::vector<std::string> PlanChoice::steps() const {
  std::vector<std::string> out;
  for (const graph::Rewrite& one : rewrites)
    out.push_back(one.text());
  for (const plan::BoundaryChange& one : boundaries)
    out.push_back(to_text(one));
  return out;
}

std::string PlanChoice::text() const {
  return is_as_given() ? std::string(kAsGiven) : listed(steps(), {}, kBetween);
}

bool is_boundary_step(const std::string& step) {
  return plan::boundary_kind_named(step.substr(0, step.find(' '))).has_value();
}

Result<PlanChoice> with_step(PlanChoice choice, const std::string& step) {
  if (is_boundary_step(step)) {
    WARPLOOM_TRY(const plan::BoundaryChanges changes, plan::boundaries_from_text(step));
    choice.boundaries.insert(choice.boundaries.end(), changes.begin(), changes.end());
    return choice;
  }
  WARPLOOM_TRY(graph::Rewrite rewrite, graph::rewrite_from_text(step));
  if (!choice.boundaries.empty())
    return fail({ErrorCode::kPlanInvalid, "a rewrite stands behind a boundary between regions",
                 step, "rewrites first", choice.text(),
                 "name the rewrites before the boundaries of what they leave"});
  choice.rewrites.push_back(std::move(rewrite));
  return choice;
}

Result<PlanChoice> choice_from_text(const std::string& text) {
  const bool is_of_partition = text.starts_with(kOfPartition);
  const std::string steps = is_of_partition ? text.substr(kOfPartition.size()) : text;
  PlanChoice out;
  if (steps == (is_of_partition ? kAsFused : kAsGiven)) return out;
  size_t begin = 0;
  while (begin <= steps.size()) {
    const size_t end = std::min(steps.find(kBetween, begin), steps.size());
    WARPLOOM_TRY(out, with_step(std::move(out), steps.substr(begin, end - begin)));
    begin = end + kBetween.size();
  }
  return out;
}
}  // namespace warploom::search
