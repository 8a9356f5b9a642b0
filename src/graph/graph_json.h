// Graphs as JSON, for other processes: everything, constants as binary values (CBOR keeps them).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include "graph/graph.h"

namespace warploom::graph {
void to_json(nlohmann::json& out, const Graph& graph);
void from_json(const nlohmann::json& in, Graph& graph);
}  // namespace warploom::graph
