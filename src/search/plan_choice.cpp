#include "search/plan_choice.h"
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "search/action/action.h"

namespace warploom::search {
namespace {
constexpr std::string_view kAsGiven = "as given";
constexpr std::string_view kBetween = "; ";
}  // namespace

std::string PlanChoice::text() const {
  if (is_as_given()) return std::string(kAsGiven);
  return listed(rewrites, &graph::Rewrite::text, kBetween);
}

Result<PlanChoice> choice_from_text(const std::string& text) {
  PlanChoice out;
  if (text == kAsGiven) return out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(kBetween, begin), text.size());
    WARPLOOM_TRY(graph::Rewrite one, graph::rewrite_from_text(text.substr(begin, end - begin)));
    out.rewrites.push_back(std::move(one));
    begin = end + kBetween.size();
  }
  return out;
}

Action action_of(const std::vector<graph::RewriteOffer>& offers) {
  Action out;
  out.kind = ActionKind::rewrite;
  out.code_region = "graph";
  double operations = 0;
  double bytes = 0;
  for (const graph::RewriteOffer& offer : offers) {
    operations += offer.before.operations - offer.after.operations;
    bytes += offer.before.bytes - offer.after.bytes;
    out.graph_steps.push_back(offer.rewrite.text());
  }
  if (bytes > 0) out.eases = Bottleneck::memory;
  if (operations > 0) out.eases = Bottleneck::arithmetic;
  out.sentence = listed(offers, &graph::RewriteOffer::sentence, "; then ");
  return out;
}

GraphActions graph_actions(const graph::Graph& graph, Track track,
                           const std::set<std::string>& known) {
  GraphActions out;
  for (graph::RewriteOffer& offer : graph::rewrites_of(graph, track, known)) {
    Action action = action_of(std::vector{offer});
    if (offer.why.empty())
      out.legal.push_back(std::move(action));
    else
      out.refused.push_back({std::move(action), std::move(offer.why)});
  }
  return out;
}

Result<PlanChoice> carry_out(const Action& action, const PlanChoice& choice) {
  PlanChoice out = choice;
  for (const std::string& step : action.graph_steps) {
    WARPLOOM_TRY(graph::Rewrite one, graph::rewrite_from_text(step));
    out.rewrites.push_back(std::move(one));
  }
  return out;
}
}  // namespace warploom::search
