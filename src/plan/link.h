// Linking: the launch lists of a partition's regions as one for the whole graph.
#pragma once
#include <set>
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "plan/fusion.h"

namespace warploom::plan {
// `lists[i]` is of partition.regions[i], null for an alias. Kernels run in the order of regions.
// What regions pass on lies in workspaces, which a memory plan (codegen/memory_plan.h) lays out.
// Constants that kernels read are inputs of the list, after the graph's own. Kernels of equal text
// share it; kernels of different texts get different names. What reads constants alone prepares:
// the whole's initializers, and those of its inputs that `constants` names.
LaunchList link(const graph::Graph& whole, const Partition& partition,
                const std::vector<const LaunchList*>& lists,
                const std::set<std::string>& constants = {});
}  // namespace warploom::plan
