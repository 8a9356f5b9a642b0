// decompose(): every node that is no primitive by the rule of its operator.
#include "graph/composites.h"
namespace warploom::graph {
namespace {
// In the one form that primitives have.
bool is_primitive(const Node& node) {
  const auto has = [&](std::string_view key) { return node.attributes.contains(std::string(key)); };
  switch (class_of(node.op)) {
    case OpClass::softmax:
    case OpClass::composite: return false;
    case OpClass::reduction: {
      const auto axes = node.integers("axes");
      const bool resolved = !axes.empty() && axes[0] >= 0 && std::is_sorted(axes.begin(), axes.end());
      return resolved && node.inputs.size() == 1 && !has("noop_with_empty_axes");
    }
    case OpClass::convolution:
    case OpClass::window:
      return has("kernel_shape") && has("strides") && has("dilations") && has("pads") && !has("auto_pad") && !has("ceil_mode") &&
             !has("storage_order") && node.inputs.size() < 3;
    default: return node.op != OpKind::Pad || (node.inputs.size() == 3 && !has("mode"));
  }
}

// The node's primitives in its place; its outputs keep their tensors.
Status rewrite(Graph& graph, const Node& node, std::set<std::string>& names) {
  composites::Rule* const rule = composites::rule_of(node.op);
  if (rule == nullptr) return fail({ErrorCode::kInternal, "a composite has no rule", place_of(node)});
  composites::Writer w(graph, node, names);
  const std::vector<TensorId> outputs = rule(w);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!w.wants(i)) continue;
    const TensorId wanted = node.outputs[i];
    const TensorId found = w.cast(outputs[i], graph.tensor(wanted).dtype, "narrow");
    if (!w.status) break;
    if (graph.tensor(found).shape != graph.tensor(wanted).shape || graph.tensor(found).dtype != graph.tensor(wanted).dtype)
      return fail({ErrorCode::kInternal, "a composite was rewritten wrongly", place_of(node), to_text(graph.tensor(wanted)),
                   to_text(graph.tensor(found))});
    // simplify() lets whatever made the result make the output itself.
    if (graph.tensor(found).constant) graph.tensor(wanted).constant = graph.tensor(found).constant;
    else w.made.push_back({OpKind::Identity, node.name, {found}, {wanted}, {}});
  }
  if (!w.status) {
    Error error = w.status.error();
    error.place = place_of(node);
    return fail(std::move(error));
  }
  graph.nodes.insert(graph.nodes.end(), std::make_move_iterator(w.made.begin()), std::make_move_iterator(w.made.end()));
  return ok();
}
}  // namespace
bool is_primitive(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return is_primitive(node); });
}

Result<Graph> decompose(Graph graph) {
  if (is_primitive(graph)) return graph;
  std::vector<Node> given = std::move(graph.nodes);
  graph.nodes.clear();
  std::set<std::string> names;
  for (const Tensor& tensor : graph.tensors) names.insert(tensor.name);
  for (const Node& node : given)
    if (is_primitive(node)) graph.nodes.push_back(node);
    else WARPLOOM_CHECK(rewrite(graph, node, names));
  return simplify(std::move(graph));
}
}  // namespace warploom::graph
