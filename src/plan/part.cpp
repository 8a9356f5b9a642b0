#include "plan/part.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/memory_plan.h"
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::Node, graph::OpKind;

// Along one axis: [begin, begin + count).
struct Cut {
  int64_t begin = 0;
  int64_t count = 0;
};

std::optional<std::vector<Cut>> cuts_of(const Graph& graph, const Node& node) {
  const auto& shape = graph.tensor(node.inputs[0]).shape;
  const auto sources = graph::axis_sources(graph, node, 0);
  if (!sources) return std::nullopt;
  const auto& out = graph.tensor(node.outputs[0]).shape;
  std::vector<Cut> cuts;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const graph::AxisSource& source = (*sources)[axis];
    const bool is_whole = source.axis == graph::AxisSource::kWhole;
    if (node.op == OpKind::Gather && is_whole) {
      const auto index = graph::constant_integers(graph, node.inputs[1]);
      if (!index || index->size() != 1 || index->front() < 0) return std::nullopt;
      cuts.push_back({index->front(), 1});
      continue;
    }
    if (is_whole || source.step != 1) return std::nullopt;
    cuts.push_back({source.begin, out[as_size(source.axis)]});
  }
  return cuts;
}
}  // namespace

std::optional<int64_t> begin_of_part(const Graph& graph, const Node& node) {
  if (node.op != OpKind::Slice && node.op != OpKind::Gather) return std::nullopt;
  const graph::Tensor& from = graph.tensor(node.inputs[0]);
  if (bits_of(from.dtype) % 8 != 0) return std::nullopt;
  const auto cuts = cuts_of(graph, node);
  if (!cuts) return std::nullopt;
  const auto strides = graph::strides_of(from.shape);
  int64_t begin = 0;
  bool single = true;  // one element along every axis so far
  for (size_t axis = 0; axis < cuts->size(); ++axis) {
    const auto& [first, count] = (*cuts)[axis];
    if (!single && count != from.shape[axis]) return std::nullopt;
    begin += first * strides[axis];
    single = single && count == 1;
  }
  const int64_t bytes = begin * bytes_of(from.dtype);
  return bytes % kWorkspaceAlignment == 0 ? std::optional(bytes) : std::nullopt;
}

bool lies_in_pieces(const Graph& graph, const Node& concat) {
  const auto& shape = graph.tensor(concat.outputs[0]).shape;
  const size_t axis = graph::NodeContext{graph, concat}.axis(shape.size());
  const auto is_one = [](int64_t size) { return size == 1; };
  if (!std::ranges::all_of(shape.begin(), shape.begin() + as_int64(axis), is_one)) return false;
  return std::ranges::all_of(concat.inputs, [&](graph::TensorId id) {
    const int64_t bytes = graph::byte_count(graph.tensor(id));
    return bytes > 0 && bytes % kWorkspaceAlignment == 0;
  });
}
}  // namespace warploom::plan
