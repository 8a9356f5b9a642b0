// Graphs in files that outlive the program that wrote them: operators and types by their names,
// where graph_json.h has the numbers of this build's lists.
//
//   {"nodes": [{"op": "Exp", …}], "tensors": [{"dtype": "f32", "shape": [300, 700], …}], …}
//
// Nothing where a name is unknown, a node names no tensor, or a field is missing.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include "graph/graph.h"

namespace warploom::search {
nlohmann::json graph_to_record(const graph::Graph& graph);
std::optional<graph::Graph> graph_from_record(nlohmann::json record);
}  // namespace warploom::search
