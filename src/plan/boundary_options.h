// The changes of a partition's boundaries that can be made, and those that cannot: within the room
// only; see Boundaries::options().
#pragma once
#include <cstddef>
#include <vector>
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/part_editor.h"

namespace warploom::plan {
// `editor`: of the partition's parts.
std::vector<BoundaryOption> options_of(const graph::Graph& graph, const Partition& partition,
                                       const PartEditor& editor, const Limits& limits, size_t most);
}  // namespace warploom::plan
