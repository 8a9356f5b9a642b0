#include <algorithm>
#include <cstddef>
#include <vector>
#include "graph/graph.h"

namespace warploom::graph {
namespace {
// Of a graph of primitives.
class RoleFinder {
 public:
  explicit RoleFinder(const Graph& graph)
      : graph_(graph), roles_(graph.inputs.size()), products_(graph.tensors.size()) {}

  std::vector<InputRole> run() {
    for (const Node& node : graph_.nodes) {
      count_products(node);
      if (multiplies(class_of(node.op))) note_weights(node);
      if (node.op == OpKind::Sqrt) note_variance(node);
    }
    if (is_network_) return roles_;
    for (InputRole& role : roles_)
      role.terms = 1;
    return roles_;
  }

 private:
  void count_products(const Node& node) {
    const int own = multiplies(class_of(node.op)) ? 1 : 0;
    int behind = own;
    for (const TensorId id : node.inputs)
      if (id != kAbsent) behind = std::max(behind, products_[id] + own);
    for (const TensorId id : node.outputs)
      products_[id] = behind;
    is_network_ |= behind > 1;
  }

  // Of a product: its second operand where that is an input, else its first.
  void note_weights(const Node& node) {
    InputRole* weights = role(node.inputs[1]);
    if (!weights) weights = role(node.inputs[0]);
    if (weights) weights->terms = std::max(weights->terms, terms_of(graph_, node));
  }

  // Of a square root: what a constant is added to beneath it.
  void note_variance(const Node& root) {
    const Node* const sum = made_by(unmoved(root.inputs[0]));
    if (!sum || sum->op != OpKind::Add) return;
    for (const size_t i : {0, 1}) {
      InputRole* const added = role(sum->inputs[i]);
      if (added && graph_.tensor(sum->inputs[1 - i]).constant) added->variance = true;
    }
  }

  const Node* made_by(TensorId id) const {
    const int producer = graph_.producer(id);
    return producer < 0 ? nullptr : &graph_.nodes[producer];
  }

  // What a tensor's elements are but for their place and type.
  TensorId unmoved(TensorId id) const {
    for (const Node* node = made_by(id); node; node = made_by(id)) {
      if (!only_moves(class_of(node->op)) && node->op != OpKind::Cast) break;
      id = node->inputs[0];
    }
    return id;
  }

  InputRole* role(TensorId id) {  // null: it is no input
    const auto found = std::ranges::find(graph_.inputs, unmoved(id));
    if (found == graph_.inputs.end()) return nullptr;
    return &roles_[found - graph_.inputs.begin()];
  }

  const Graph& graph_;
  std::vector<InputRole> roles_;
  std::vector<int> products_;  // of each tensor: the most products one behind another up to it
  bool is_network_ = false;    // products of products
};
}  // namespace

std::vector<InputRole> input_roles(const Graph& given) {
  const auto primitive = decompose(given);
  if (!primitive) return std::vector<InputRole>(given.inputs.size());
  return RoleFinder(*primitive).run();
}
}  // namespace warploom::graph
