// Which vendor kernel computes the same as a graph, if any. Within the room only.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/track.h"
#include "verify/setup.h"

namespace warploom::search {

// Nothing where the graph is neither a packed matmul with a bias and an activation that the libraries know, nor a plain softmax
// over rows.
std::optional<verify::Reference> vendor_match(const graph::Graph& graph, Track track);

}  // namespace warploom::search
