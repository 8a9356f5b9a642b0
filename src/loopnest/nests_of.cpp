// The nests of a graph: one for each group of outputs of equal shape, or for each piece of a
// Concat. Outputs of other shapes (the statistics of rows beside the rows, a result under another
// shape) join a group where one nest computes fewer values than the two would.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

namespace {
// Outputs that one nest computes, or that one for each piece of a Concat does.
struct Computed {
  OutputGroup outputs;
  std::vector<LoopNest> nests;
};

// Adds outputs to those that another nest computes; false where nothing is shared by that.
bool join(Computed& to, const Computed& more, const Graph& graph, ReadWork& work) {
  if (to.nests.size() != 1 || more.nests.size() != 1) return false;
  OutputGroup both = to.outputs;
  both.insert(both.end(), more.outputs.begin(), more.outputs.end());
  const Shape& shape = graph.tensor(both[0]).shape;
  ReadWork trial = work;
  auto nest = nest_of_part(graph, both, {Shape(shape.size(), 0), shape}, trial);
  const size_t apart = to.nests[0].values.size() + more.nests[0].values.size();
  if (!nest || nest->values.size() >= apart) return false;
  work = trial;
  to = {std::move(both), {std::move(*nest)}};
  return true;
}
}  // namespace

std::vector<LoopNest> nests_of(const Graph& graph, ReadWork* counted) {
  ReadWork uncounted;
  ReadWork& work = counted ? *counted : uncounted;
  const auto is_empty = [&](TensorId id) {
    return graph::element_count(graph.tensor(id).shape) == 0;
  };
  if (std::ranges::any_of(graph.outputs, is_empty)) return {};
  std::vector<Computed> all;
  for (const OutputGroup& group : output_groups(graph)) {
    Computed own{group, {}};
    for (const Part& part : parts_of(graph, group)) {
      auto nest = nest_of_part(graph, group, part, work);
      if (!nest) return {};
      own.nests.push_back(std::move(*nest));
    }
    const auto takes = [&](Computed& other) { return join(other, own, graph, work); };
    if (std::ranges::none_of(all, takes)) all.push_back(std::move(own));
  }
  std::vector<LoopNest> nests;
  for (Computed& each : all)
    std::ranges::move(each.nests, std::back_inserter(nests));
  return nests;
}
}  // namespace warploom::loopnest
