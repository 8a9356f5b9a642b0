#include "plan/region.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/ranges.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::Node, graph::TensorId;
using graph::kAbsent;
using graph::Ranges;
using graph::Tensor;

// A constant that is no floating-point data is held in the text up to so many elements.
constexpr int64_t kMostHeldElements = 1 << 16;

// 0, 1, 2 ..: of such a table kernels load nothing, however long it is.
bool counts_up(const Tensor& tensor) {
  const auto count = as_size(graph::element_count(tensor.shape));
  const void* const numbers = tensor.constant->data();
  for (size_t i = 0; i < count; ++i) {
    const double value = load_as_double(tensor.dtype, numbers, i);
    if (value != as_double(i)) return false;
  }
  return true;
}

// A number that a network may have learned: it has axes, as the bias of a layer with one output,
// and none of its readers makes anything of knowing it, as a power does of its exponent. Kernels
// load it, so that they are right with another.
bool is_learned(const Graph& graph, TensorId id) {
  using enum graph::OpKind;
  constexpr std::array kReaders = {Add, Sub, Mul, Div, PRelu, MatMul, Conv};
  const auto reads = [&](int n) { return contains(kReaders, graph.nodes[n].op); };
  if (graph.tensor(id).shape.empty()) return false;
  return std::ranges::all_of(graph.consumers(id), reads);
}

// "MatMul+Add+Gelu", the first few of long chains.
std::string name_of(const std::vector<Node>& nodes) {
  constexpr size_t kNamed = 6;
  const size_t named = std::min(nodes.size(), kNamed);
  const auto first = std::span(nodes).first(named);
  const auto name = [](const Node& node) { return graph::name_of(node.op); };
  const std::string more = nodes.size() > kNamed ? "+.." : "";
  return listed(first, name, "+") + more;
}

// Copies nodes and tensors of a whole graph into a region's, under the region's names.
class Cutter {
 public:
  Cutter(const Graph& whole, const std::vector<TensorId>& stored)
      : whole_(whole), stored_(stored) {}

  Region cut(const std::set<int>& nodes) {
    region_.nodes.assign(nodes.begin(), nodes.end());
    Graph& made = region_.graph;
    for (const int n : nodes) {
      const Node& from = whole_.nodes[n];
      const std::string name = fmt::format("n{}", made.nodes.size());
      Node to{from.op, name, {}, {}, from.attributes};
      for (const TensorId id : from.inputs)
        to.inputs.push_back(read(id));
      to.outputs = {make(from.outputs[0])};
      made.nodes.push_back(std::move(to));
    }
    for (const TensorId id : stored_)
      made.outputs.push_back(known_.at(id));
    made.name = name_of(made.nodes);
    region_.identity = graph::to_text(made);
    for (const Tensor& tensor : made.tensors) {
      if (!tensor.constant) continue;
      const auto* const bytes = reinterpret_cast<const char*>(tensor.constant->data());
      region_.identity.append(bytes, tensor.constant->size());
    }
    return std::move(region_);
  }

 private:
  // A tensor that a node reads: known already, or from outside the region.
  TensorId read(TensorId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const bool constant = whole_.tensor(id).constant && !is_weight(whole_, id);
    if (constant) return add(id, fmt::format("c{}", constants_++), true);
    const TensorId added = add(id, fmt::format("x{}", inputs_++), false);
    region_.graph.inputs.push_back(added);
    return added;
  }

  // A tensor that a node of the region makes.
  TensorId make(TensorId id) {
    const auto place = std::ranges::find(stored_, id);
    if (place == stored_.end()) return add(id, fmt::format("t{}", between_++), false);
    if (stored_.size() == 1) return add(id, "y", false);
    return add(id, fmt::format("y{}", place - stored_.begin()), false);
  }

  TensorId add(TensorId id, const std::string& name, bool constant) {
    const Tensor& from = whole_.tensor(id);
    const auto added = static_cast<TensorId>(region_.graph.tensors.size());
    Tensor copy{{name, from.dtype, from.shape}, std::nullopt};
    if (constant) copy.constant = from.constant;
    region_.graph.add_tensor(std::move(copy));
    region_.tensors.push_back(from.name);
    known_[id] = added;
    return added;
  }

  const Graph& whole_;
  const std::vector<TensorId>& stored_;
  Region region_;
  std::map<TensorId, TensorId> known_ = {{kAbsent, kAbsent}};
  int inputs_ = 0;
  int constants_ = 0;
  int between_ = 0;
};
}  // namespace

std::vector<std::string> Region::stored() const {
  std::vector<std::string> names;
  for (const TensorId id : graph.outputs)
    names.push_back(tensors[as_size(id)]);
  return names;
}

bool is_weight(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (!tensor.constant) return false;
  const int64_t count = graph::element_count(tensor.shape);
  if (!is_float(tensor.dtype)) return count > kMostHeldElements && !counts_up(tensor);
  return count > 1 || (count == 1 && is_learned(graph, id));
}

std::vector<TensorId> inputs_of(const Graph& graph, const std::set<int>& nodes) {
  std::set<TensorId> made = {kAbsent};
  for (const int n : nodes)
    made.insert(graph.nodes[n].outputs[0]);
  std::vector<TensorId> inputs;
  for (const int n : nodes)
    for (const TensorId id : graph.nodes[n].inputs)
      if (!made.contains(id) && !contains(inputs, id)) inputs.push_back(id);
  return inputs;
}

Region region_of(const Graph& graph, const std::set<int>& nodes,
                 const std::vector<TensorId>& stored) {
  return Cutter(graph, stored).cut(nodes);
}

void add_ranges(Region& region, const Ranges& whole) {
  const Ranges own = graph::ranges_of(region.graph);
  for (const TensorId id : region.graph.inputs) {
    const std::string& name = region.graph.tensor(id).name;
    const auto range = graph::range_in(whole, region.tensors[as_size(id)]);
    if (range == graph::range_in(own, name)) continue;
    region.ranges[name] = range;
    region.identity += fmt::format("{}: {}\n", name, graph::to_text(range));
  }
}
}  // namespace warploom::plan
