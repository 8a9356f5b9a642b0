// Groups: the regions of a graph while fusion is at work, as sets of nodes.
//
// A group is known by its root, the node whose result it stores. A node may be in several groups:
// each computes it anew. Within the room only.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <vector>
#include "graph/graph.h"

namespace warploom::plan {
class Groups {
 public:
  using Nodes = std::set<int>;

  explicit Groups(const graph::Graph& graph);

  const std::map<int, Nodes>& all() const { return groups_; }

  const Nodes& nodes_of(int root) const { return groups_.at(root); }

  const graph::Node& node(int n) const { return graph_.nodes[n]; }

  graph::TensorId stored(int root) const { return node(root).outputs[0]; }

  // The graph's own outputs are stored whoever reads them.
  bool is_output(int root) const { return outputs_.contains(stored(root)); }

  // Whether a node makes the tensor, which then is no input and no constant.
  bool is_made(graph::TensorId id) const { return maker_.contains(id); }

  bool every_node_is(const Nodes& nodes, std::initializer_list<graph::OpClass> classes) const;
  bool some_node_is(const Nodes& nodes, graph::OpClass wanted) const;

  // Whether every reader may compute it again at no cost: nothing but views, movement and pointwise
  // operators that read no more bytes than they make.
  bool is_free(int root) const;
  // Whether a product in `nodes` reads what `root` stores, each element many times.
  bool is_multiplied(int root, const Nodes& nodes) const;
  // The groups that read what `root` stores. Whoever computes it again does not read it.
  Nodes readers_of(int root) const;
  // The only group that does, if one alone does. Many readers cost no more than two.
  std::optional<int> only_reader_of(int root) const;
  // The roots of what `into` reads.
  Nodes read_by(int into) const;
  // The roots of what `into` alone reads, but for the graph's outputs.
  Nodes read_by_alone(int into) const;

  // Makes the groups `from` part of each of `takers`.
  void merge(const Nodes& from, const Nodes& takers);

 private:
  const graph::Graph& graph_;
  std::map<graph::TensorId, int> maker_;
  std::map<graph::TensorId, std::vector<int>> uses_;
  std::map<int, Nodes> groups_;   // by their roots
  std::map<int, Nodes> holders_;  // the groups that a node is in
  std::set<graph::TensorId> outputs_;
};
}  // namespace warploom::plan
