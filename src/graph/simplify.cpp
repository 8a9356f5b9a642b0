// simplify(): what constants decide is gone, and so is what does nothing.
#include "graph/graph.h"
namespace warploom::graph {
namespace {
bool does_nothing(const Graph& graph, const Node& node) {
  if (node.op == OpKind::Identity || node.op == OpKind::Dropout) return true;
  if (node.op == OpKind::Cast) return graph.tensor(node.inputs[0]).dtype == graph.tensor(node.outputs[0]).dtype;
  const bool keeps_order = class_of(node.op) == OpClass::view || node.op == OpKind::Expand;
  return keeps_order && graph.tensor(node.inputs[0]).shape == graph.tensor(node.outputs[0]).shape;
}

// Tensors nobody reads and nodes nobody needs leave; ids are dense again.
void drop_unused(Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (TensorId id : *ids) needed[static_cast<std::size_t>(id)] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto is_needed = [&](TensorId id) { return id != kAbsent && needed[static_cast<std::size_t>(id)]; };
    if (std::none_of(node->outputs.begin(), node->outputs.end(), is_needed)) continue;
    for (TensorId id : node->inputs)
      if (id != kAbsent) needed[static_cast<std::size_t>(id)] = true;
    for (TensorId& id : node->outputs)  // the first one stays: who reads nodes relies on it
      if (id == node->outputs[0]) needed[static_cast<std::size_t>(id)] = true;
      else if (!is_needed(id) || graph.tensor(id).constant) id = kAbsent;
    while (node->outputs.back() == kAbsent) node->outputs.pop_back();
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);

  std::vector<TensorId> renamed(graph.tensors.size(), kAbsent);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    if (needed[i]) {
      renamed[i] = static_cast<TensorId>(tensors.size());
      tensors.push_back(std::move(graph.tensors[i]));
    }
  graph.tensors = std::move(tensors);
  const auto rename = [&](std::vector<TensorId>& ids) {
    for (TensorId& id : ids)
      if (id != kAbsent) id = renamed[static_cast<std::size_t>(id)];
  };
  rename(graph.inputs);
  rename(graph.outputs);
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
}
}  // namespace
Result<Graph> simplify(Graph graph) {
  const std::set<TensorId> promised(graph.outputs.begin(), graph.outputs.end());
  std::vector<TensorId> alias(graph.tensors.size());
  for (std::size_t i = 0; i < alias.size(); ++i) alias[i] = static_cast<TensorId>(i);
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    for (TensorId& id : node.inputs)
      if (id != kAbsent) id = alias[static_cast<std::size_t>(id)];
    const TensorId out = node.outputs[0];
    if (std::all_of(node.outputs.begin(), node.outputs.end(),
                    [&](TensorId id) { return id == kAbsent || graph.tensor(id).constant; }))
      continue;  // folded
    if (node.op == OpKind::CastLike) {
      node.op = OpKind::Cast;
      node.inputs.resize(1);
      node.attributes["to"] = std::int64_t{onnx_type_of(graph.tensor(out).dtype)};
    }
    if (does_nothing(graph, node)) {
      if (!promised.contains(out)) {
        alias[static_cast<std::size_t>(out)] = node.inputs[0];
        continue;
      }
      node = Node{OpKind::Identity, node.name, {node.inputs[0]}, {out}, {}};  // an output keeps its name and its node
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);

  // x → node → t → Identity → y, t read by nobody else: the node makes y itself.
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != OpKind::Identity) continue;
    const TensorId from = graph.nodes[i].inputs[0], to = graph.nodes[i].outputs[0];
    const int maker = graph.producer(from);
    if (maker < 0 || promised.contains(from) || graph.consumers(from).size() != 1) continue;
    graph.nodes[static_cast<std::size_t>(maker)].outputs[0] = to;
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  drop_unused(graph);
  return graph;
}
}  // namespace warploom::graph
