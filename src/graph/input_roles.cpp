#include <algorithm>
#include <cstddef>
#include <vector>
#include "graph/graph.h"

namespace warploom::graph {
std::vector<InputRole> input_roles(const Graph& given) {
  std::vector<InputRole> roles(given.inputs.size());
  const auto primitive = decompose(given);
  if (!primitive) return roles;
  const Graph& graph = *primitive;
  std::vector<int> products(graph.tensors.size());  // one behind another, up to here
  bool network = false;
  const auto made_by = [&](TensorId id) {
    return graph.producer(id) < 0 ? nullptr : &graph.nodes[graph.producer(id)];
  };
  const auto unmoved = [&](TensorId id) {
    for (const Node* node = made_by(id); node; node = made_by(id)) {
      if (!only_moves(class_of(node->op)) && node->op != OpKind::Cast) break;
      id = node->inputs[0];
    }
    return id;
  };
  const auto role = [&](TensorId id) {  // null: it is no input
    const auto at = std::ranges::find(graph.inputs, unmoved(id)) - graph.inputs.begin();
    return at < std::ssize(roles) ? &roles[at] : nullptr;
  };
  for (const Node& node : graph.nodes) {
    const bool product = multiplies(class_of(node.op));
    int behind = product;
    for (const TensorId id : node.inputs)
      if (id != kAbsent) behind = std::max(behind, products[id] + product);
    for (const TensorId id : node.outputs) products[id] = behind;
    network |= behind > 1;
    InputRole* weights = nullptr;
    if (product) weights = role(node.inputs[1]);
    if (product && !weights) weights = role(node.inputs[0]);
    if (weights) weights->terms = std::max(weights->terms, terms_of(graph, node));
    if (node.op != OpKind::Sqrt) continue;
    const Node* const sum = made_by(unmoved(node.inputs[0]));
    if (!sum || sum->op != OpKind::Add) continue;
    for (const size_t i : {0, 1}) {
      InputRole* const added = role(sum->inputs[i]);
      if (added && graph.tensor(sum->inputs[1 - i]).constant) added->variance = true;
    }
  }
  for (InputRole& one : roles) one.terms = network ? one.terms : 1;
  return roles;
}
}  // namespace warploom::graph
