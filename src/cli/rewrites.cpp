#include "cli/rewrites.h"
#include <nlohmann/json.hpp>
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "search/action/action.h"
#include "search/plan_choice.h"

namespace warploom::cli {
using nlohmann::json;

json rewrites_record(const graph::Graph& graph, Track track) {
  const auto actions = search::graph_actions(graph, track);
  json out = {{"legal", json::array()}, {"refused", json::array()}};
  for (const search::Action& one : actions.legal)
    out["legal"].push_back({{"step", listed(one.graph_steps)}, {"sentence", one.sentence}});
  for (const search::RefusedGraphAction& one : actions.refused) {
    json constraints = json::array();
    for (const graph::FailedNeed& need : one.why)
      constraints.push_back({{"expected", need.expected}, {"found", need.found}});
    out["refused"].push_back({{"step", listed(one.action.graph_steps)},
                              {"sentence", one.action.sentence},
                              {"constraints", constraints}});
  }
  return out;
}
}  // namespace warploom::cli
