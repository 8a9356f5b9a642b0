// The nests of a graph: one for each group of outputs of equal shape, or for each piece of a
// Concat.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "loopnest/axis_builder.h"
#include "loopnest/graph_reader.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
using graph::Graph, graph::Node, graph::OpClass, graph::OpKind, graph::Shape, graph::TensorId;
using OutputGroup = std::vector<TensorId>;  // the largest first

// A box of the outputs of a group.
struct Part {
  Shape begin;
  Shape size;
};

std::optional<LoopNest> nest_of_part(const Graph& graph, const OutputGroup& outputs,
                                     const Part& part, ReadWork& work) {
  constexpr int kMostSplits = 32;
  AxisSplits splits;
  for (int i = 0; i < kMostSplits; ++i) {
    GraphReader reader(graph, splits, work);
    if (reader.read_outputs(outputs, part.begin, part.size)) return normal_form(reader.take_nest());
    if (!reader.split_requested() || work.too_large) return std::nullopt;
  }
  return std::nullopt;
}

// The Concat that an output is, with pointwise operators behind it; null where there is none.
const Node* concat_behind(const Graph& graph, TensorId id, std::set<TensorId>& seen) {
  if (!seen.insert(id).second) return nullptr;
  const int producer = graph.producer(id);
  if (producer < 0) return nullptr;
  const Node& node = graph.nodes[as_size(producer)];
  if (node.op == OpKind::Concat) return &node;
  if (class_of(node.op) != OpClass::pointwise) return nullptr;
  for (const TensorId from : node.inputs) {
    if (from == graph::kAbsent || graph.tensor(from).shape != graph.tensor(id).shape) continue;
    if (const Node* const found = concat_behind(graph, from, seen)) return found;
  }
  return nullptr;
}

// Outputs join the first group whose largest one they broadcast to.
std::vector<OutputGroup> output_groups(const Graph& graph) {
  std::vector<OutputGroup> groups;
  for (const TensorId id : graph.outputs) {
    const Shape& shape = graph.tensor(id).shape;
    const auto stretches = [](int64_t own, int64_t large) { return own == large || own == 1; };
    const auto fits = [&](const OutputGroup& group) {
      const Shape& of_group = graph.tensor(group[0]).shape;
      return std::ranges::equal(shape, of_group, stretches);
    };
    const auto group = std::ranges::find_if(groups, fits);
    if (group == groups.end())
      groups.push_back({id});
    else
      group->push_back(id);
  }
  return groups;
}

// The pieces of a Concat are written one by one; other outputs whole.
std::vector<Part> parts_of(const Graph& graph, const OutputGroup& group) {
  const Shape& shape = graph.tensor(group[0]).shape;
  const Part whole{Shape(shape.size(), 0), shape};
  std::set<TensorId> seen;
  const Node* concat = nullptr;
  if (group.size() == 1) concat = concat_behind(graph, group[0], seen);
  if (!concat) return {whole};
  const graph::NodeContext context{graph, *concat};
  const size_t axis = context.axis(shape.size());
  std::vector<Part> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < concat->inputs.size(); ++i) {
    Part part = whole;
    part.begin[axis] = begin;
    part.size[axis] = context.in(i).shape[axis];
    begin += part.size[axis];
    if (part.size[axis] > 0) parts.push_back(std::move(part));
  }
  return parts;
}
}  // namespace

std::vector<LoopNest> nests_of(const Graph& graph, ReadWork* counted) {
  ReadWork uncounted;
  ReadWork& work = counted ? *counted : uncounted;
  const auto is_empty = [&](TensorId id) {
    return graph::element_count(graph.tensor(id).shape) == 0;
  };
  if (std::ranges::any_of(graph.outputs, is_empty)) return {};
  std::vector<LoopNest> nests;
  for (const OutputGroup& group : output_groups(graph))
    for (const Part& part : parts_of(graph, group)) {
      auto nest = nest_of_part(graph, group, part, work);
      if (!nest) return {};
      nests.push_back(std::move(*nest));
    }
  return nests;
}
}  // namespace warploom::loopnest
