// The meaning of a graph again, one element at a time in plain loops, every tensor whole, sharing
// no sum with the reference: tests hold the fast evaluation against it.
#pragma once
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include "graph/box.h"
#include "graph/operators.h"
#include "graph/pointwise.h"
#include "graph/reference.h"
#include "graph/scalar_function.h"

namespace warploom::graph {
using Values = std::vector<double>;

// What call(columns of one element, where the result goes) gives of x.
template <class Call> double element_of(Values x, const Call& call) {
  std::vector<Column> columns;
  for (double& value : x)
    columns.push_back({&value});
  double result = 0;
  call(columns, Column{&result});
  return result;
}

inline double element_of(const ScalarFunction& f, Values x) {
  return element_of(std::move(x),
                    [&](const auto& columns, const Column& to) { f(1, columns, to); });
}

// The flat index into `shape` of the element that broadcasting puts at `coordinates`.
inline int64_t broadcast_index(const Shape& shape, const std::vector<int64_t>& coordinates) {
  const size_t skipped = coordinates.size() - shape.size();
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    flat = flat * shape[i] + (shape[i] == 1 ? 0 : coordinates[skipped + i]);
  return flat;
}

// Where single elements of a movement's output come from: an input and coordinates in it, by the
// access rules. What a Pad adds comes from its third input, or from nowhere, which is 0.
class Origins {
 public:
  static constexpr size_t kNowhere = ~size_t{0};

  struct Origin {
    size_t input;
    Shape at;
  };

  explicit Origins(const NodeContext& question);
  // `index` reads an element of Gather's second input; it is not called for other operators.
  Origin operator()(const Shape& out, const std::function<int64_t(const Shape&)>& index) const;

 private:
  std::vector<size_t> inputs_;  // those that are read
  std::vector<AxisSources> access_;
  std::vector<Shape> shapes_;
  bool gathers_;
};

inline Origins::Origins(const NodeContext& context) : gathers_(context.node.op == OpKind::Gather) {
  for (size_t i = 0; i < context.node.inputs.size(); ++i)
    if (auto access =
            context.has(i) ? axis_sources(context.graph, context.node, i) : std::nullopt) {
      inputs_.push_back(i);
      access_.push_back(std::move(*access));
      shapes_.push_back(context.in(i).shape);
    }
}

inline Origins::Origin Origins::operator()(
    const Shape& out, const std::function<int64_t(const Shape&)>& index) const {
  const auto read = [&](size_t input, int64_t chosen) {
    Shape at;
    for (const AxisSource& source : access_[input])
      at.push_back(source.axis == AxisSource::kWhole
                       ? chosen
                       : source.begin + source.step * out[static_cast<size_t>(source.axis)]);
    return at;
  };
  int64_t chosen = 0;
  if (gathers_) {
    const auto axis =
        std::find_if(access_[0].begin(), access_[0].end(),
                     [](const AxisSource& source) { return source.axis == AxisSource::kWhole; });
    const int64_t size = shapes_[0][static_cast<size_t>(axis - access_[0].begin())];
    chosen = index(read(1, 0));
    chosen = std::clamp<int64_t>(chosen < 0 ? chosen + size : chosen, 0,
                                 size - 1);  // outside: undefined
  }
  for (size_t i = 0; i < access_.size(); ++i) {
    Shape at = read(i, chosen);
    const auto inside = [](int64_t x, int64_t size) { return x >= 0 && x < size; };
    if (gathers_ || std::equal(at.begin(), at.end(), shapes_[i].begin(), inside))
      return {inputs_[i], at};
  }
  return {kNowhere, {}};
}

inline Values read(Dtype dtype, Bytes bytes) {
  Values values(bytes.size() / static_cast<size_t>(bytes_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = load_as_double(dtype, bytes.data(), i);
  return values;
}

// Element [coordinates] of a tensor, broadcasting over leading axes.
inline double at(const Values& values, const Shape& shape, const Shape& coordinates) {
  return values[static_cast<size_t>(broadcast_index(shape, coordinates))];
}

inline double product_element(const Graph& graph, const Node& node, const Values& a,
                              const Values& b, Shape where) {
  Shape as = graph.tensor(node.inputs[0]).shape;
  Shape bs = graph.tensor(node.inputs[1]).shape;
  if (as.size() == 1) {
    as.insert(as.begin(), 1);
    where.insert(bs.size() == 1 ? where.end() : where.end() - 1, 0);
  }
  if (bs.size() == 1) {
    bs.push_back(1);
    where.push_back(0);
  }
  const size_t row = where.size() - 2;
  const size_t column = where.size() - 1;
  const int64_t depth = as.back();
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    Shape left = where;
    Shape right = where;
    left[column] = k;
    right[row] = k;
    sum += at(a, as, left) * at(b, bs, right);
  }
  return sum;
}

inline double softmax_element(const Node& node, const Values& x, const Shape& shape,
                              const Shape& where) {
  const auto axis = static_cast<size_t>(*normalized_axis(node.integer("axis"), shape.size(), ""));
  double top = -INFINITY;
  double sum = 0;
  Shape other = where;
  for (int pass = 0; pass < 2; ++pass)
    for (other[axis] = 0; other[axis] < shape[axis]; ++other[axis]) {
      const double value = at(x, shape, other);
      if (pass == 0)
        top = std::isnan(value) || std::isnan(top) ? NAN : std::max(top, value);
      else
        sum += std::exp(value - top);
    }
  const double own = at(x, shape, where) - top;
  return node.op == OpKind::LogSoftmax ? own - std::log(sum) : std::exp(own) / sum;
}

// What an element of the output looks at in the first input: so many elements along each axis, from
// `begin` on, `step` apart.
struct Looked {
  Shape size;
  Shape begin;
  Shape step;

  explicit Looked(size_t rank) : size(rank, 1), begin(rank, 0), step(rank, 1) {}
};

inline Looked looked_at_by_reduction(const Node& node, const Shape& in, const Shape& where) {
  Looked looked(in.size());
  const auto over = node.integers("axes");
  const bool keeps = node.integer("keepdims") != 0;
  size_t kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool gone = std::find(over.begin(), over.end(), static_cast<int64_t>(i)) != over.end();
    if (gone)
      looked.size[i] = in[i];
    else
      looked.begin[i] = where[kept];
    kept += !gone || keeps ? 1 : 0;
  }
  return looked;
}

inline Looked looked_at_by_window(const Graph& graph, const Node& node, const Shape& in,
                                  const Shape& where) {
  Looked looked(in.size());
  looked.begin = where;
  for (size_t i = 2; i < in.size(); ++i) {
    const int64_t stride = node.integers("strides")[i - 2];
    looked.begin[i] = where[i] * stride - node.integers("pads")[i - 2];
    looked.step[i] = node.integers("dilations")[i - 2];
    looked.size[i] = node.integers("kernel_shape")[i - 2];
  }
  if (node.op == OpKind::Conv) {
    const int64_t group = node.integer("group");
    const int64_t rows = graph.tensor(node.inputs[1]).shape[0] / group;
    looked.size[1] = in[1] / group;
    looked.begin[1] = where[1] / rows * looked.size[1];
  }
  return looked;
}

// How elements that are looked at become one: a sum, a product, the least or the greatest.
struct Combination {
  explicit Combination(OpKind op)
      : product(op == OpKind::ReduceProd),
        least(op == OpKind::ReduceMin),
        most(op == OpKind::ReduceMax || op == OpKind::MaxPool) {}

  double first(Dtype dtype) const {
    if (dtype == Dtype::boolean) return least || product ? 1 : 0;
    double value = product ? 1 : 0;
    if (least) value = INFINITY;
    if (most) value = -INFINITY;
    return is_float(dtype) ? value : rounded(dtype, value);
  }

  double add(double value, double element) const {
    if (product) return value * element;
    if (std::isnan(element) || std::isnan(value)) return NAN;
    if (most) return std::max(value, element);
    return least ? std::min(value, element) : value + element;
  }

  bool product;
  bool least;
  bool most;
};

// A reduction, window or convolution: element by element over whatever the output's element looks
// at.
inline double reduced_element(const Graph& graph, const Node& node, const Values& x,
                              const Values& w, const Shape& where) {
  const Shape& in = graph.tensor(node.inputs[0]).shape;
  const Looked looked = class_of(node.op) == OpClass::reduction
                            ? looked_at_by_reduction(node, in, where)
                            : looked_at_by_window(graph, node, in, where);
  const Combination combination(node.op);
  const Dtype dtype = graph.tensor(node.outputs[0]).dtype;
  double value = combination.first(dtype);
  for (int64_t i = 0; i < element_count(looked.size); ++i) {
    Shape tap = coordinates_of(looked.size, i);
    Shape from = looked.begin;
    bool inside = true;
    for (size_t k = 0; k < in.size(); ++k) {
      from[k] += tap[k] * looked.step[k];
      inside = inside && from[k] >= 0 && from[k] < in[k];
    }
    if (!inside) continue;
    double e = at(x, in, from);
    tap[0] = where.size() > 1 ? where[1] : 0;
    if (node.op == OpKind::Conv) e *= at(w, graph.tensor(node.inputs[1]).shape, tap);
    value = combination.add(value, e);
  }
  return is_float(dtype) ? value : wrapped(dtype, value);
}

inline double prefix_element(const Graph& graph, const Node& node, const Values& x,
                             const Shape& where) {
  const Shape& shape = graph.tensor(node.inputs[0]).shape;
  const Dtype dtype = graph.tensor(node.outputs[0]).dtype;
  const int64_t given = (*constant_integers(graph, node.inputs[1]))[0];
  const auto axis = static_cast<size_t>(*normalized_axis(given, shape.size(), ""));
  const bool reverse = node.integer("reverse") != 0;
  const int64_t begin = reverse ? where[axis] : 0;
  const int64_t end = reverse ? shape[axis] : where[axis] + 1;
  double sum = 0;
  Shape other = where;
  for (int64_t i = begin; i < end; ++i) {
    other[axis] = i;
    sum += at(x, shape, other);
  }
  return is_float(dtype) ? sum : wrapped(dtype, sum);
}

// Element i of a node's output.
inline double naive_element(const Graph& graph, const Node& node, const std::vector<Values>& values,
                            int64_t i) {
  const Tensor& out = graph.tensor(node.outputs[0]);
  const auto in = [&](size_t k) -> const Values& {
    return values[static_cast<size_t>(node.inputs[k])];
  };
  const auto shape = [&](size_t k) -> const Shape& { return graph.tensor(node.inputs[k]).shape; };
  const Shape where = coordinates_of(out.shape, i);
  switch (class_of(node.op)) {
    case OpClass::contraction: {
      const double value = product_element(graph, node, in(0), in(1), where);
      return is_float(out.dtype) ? value : wrapped(out.dtype, value);
    }
    case OpClass::convolution:
    case OpClass::window:
    case OpClass::reduction: {
      const Values& second = in(node.inputs.size() > 1 ? 1 : 0);
      return reduced_element(graph, node, in(0), second, where);
    }
    case OpClass::scan: return prefix_element(graph, node, in(0), where);
    case OpClass::composite: return softmax_element(node, in(0), shape(0), where);
    case OpClass::pointwise: {
      Values arguments(node.inputs.size());
      const bool one = node.op == OpKind::CastLike || node.op == OpKind::Dropout;
      for (size_t k = 0; k < (one ? 1 : arguments.size()); ++k)
        if (node.inputs[k] != kAbsent) arguments[k] = at(in(k), shape(k), where);
      return element_of(scalar_function(graph, node), arguments);
    }
    case OpClass::view: return in(0)[static_cast<size_t>(i)];
    default: break;
  }
  const auto index = [&](const Shape& entry) {
    return static_cast<int64_t>(at(in(1), shape(1), entry));
  };
  const auto [input, from] = Origins({graph, node})(where, index);
  return input == Origins::kNowhere ? 0 : at(in(input), shape(input), from);
}

inline Result<std::vector<std::vector<double>>> evaluate_naive(const Graph& given,
                                                               std::span<const Bytes> inputs) {
  Graph graph = given;  // Softmax stays, if all else is primitive: its decomposition is tested
                        // against its definition
  const auto by_hand = [](const Node& node) {
    return node.op == OpKind::Softmax || node.op == OpKind::LogSoftmax;
  };
  if (!std::all_of(graph.nodes.begin(), graph.nodes.end(), by_hand)) {
    WARPLOOM_TRY(graph, decompose(given));
  }
  if (inputs.size() != graph.inputs.size())
    return fail({ErrorCode::kInternal, "wrong number of inputs for the reference", graph.name});
  std::vector<Values> values(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (graph.tensors[i].constant)
      values[i] = read(graph.tensors[i].dtype, *graph.tensors[i].constant);
  for (size_t i = 0; i < inputs.size(); ++i)
    values[static_cast<size_t>(graph.inputs[i])] =
        read(graph.tensor(graph.inputs[i]).dtype, inputs[i]);
  for (const Node& node : graph.nodes) {
    const Tensor& out = graph.tensor(node.outputs[0]);
    if (out.constant) continue;
    Values result(static_cast<size_t>(element_count(out.shape)));
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = naive_element(graph, node, values, static_cast<int64_t>(i));
    values[static_cast<size_t>(node.outputs[0])] = std::move(result);
  }
  std::vector<Values> outputs;
  for (TensorId id : graph.outputs)
    outputs.push_back(values[static_cast<size_t>(id)]);
  return outputs;
}
}  // namespace warploom::graph
