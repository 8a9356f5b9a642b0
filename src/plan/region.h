// Region: operators of a graph that are computed together, as a graph of their own.
//
// A region is cut out of a whole graph: the nodes from which the tensors that it stores are
// computed, back to inputs, constants and what other regions store.
//
//   x·w1 → Add → Gelu → ·w2 → Add → Softmax     {MatMul Add Gelu}  {MatMul Add}  {Softmax}
//
// A region's graph forgets where it came from: tensors are called x0, x1, … (inputs), c0, …
// (constants), t0, … (between) and y, or y0, y1, … where it stores several. Constants that are data
// (weights) are inputs. So equal layers have equal graphs, in one model or several.
#pragma once
#include <set>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "graph/ranges.h"

namespace warploom::plan {
struct Region {
  graph::Graph graph;
  std::vector<std::string> tensors;  // what the whole graph calls graph.tensors[i]
  std::vector<int> nodes;            // of the whole graph, ascending
  std::string identity;              // equal for regions that compute the same
  bool alias = false;                // nothing but another name for its input's memory
  graph::Ranges ranges;              // what the whole graph says of the region's inputs
  std::set<std::string> constants;   // of its inputs, those that hold the same in every call

  // What the whole graph calls the tensors that the region stores.
  std::vector<std::string> stored() const;
};

// Whether a tensor is a constant that kernels load, and do not hold in their text.
bool is_weight(const graph::Graph& graph, graph::TensorId id);

// What `nodes` read that none of them makes, in the order of nodes.
std::vector<graph::TensorId> inputs_of(const graph::Graph& graph, const std::set<int>& nodes);

// The nodes as a region that stores these of their results, one or more.
Region region_of(const graph::Graph& graph, const std::set<int>& nodes,
                 const std::vector<graph::TensorId>& stored);

// Adds what the inputs are in the whole graph (`whole`: its ranges), where the region alone does
// not say it: an index of which another region makes the place, a table of places that is a
// constant of the model. Regions that compute the same of other numbers are judged apart.
void add_ranges(Region& region, const graph::Ranges& whole);
}  // namespace warploom::plan
