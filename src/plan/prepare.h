// Which inputs of a graph's regions are constant, and launch lists that make use of it: what reads
// constants alone runs once, before the calls (codegen/prepare.h).
//
// Constant are initializers of the model, graph inputs that the caller names (`--constant NAME`:
// they hold the same in every call), and what regions compute of such tensors alone. Operands of a
// plain matmul that nobody names are not.
#pragma once
#include <set>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "plan/fusion.h"

namespace warploom::plan {
using Names = std::set<std::string>;

// Refuses (kUsage) a name that is no input of the graph.
Status check_constants(const graph::Graph& graph, const Names& named);

// Sets Region::constants of all regions. `named`: inputs of `whole`. Regions that differ in what is
// constant are judged apart.
void mark_constants(Partition& partition, const graph::Graph& whole, const Names& named);

// Says which of the list's inputs are constant (the graph's constants, and `named`), and which of
// its kernels prepare.
void add_prepare(LaunchList& list, const graph::Graph& graph, const Names& named);
}  // namespace warploom::plan
