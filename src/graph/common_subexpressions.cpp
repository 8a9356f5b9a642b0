#include "graph/common_subexpressions.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
constexpr std::array kCommutative = {OpKind::Add, OpKind::Mul};

bool is_weight(const Tensor& tensor) {
  return is_float(tensor.dtype) && element_count(tensor.shape) > 1;
}

class Merger {
 public:
  explicit Merger(Graph graph) : graph_(std::move(graph)), same_(graph_.tensors.size()) {
    std::iota(same_.begin(), same_.end(), 0);
    promised_.insert(graph_.outputs.begin(), graph_.outputs.end());
    for (const Node& node : graph_.nodes)
      ++named_[name_of(node)];
  }

  Result<Graph> run() {
    merge_constants();
    std::vector<Node> kept;
    for (Node& node : graph_.nodes) {
      for (TensorId& id : node.inputs)
        if (id != kAbsent) id = same_[id];
      const auto [known, fresh] = first_.try_emplace(key_of(node), node.outputs);
      if (fresh || named_[name_of(node)] > 1) {
        kept.push_back(std::move(node));
        continue;
      }
      merged_ = true;
      replace(node, known->second, kept);
    }
    graph_.nodes = std::move(kept);
    if (!merged_) return std::move(graph_);  // to the last constant as it was
    return simplify(std::move(graph_));
  }

 private:
  // What decides whether two nodes are equal.
  using Key = std::tuple<OpKind, std::map<std::string, Attribute>, std::vector<TensorId>,
                         std::vector<bool>>;

  // What decompose() names tensors after.
  std::string name_of(const Node& node) const {
    if (!node.name.empty()) return node.name;
    return graph_.tensor(node.outputs[0]).name;
  }

  Key key_of(const Node& node) const {
    auto inputs = node.inputs;
    if (contains(kCommutative, node.op)) std::ranges::sort(inputs);
    std::vector<bool> made;  // which of the outputs there are
    for (const TensorId id : node.outputs)
      made.push_back(id != kAbsent);
    return {node.op, node.attributes, std::move(inputs), std::move(made)};
  }

  // Constants of equal type, shape and contents become the first of them.
  void merge_constants() {
    using Constant = std::tuple<Dtype, Shape, std::vector<std::byte>>;
    std::map<Constant, TensorId> known;
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const Tensor& tensor = graph_.tensors[i];
      if (!tensor.constant || is_weight(tensor)) continue;
      const auto id = static_cast<TensorId>(i);
      const Constant constant = {tensor.dtype, tensor.shape, *tensor.constant};
      same_[i] = known.try_emplace(constant, id).first->second;
    }
  }

  // The outputs of a node that goes are those of its equal; the promised ones copies of them.
  void replace(const Node& node, const std::vector<TensorId>& equal, std::vector<Node>& kept) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorId id = node.outputs[i];
      if (id == kAbsent) continue;
      same_[id] = equal[i];
      if (!promised_.contains(id)) continue;
      const std::vector<TensorId> inputs = {equal[i]};
      kept.push_back({OpKind::Identity, node.name, inputs, {id}, {}});
    }
  }

  Graph graph_;
  std::vector<TensorId> same_;  // what stands for each tensor
  std::set<TensorId> promised_;
  std::map<std::string, int> named_;            // how many nodes have a name
  std::map<Key, std::vector<TensorId>> first_;  // the outputs of the first of equal nodes
  bool merged_ = false;
};
}  // namespace

Result<Graph> merge_common(Graph graph) {
  return Merger(std::move(graph)).run();
}
}  // namespace warploom::graph
