#include "loopnest/graph_reader.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "loopnest/affine.h"
#include "loopnest/axis_builder.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
using graph::AxisSource, graph::AxisSources;
using graph::Graph, graph::Node, graph::OpClass, graph::OpKind, graph::Shape, graph::TensorId;
using graph::kAbsent;
using graph::Tensor;

namespace {
constexpr int kMostDepth = 1024;  // of readings within readings: each takes a part of the stack

Affine times(const Affine& coordinate, int64_t factor) {
  Affine product;
  add(product, coordinate, factor);
  return product;
}

int64_t most_places(const Graph& graph) {
  constexpr int64_t kAlways = 8192;
  constexpr int64_t kEach = 16;
  return kAlways + kEach * std::ssize(graph.nodes);
}

std::vector<const Node*> producers_in(const Graph& graph) {
  std::vector<const Node*> producers(graph.tensors.size(), nullptr);
  for (const Node& node : graph.nodes)
    for (const TensorId id : node.outputs)
      if (id != kAbsent) producers[as_size(id)] = &node;
  return producers;
}

// By tensor: how many reductions it is made by, one after another.
std::vector<int> reductions_before(const Graph& graph) {
  std::vector<int> counts(graph.tensors.size(), 0);
  for (const Node& node : graph.nodes) {
    int most = 0;
    for (const TensorId id : node.inputs)
      if (id != kAbsent) most = std::max(most, counts[as_size(id)]);
    const OpClass own = class_of(node.op);
    const bool reduces = own != OpClass::pointwise && !only_moves(own);
    counts[as_size(node.outputs[0])] = most + (reduces ? 1 : 0);
  }
  return counts;
}
}  // namespace

GraphReader::GraphReader(const Graph& graph, AxisSplits& splits, ReadWork& work)
    : graph_(graph),
      work_(work),
      axes_(nest_.axes, splits),
      exprs_(nest_),
      producers_(producers_in(graph)),
      reductions_(reductions_before(graph)) {}

bool GraphReader::read_outputs(const std::vector<TensorId>& outputs, const Shape& begin,
                               const Shape& size) {
  Coordinates all;
  for (size_t d = 0; d < size.size(); ++d) {
    all.push_back(new_axis(size[d]));
    all.back().begin += begin[d];
  }
  for (const TensorId id : outputs) {
    const auto at = written_at(tensor(id).shape, all, tensor(outputs[0]).shape);
    const MaybeValue value = at ? read(id, *at) : std::nullopt;
    if (!value) return false;
    nest_.outputs.push_back({*value, access(id, *at)});
  }
  return true;
}

std::optional<Coordinates> GraphReader::written_at(const Shape& shape, const Coordinates& indices,
                                                   const Shape& sizes) {
  const auto stretches = [](int64_t own, int64_t large) { return own == large || own == 1; };
  if (std::ranges::equal(shape, sizes, stretches)) {
    Coordinates at = indices;
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] == 1) at[d] = {};
    return at;
  }
  // The first axes alone, or all of them, under another shape.
  const int64_t count = graph::element_count(shape);
  int64_t beyond = graph::element_count(sizes);
  Affine place;
  for (size_t d = 0; d < sizes.size() && beyond > 0; ++d) {
    beyond /= sizes[d];
    place = times(place, sizes[d]);
    add(place, indices[d]);
    if (count * beyond == graph::element_count(sizes)) return axes_.digits(place, shape);
  }
  // The same sizes, but for axes that the output does not go along.
  Coordinates at;
  size_t next = 0;
  for (const int64_t size : shape) {
    at.emplace_back();
    if (size == 1) continue;
    while (next < sizes.size() && sizes[next] != size)
      ++next;
    if (next == sizes.size()) return std::nullopt;
    at.back() = indices[next++];
  }
  return at;
}

GraphReader::MaybeValue GraphReader::read(TensorId id, const Coordinates& at) {
  const auto key = std::pair(id, at);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  ++work_.places;
  work_.too_large |= work_.places > most_places(graph_) || depth_ >= kMostDepth;
  if (work_.too_large) return std::nullopt;
  read_at_[id].push_back(at);
  if (graph::element_count(tensor(id).shape) == 0) return std::nullopt;
  ++depth_;
  MaybeValue value;
  if (is_stored(id))
    value = read_stored(id, at);
  else
    value = read_node(producer_of(id), id, at);
  --depth_;
  if (!value || work_.too_large || !is_exact(id, *value)) return std::nullopt;
  known_[key] = *value;
  return value;
}

// Whether the value is that of the tensor: integers are computed exactly, or moved as they are, or
// what a float was cut to.
bool GraphReader::is_exact(TensorId id, int value) const {
  const Dtype dtype = tensor(id).dtype;
  if (is_float(dtype) || dtype == Dtype::boolean || exprs_.holds_exactly(dtype, value)) return true;
  const Expr& of = nest_.value(value);
  if (of.integers || of.kind == Kind::index || of.kind == Kind::constant) return true;
  if (of.kind == Kind::load) return is_integer(nest_.load_of(of).dtype);
  const Node& producer = producer_of(id);
  return producer.op == OpKind::Cast && is_float(input(producer, 0).dtype);
}

GraphReader::MaybeValue GraphReader::read_stored(TensorId id, const Coordinates& at) {
  constexpr double kExactInDouble = 0x1p53;
  const auto scalar = constant_scalar(graph_, id);
  if (scalar && (tensor(id).dtype != Dtype::i64 || std::abs(*scalar) < kExactInDouble))
    return exprs_.constant(*scalar);
  if (auto index = even_steps_of(id, at)) return exprs_.index(*std::move(index));
  return exprs_.load(access(id, at));
}

// Of a constant table of integers that rise evenly along its dimensions: the element at these
// coordinates, as a number.
std::optional<Affine> GraphReader::even_steps_of(TensorId id, const Coordinates& at) const {
  const Tensor& table = tensor(id);
  if (!table.constant || !is_integer(table.dtype) || table.dtype == Dtype::boolean)
    return std::nullopt;
  const int64_t count = graph::element_count(table.shape);
  const auto element = [&](int64_t i) {
    return load_integer(table.dtype, table.constant->data(), i);
  };
  const auto is_index = [](int64_t value) { return std::abs(value) <= kLongestAxis; };
  const int64_t first = element(0);
  if (!is_index(first) || !is_index(element(count - 1))) return std::nullopt;
  const Shape strides = graph::strides_of(table.shape);
  Affine index{first, {}};
  Shape steps;
  for (size_t d = 0; d < at.size(); ++d) {
    steps.push_back(table.shape[d] > 1 ? element(strides[d]) - first : 0);
    add(index, at[d], steps[d]);
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t even = first;
    for (size_t d = 0; d < at.size(); ++d)
      even += i / strides[d] % table.shape[d] * steps[d];
    if (element(i) != even) return std::nullopt;
  }
  return index;
}

GraphReader::MaybeValue GraphReader::read_node(const Node& node, TensorId id,
                                               const Coordinates& at) {
  switch (class_of(node.op)) {
    case OpClass::pointwise: return read_pointwise(node, id, at);
    case OpClass::view: return read_view(node, at);
    case OpClass::movement: return read_movement(node, at);
    case OpClass::contraction: return read_contraction(node, at);
    case OpClass::convolution: return read_convolution(node, at);
    case OpClass::window: return read_window(node, at);
    case OpClass::reduction: return read_reduction(node, at);
    case OpClass::scan: return read_scan(node, at);
    default: return std::nullopt;
  }
}

std::optional<Coordinates> GraphReader::source_of(const Node& node, size_t i, const Coordinates& at,
                                                  const Combined& combined) const {
  const auto rule = axis_sources(graph_, node, i);
  if (!rule) return std::nullopt;
  return read_by(*rule, input(node, i).shape, at, combined);
}

std::optional<Coordinates> GraphReader::read_by(const AxisSources& rule, const Shape& shape,
                                                const Coordinates& at,
                                                const Combined& combined) const {
  Coordinates out(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const AxisSource& from = rule[d];
    const bool whole = from.axis == AxisSource::kWhole;
    const bool moves = whole || from.taps > 1;
    if (whole && shape[d] == 1) continue;
    if (moves && !combined) return std::nullopt;
    if (!whole) {
      add(out[d], at[as_size(from.axis)], from.step);
      out[d].begin += from.begin;
    }
    const int64_t extent = whole ? shape[d] : from.taps;
    if (moves) add(out[d], combined(d, extent), from.dilation);
  }
  return out;
}

Affine GraphReader::new_axis(int64_t size) {
  Affine axis = axes_.add_axis(size);
  work_.too_large |= axes_.too_many();
  return axis;
}

Access GraphReader::access(TensorId id, const Coordinates& at) const {
  const Tensor& t = tensor(id);
  const Shape strides = graph::strides_of(t.shape);
  Access out{id, t.name, t.dtype, t.shape, strides, at};
  out.in_bounds = axes_.in_bounds(at, t.shape);
  return out;
}

const Node& GraphReader::producer_of(TensorId id) const {
  return *producers_[as_size(id)];
}

bool GraphReader::is_stored(TensorId id) const {
  return producers_[as_size(id)] == nullptr || tensor(id).constant;
}
}  // namespace warploom::loopnest
