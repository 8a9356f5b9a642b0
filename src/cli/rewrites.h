// What can be done to a whole plan's graph, as records: `show --what rewrites` and `why`.
#pragma once
#include <nlohmann/json.hpp>
#include "graph/graph.h"
#include "graph/track.h"

namespace warploom::cli {
// {"legal": [{"step", "sentence"}], "refused": [{"step", "sentence", "constraints"}]} of a graph of
// primitives.
nlohmann::json rewrites_record(const graph::Graph& graph, Track track);
}  // namespace warploom::cli
