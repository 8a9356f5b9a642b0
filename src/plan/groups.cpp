#include "plan/groups.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include "base/casts.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "plan/region.h"

namespace warploom::plan {
using graph::OpClass, graph::TensorId;

Groups::Groups(const graph::Graph& graph)
    : graph_(graph), outputs_(graph.outputs.begin(), graph.outputs.end()) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const int number = as_int(n);
    maker_[graph.nodes[n].outputs[0]] = number;
    for (const TensorId id : graph.nodes[n].inputs)
      uses_[id].push_back(number);
    groups_[number] = {number};
    holders_[number] = {number};
  }
}

bool Groups::every_node_is(const Nodes& nodes, std::initializer_list<OpClass> classes) const {
  return std::ranges::all_of(nodes,
                             [&](int n) { return contains(classes, graph::class_of(node(n).op)); });
}

bool Groups::some_node_is(const Nodes& nodes, OpClass wanted) const {
  return std::ranges::any_of(nodes, [&](int n) { return graph::class_of(node(n).op) == wanted; });
}

bool Groups::is_free(int root) const {
  const Nodes& nodes = nodes_of(root);
  if (!every_node_is(nodes, {OpClass::view, OpClass::movement, OpClass::pointwise})) return false;
  int64_t bytes = 0;
  for (const TensorId id : inputs_of(graph_, nodes))
    bytes += graph::byte_count(graph_.tensor(id));
  return bytes <= graph::byte_count(graph_.tensor(stored(root)));
}

bool Groups::is_multiplied(int root, const Nodes& nodes) const {
  const auto uses = uses_.find(stored(root));
  if (uses == uses_.end()) return false;
  return std::ranges::any_of(uses->second, [&](int n) {
    return nodes.contains(n) && every_node_is({n}, {OpClass::contraction, OpClass::convolution});
  });
}

Groups::Nodes Groups::readers_of(int root) const {
  Nodes readers;
  const auto uses = uses_.find(stored(root));
  if (uses == uses_.end()) return readers;
  for (const int n : uses->second)
    for (const int group : holders_.at(n))
      if (!holders_.at(root).contains(group)) readers.insert(group);
  return readers;
}

std::optional<int> Groups::only_reader_of(int root) const {
  std::optional<int> only;
  const auto uses = uses_.find(stored(root));
  if (uses == uses_.end()) return only;
  for (const int n : uses->second)
    for (const int group : holders_.at(n)) {
      if (holders_.at(root).contains(group)) continue;
      if (only.value_or(group) != group) return std::nullopt;
      only = group;
    }
  return only;
}

Groups::Nodes Groups::read_by(int into) const {
  Nodes from;
  for (const TensorId id : inputs_of(graph_, nodes_of(into)))
    if (const auto maker = maker_.find(id); maker != maker_.end()) from.insert(maker->second);
  return from;
}

Groups::Nodes Groups::read_by_alone(int into) const {
  Nodes from;
  for (const TensorId id : inputs_of(graph_, nodes_of(into))) {
    const auto maker = maker_.find(id);
    if (maker == maker_.end() || outputs_.contains(id)) continue;
    if (only_reader_of(maker->second)) from.insert(maker->second);
  }
  return from;
}

void Groups::merge(const Nodes& from, const Nodes& takers) {
  for (const int root : from) {
    const Nodes nodes = std::move(groups_.extract(root).mapped());
    for (const int n : nodes) {
      holders_[n].erase(root);
      holders_[n].insert(takers.begin(), takers.end());
    }
    for (const int taker : takers)
      groups_.at(taker).insert(nodes.begin(), nodes.end());
  }
}
}  // namespace warploom::plan
