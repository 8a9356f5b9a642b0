// Partition: a graph as regions, each of which one family computes.
//
// A region stores one tensor. It is the nodes from which that tensor is computed, back to inputs,
// constants and what other regions store. At first every node is a region. Then, along the edges
// and in the order of nodes, a region is taken into those that read what it stores, wherever
//   - one region alone reads it, or computing it again costs nothing: views, movement and pointwise
//   operators that read no more
//     bytes than they make; and
//   - some family covers the union, and none that is made for either part is lost for one that does
//   nearly anything; nor does such a
//     one do arithmetic anew for each of a product's uses of it.
// Products take in what reduces rows of their results when that has become one region: part of a
// softmax would gain nothing. Nobody else reads a tensor that goes, so no cycle can come of it.
// Regions of views alone go last: where none takes them in, their tensor is another's memory under
// another shape, and nothing is computed at all.
//
//   x·w1 → Add → Gelu → ·w2 → Add → Softmax     {MatMul Add Gelu}  {MatMul Add}  {Softmax}
//
// A region's graph forgets where it came from: tensors are called x0, x1, … (inputs), c0, …
// (constants), t0, … and y, and constants that are data (weights) are inputs. So equal layers have
// equal graphs, in one model or several.
#pragma once
#include <functional>
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "search/limits.h"

namespace warploom::search {
struct Region {
  graph::Graph graph;
  std::vector<std::string> tensors;  // what the whole graph calls graph.tensors[i]
  std::vector<int> nodes;            // of the whole graph, ascending
  std::string identity;              // equal for regions that compute the same
  bool alias = false;                // nothing but another name for its input's memory
  graph::Ranges ranges;              // what the whole graph says of the region's inputs
};

struct Partition {
  std::vector<Region> regions;  // in an order in which they can run
  std::map<std::string, std::string>
      storage;  // the tensor in whose memory a region's lies: its own, or what it views
  // Whether the only region is the graph itself, to the last constant.
  bool trivial(const graph::Graph& whole) const;
};

// How well the best family suits that covers a region: 0 where it keeps the target's fastest units
// busy, 1 where it is made for it, kLastRank where it does nearly anything; nothing where none
// does. Asked once for equal regions.
inline constexpr int kLastRank = 3;
using Rank = std::function<std::optional<int>(const graph::Graph& region)>;

// no-schedule with the operators that no family covers; kInterrupted by its limits. Where planning
// has had its time, regions stay as they are by then. `rank` is asked a number of times that grows
// with the nodes, not with the ways through them, and never about more than 64 nodes or 32 inputs.
Result<Partition> partition(const graph::Graph& graph, const Rank& rank, const Limits& limits = {});

// The launch lists of the regions as one for the whole graph; `lists[i]` is of
// partition.regions[i], null for an alias. Kernels run in the order of regions. What regions pass
// on lies in workspaces, and workspaces that are not needed at the same time share memory.
// Constants that kernels read are inputs of the list, after the graph's own. Kernels of equal text
// share it; kernels of different texts get different names.
LaunchList join(const graph::Graph& whole, const Partition& partition,
                const std::vector<const LaunchList*>& lists);
}  // namespace warploom::search
