// align_rows(): what a convolution makes for a pool lies in rows of whole sectors.
//
//   maxpool(relu(conv(x) + b))     conv(x) f32 [n,c,55,55]: padded by one more column, [n,c,55,56],
//   which the pool does not read
//
// Rows of 220 bytes begin within a sector of 32, and a store of 8 neighbours writes parts of two:
// the L2 takes twice as long over them.
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// bytes; rows grow by one part in so many at most
constexpr int64_t kSector = 32;
constexpr int64_t kMost = 16;

// What makes a pool's input of convolutions, with nothing but arithmetic of an element, and
// operands that lack the rows' axis, between, and nobody else who reads it; none where there is
// nothing to gain.
std::vector<Node> makers_of(const Graph& graph, const Node& pool) {
  if (class_of(pool.op) != OpClass::window) return {};
  const Tensor& read = graph.tensor(pool.inputs[0]);
  const List pads = pool.integers("pads");
  const int64_t width = read.shape.back();
  const int64_t wide = round_up(width, kSector / bytes_of(read.dtype));
  const int64_t reach =
      (pool.integers("kernel_shape").back() - 1) * pool.integers("dilations").back() + 1;
  const int64_t left = width + pads[pads.size() / 2 - 1] - reach;
  const int64_t stride = pool.integers("strides").back();
  if (wide == width || (wide - width) * kMost > width || pads.back() != 0 ||
      left / stride != (left + wide - width) / stride)
    return {};
  std::set<TensorId> wanted = {pool.inputs[0]};
  std::set<TensorId> known = {pool.outputs[0]};
  std::vector<Node> makers;  // the last first
  for (auto at = graph.nodes.rbegin(); at != graph.nodes.rend(); ++at) {
    const Node& node = *at;
    const TensorId made = node.outputs[0];
    if (!wanted.erase(made)) continue;
    const auto is_known = [&](int reader) {
      return known.contains(graph.nodes[reader].outputs[0]);
    };
    const bool pointwise = class_of(node.op) == OpClass::pointwise;
    if (std::ranges::count(graph.outputs, made) > 0 ||
        !std::ranges::all_of(graph.consumers(made), is_known) ||
        (node.op != OpKind::Conv && !pointwise))
      return {};
    for (size_t i = 0; pointwise && i < node.inputs.size(); ++i) {
      const Shape& shape = graph.tensor(node.inputs[i]).shape;
      if (shape == read.shape)
        wanted.insert(node.inputs[i]);
      else if (!shape.empty() && shape.back() != 1)
        return {};
    }
    known.insert(made);
    makers.push_back(node);
  }
  return wanted.empty() ? std::vector(makers.rbegin(), makers.rend()) : std::vector<Node>{};
}
}  // namespace

Result<Graph> align_rows(Graph graph) {
  std::map<TensorId, std::vector<Node>> makers;  // by what the pool makes
  for (const Node& node : graph.nodes)
    if (auto nodes = makers_of(graph, node); !nodes.empty())
      makers[node.outputs[0]] = std::move(nodes);
  const auto stays = [&](const Graph&, const Node& node) {
    return !makers.contains(node.outputs[0]);
  };
  return rewritten(std::move(graph), stays, [&](Writer& w) -> Result<std::vector<TensorId>> {
    const Tensor& read = w.graph.tensor(w.raw(0));
    const int64_t width = read.shape.back();
    const int64_t more = round_up(width, kSector / bytes_of(read.dtype)) - width;
    std::map<TensorId, TensorId> made;
    for (Node node : makers.at(w.node.outputs[0])) {
      for (TensorId& input : node.inputs) input = made.contains(input) ? made.at(input) : input;
      if (node.op == OpKind::Conv) {
        List pads = node.integers("pads");
        pads.back() += more * node.integers("strides").back();
        node.attributes["pads"] = std::move(pads);
      }
      made[node.outputs[0]] =
          w.make(node.op, std::move(node.inputs), "wide", std::move(node.attributes));
    }
    return std::vector{w.make(w.node.op, {made.at(w.raw(0))}, "windows", w.node.attributes)};
  });
}
}  // namespace warploom::graph
