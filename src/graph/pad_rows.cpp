// pad_rows_to_sectors(): what a convolution makes for a pool lies in rows of whole sectors.
//
//   maxpool(relu(conv(x) + b))     conv(x) f32 [n,c,55,55]: padded by one more column, [n,c,55,56],
//   which the pool does not read
//
// Rows of 220 bytes begin within a sector of 32, and a store of 8 neighbours writes parts of two:
// the L2 takes twice as long over them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kSector = 32;  // bytes
constexpr int64_t kMost = 16;    // rows grow by one part in so many at most

// Elements of a row of whole sectors.
int64_t padded_width(const Tensor& tensor) {
  return round_up(tensor.shape.back(), kSector / bytes_of(tensor.dtype));
}

// Whether a pool reads the same windows of wider rows, and rows are to be wider by not too much.
bool gains_by_padding(const Tensor& read, const Node& pool) {
  const List pads = pool.integers("pads");
  const int64_t width = read.shape.back();
  const int64_t more = padded_width(read) - width;
  if (more == 0 || more * kMost > width || pads.back() != 0) return false;
  const int64_t kernel = pool.integers("kernel_shape").back();
  const int64_t reach = (kernel - 1) * pool.integers("dilations").back() + 1;
  const int64_t left = width + pads[pads.size() / 2 - 1] - reach;
  const int64_t stride = pool.integers("strides").back();
  return left / stride == (left + more) / stride;
}

// What makes a pool's input of convolutions, with nothing but arithmetic of an element, and
// operands that lack the rows' axis, between, and nobody else who reads it; none where there is
// nothing to gain.
std::vector<Node> makers_of(const Graph& graph, const Node& pool) {
  if (class_of(pool.op) != OpClass::window) return {};
  const Tensor& read = graph.tensor(pool.inputs[0]);
  if (!gains_by_padding(read, pool)) return {};
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
    const auto readers = graph.consumers(made);
    const bool known_readers = std::ranges::all_of(readers, is_known);
    const bool is_read_elsewhere = contains(graph.outputs, made) || !known_readers;
    if (is_read_elsewhere || (node.op != OpKind::Conv && !pointwise)) return {};
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
  if (!wanted.empty()) return {};
  return {makers.rbegin(), makers.rend()};
}

// A pool and what makes its input, with wider rows between.
Result<Outputs> padded(PrimitiveWriter& writer, const std::vector<Node>& makers) {
  const Tensor& read = writer.graph.tensor(writer.raw(0));
  const int64_t more = padded_width(read) - read.shape.back();
  std::map<TensorId, TensorId> made;
  for (Node node : makers) {
    for (TensorId& input : node.inputs)
      if (made.contains(input)) input = made.at(input);
    if (node.op == OpKind::Conv) {
      List pads = node.integers("pads");
      pads.back() += more * node.integers("strides").back();
      node.attributes["pads"] = std::move(pads);
    }
    TensorId& wide = made[node.outputs[0]];
    wide = writer.make(node.op, std::move(node.inputs), "wide", std::move(node.attributes));
  }
  const Node& pool = writer.node;
  const TensorId padded = made.at(writer.raw(0));
  const TensorId y = writer.make(pool.op, {padded}, "windows", pool.attributes);
  return Outputs{y};
}
}  // namespace

Result<Graph> pad_rows_to_sectors(Graph graph) {
  std::map<TensorId, std::vector<Node>> makers;  // by what the pool makes
  for (const Node& node : graph.nodes)
    if (auto nodes = makers_of(graph, node); !nodes.empty())
      makers[node.outputs[0]] = std::move(nodes);
  const auto stays = [&](const Graph&, const Node& node) {
    return !makers.contains(node.outputs[0]);
  };
  return rewritten(std::move(graph), stays, [&](PrimitiveWriter& writer) {
    return padded(writer, makers.at(writer.node.outputs[0]));
  });
}
}  // namespace warploom::graph
