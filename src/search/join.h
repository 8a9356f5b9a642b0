// Join: the launch lists of a partition's regions as one list for the whole graph.
//
// Kernels run in the order of regions. What regions pass on lies in workspaces, and workspaces that are not needed at the same time
// share memory. Constants that kernels read are inputs of the list, after the graph's own. Kernels of equal text share it; kernels of
// different texts get different names.
#pragma once
#include "codegen/launch_list.h"
#include "search/partition.h"
namespace warploom::search {
// `lists[i]` is of partition.regions[i], null for an alias.
LaunchList join(const graph::Graph& whole, const Partition& partition, const std::vector<const LaunchList*>& lists);
}  // namespace warploom::search
