#include "search/action/plan_actions.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "base/units.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "search/action/action.h"
#include "search/plan_choice.h"

namespace warploom::search {
namespace {
using plan::BoundaryChange;
using plan::BoundaryKind;

struct BoundaryActionRow {
  BoundaryKind kind;
  std::string_view code_region;
  Bottleneck eases;
  std::string_view words;
};

constexpr BoundaryActionRow kRows[] = {
#define WARPLOOM_BOUNDARY_ACTION(kind, code_region, eases, words) \
  {BoundaryKind::kind, code_region, Bottleneck::eases, words},
#include "search/action/boundary_actions.def"
};

void put(std::string& words, std::string_view name, const std::string& value) {
  const size_t at = words.find(name);
  if (at != std::string::npos) words.replace(at, name.size(), value);
}
}  // namespace

Action action_of(const std::vector<graph::RewriteOffer>& offers) {
  Action out;
  out.kind = ActionKind::rewrite;
  out.code_region = "graph";
  double operations = 0;
  double bytes = 0;
  for (const graph::RewriteOffer& offer : offers) {
    operations += offer.before.operations - offer.after.operations;
    bytes += offer.before.bytes - offer.after.bytes;
    out.plan_steps.push_back(offer.rewrite.text());
  }
  if (bytes > 0) out.eases = Bottleneck::memory;
  if (operations > 0) out.eases = Bottleneck::arithmetic;
  out.sentence = listed(offers, &graph::RewriteOffer::sentence, "; then ");
  return out;
}

Action action_of(const plan::BoundaryOption& option) {
  const BoundaryChange& change = option.changes.front();
  const auto& row = *std::ranges::find(kRows, change.kind, &BoundaryActionRow::kind);
  const std::string second = option.second.empty() ? "what is computed of it" : option.second;
  std::string words(row.words);
  put(words, "{first}", option.first);
  put(words, "{second}", second);
  put(words, "{bytes}", bytes_text(as_double(option.bytes)));
  put(words, "{tensor}", change.tensor);
  if (option.changes.size() > 1)
    words += fmt::format(", alike in {} places", option.changes.size());
  Action out;
  out.kind = ActionKind::fusion;
  out.code_region = row.code_region;
  out.eases = row.eases;
  out.sentence = fmt::format("{}: {}", words, kBottlenecks[as_size(row.eases)].gain);
  for (const BoundaryChange& one : option.changes)
    out.plan_steps.push_back(to_text(one));
  return out;
}

PlanActions rewrite_actions(const graph::Graph& graph, Track track,
                            const std::set<std::string>& known) {
  PlanActions out;
  for (graph::RewriteOffer& offer : graph::rewrites_of(graph, track, known)) {
    Action action = action_of(std::vector{offer});
    if (offer.why.empty())
      out.legal.push_back(std::move(action));
    else
      out.refused.push_back({std::move(action), std::move(offer.why)});
  }
  return out;
}

PlanActions boundary_actions(plan::Boundaries& boundaries, const plan::BoundaryChanges& from) {
  PlanActions out;
  for (const plan::BoundaryOption& option : boundaries.options(from)) {
    if (!option.refusal) {
      out.legal.push_back(action_of(option));
      continue;
    }
    const std::string rule(plan::words_of(option.refusal->rule));
    out.refused.push_back({action_of(option), {{rule, option.refusal->found}}});
  }
  return out;
}

Result<Action> named_boundary_action(plan::Boundaries& boundaries,
                                     const plan::BoundaryChanges& from, const std::string& name) {
  WARPLOOM_TRY(const plan::BoundaryChanges meant, plan::boundaries_from_text(name));
  if (meant.size() != 1)
    return fail({ErrorCode::kPlanInvalid, "one boundary is changed at a time", name, "one change",
                 std::to_string(meant.size()), ""});
  const BoundaryChange& change = meant.front();
  for (const plan::BoundaryOption& option : boundaries.options(from)) {
    if (!contains(option.changes, change)) continue;
    if (option.refusal) return fail(plan::error_of(change, *option.refusal));
    return action_of(option);
  }
  // What meets nothing like it, or what a rule forbids; the rule is told.
  plan::BoundaryChanges all = from;
  all.push_back(change);
  WARPLOOM_CHECK(boundaries.under(all));
  plan::BoundaryOption alone;
  alone.changes = meant;
  alone.first = change.tensor;
  alone.second = change.other;
  return action_of(alone);
}

Result<PlanChoice> carry_out(const Action& action, const PlanChoice& choice) {
  if (!action.is_of_plan())
    return fail({ErrorCode::kPlanInvalid, "an action of a region's config is none of a whole plan",
                 action.sentence, "an action with steps of a plan", "none",
                 "carry it out on the region"});
  PlanChoice out = choice;
  for (const std::string& step : action.plan_steps)
    WARPLOOM_TRY(out, with_step(std::move(out), step));
  return out;
}
}  // namespace warploom::search
