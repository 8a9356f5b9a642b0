#include "graph/elements.h"
#include <algorithm>
#include <cmath>
#include <numbers>
#include "graph/pointwise.h"
#include "graph/reference.h"
namespace warploom::graph {
namespace {
using F = const ScalarFunction&;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNaN : a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNaN : a < b ? a : b; }

double divide(const double* x, F self) {
  if (is_float(self.dtype)) return x[0] / x[1];
  return x[1] == 0 ? 0 : std::trunc(x[0] / x[1]);
}
double modulo(const double* x, F self) {  // by 0 gives 0
  if (x[1] == 0) return 0;
  const double rest = std::fmod(x[0], x[1]);
  return self.parameters[0] == 0 && rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}
double fold_max(const double* x, F self) {
  double best = x[0];
  for (int i = 1; i < self.inputs; ++i) best = larger(best, x[i]);
  return best;
}
double fold_min(const double* x, F self) {
  double best = x[0];
  for (int i = 1; i < self.inputs; ++i) best = smaller(best, x[i]);
  return best;
}
double clip(const double* x, F self) {  // parameters: whether there is a lower bound, an upper bound
  double value = x[0];
  if (self.parameters[0] != 0) value = larger(value, x[1]);
  if (self.parameters[1] != 0) value = smaller(value, x[2]);
  return value;
}
double gelu(const double* x, F self) {
  const double v = x[0];
  if (self.parameters[0] == 0) return 0.5 * v * std::erfc(-v / std::numbers::sqrt2);
  const double inner = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
  return v / (1 + std::exp(-2 * inner));  // (1 + tanh t) / 2 without its cancellation
}
double softplus(double v) { return larger(v, 0) + std::log1p(std::exp(-std::fabs(v))); }

double plain(const double* x, F self) {
  const int arity = arity_of(self.operation);
  return apply(self.operation, x[0], arity > 1 ? x[1] : 0, arity > 2 ? x[2] : 0);
}
double same(const double* x, F) { return x[0]; }  // Identity, Dropout, casts

// Operators that are more than one operation.
struct Row {
  OpKind op;
  double (*function)(const double*, F);
};
const Row kFunctions[] = {
    {OpKind::Div, divide},
    {OpKind::Pow, [](const double* x, F) { return std::pow(x[0], x[1]); }},
    {OpKind::Max, fold_max},
    {OpKind::Min, fold_min},
    {OpKind::LeakyRelu, [](const double* x, F self) { return x[0] < 0 ? self.parameters[0] * x[0] : x[0]; }},
    {OpKind::Clip, clip},
    {OpKind::Gelu, gelu},
    {OpKind::Elu, [](const double* x, F self) { return x[0] < 0 ? self.parameters[0] * std::expm1(x[0]) : x[0]; }},
    {OpKind::HardSigmoid,
     [](const double* x, F self) { return smaller(larger(self.parameters[0] * x[0] + self.parameters[1], 0), 1); }},
    {OpKind::HardSwish, [](const double* x, F) { return x[0] * smaller(larger(x[0] / 6 + 0.5, 0), 1); }},
    {OpKind::Softplus, [](const double* x, F) { return softplus(x[0]); }},
    {OpKind::Mish, [](const double* x, F) { return x[0] * std::tanh(softplus(x[0])); }},
    {OpKind::DequantizeLinear, [](const double* x, F self) { return (x[0] - (self.inputs > 2 ? x[2] : 0)) * x[1]; }},
    {OpKind::Greater, [](const double* x, F) { return x[0] > x[1] ? 1.0 : 0.0; }},
    {OpKind::LessOrEqual, [](const double* x, F) { return x[0] <= x[1] ? 1.0 : 0.0; }},
    {OpKind::GreaterOrEqual, [](const double* x, F) { return x[0] >= x[1] ? 1.0 : 0.0; }},
    {OpKind::And, [](const double* x, F) { return x[0] != 0 && x[1] != 0 ? 1.0 : 0.0; }},
    {OpKind::Or, [](const double* x, F) { return x[0] != 0 || x[1] != 0 ? 1.0 : 0.0; }},
    {OpKind::Xor, [](const double* x, F) { return x[0] != x[1] ? 1.0 : 0.0; }},
    {OpKind::Not, [](const double* x, F) { return x[0] == 0 ? 1.0 : 0.0; }},
    {OpKind::IsNaN, [](const double* x, F) { return std::isnan(x[0]) ? 1.0 : 0.0; }},
    {OpKind::IsInf,
     [](const double* x, F self) { return std::isinf(x[0]) && self.parameters[x[0] < 0 ? 1 : 0] != 0 ? 1.0 : 0.0; }},
    {OpKind::Sign, [](const double* x, F) { return x[0] > 0   ? 1
                                                   : x[0] < 0 ? -1
                                                              : x[0]; }},
    {OpKind::Ceil, [](const double* x, F) { return std::ceil(x[0]); }},
    {OpKind::Round, [](const double* x, F) { return std::nearbyint(x[0]); }},
    {OpKind::Mod, modulo},
    {OpKind::PRelu, [](const double* x, F) { return x[0] < 0 ? x[1] * x[0] : x[0]; }},
    {OpKind::ThresholdedRelu, [](const double* x, F self) { return x[0] > self.parameters[0] ? x[0] : 0; }},
    {OpKind::Selu,
     [](const double* x, F self) { return self.parameters[1] * (x[0] < 0 ? self.parameters[0] * std::expm1(x[0]) : x[0]); }},
    {OpKind::Celu,
     [](const double* x, F self) { return x[0] < 0 ? self.parameters[0] * std::expm1(x[0] / self.parameters[0]) : x[0]; }},
    {OpKind::Softsign, [](const double* x, F) { return x[0] / (1 + std::fabs(x[0])); }},
};

// Every value of `from` is a value of `to`.
bool holds(Dtype to, Dtype from) {
  if (to == from || to == Dtype::f64) return true;
  if (to != Dtype::f32) return is_float(to) && from == Dtype::boolean;
  return is_float(from) ? from != Dtype::f64 : bits_of(from) <= 8;
}

double largest_finite(Dtype dtype) { return dtype == Dtype::e4m3 ? 448 : 57344; }

bool is_cast(OpKind op) { return op == OpKind::Cast || op == OpKind::CastLike; }

void copy_element(const Tensor& from, std::int64_t index, std::vector<std::byte>& to, std::int64_t at) {
  const std::int64_t size = bytes_of(from.dtype);
  std::copy_n(from.constant->begin() + index * size, size, to.begin() + at * size);
}

void store_constant(Dtype dtype, std::vector<std::byte>& to, std::int64_t at, double value) {
  if (dtype == Dtype::i64) value = std::clamp(value, -0x1p63, 0x1p63 - 1024);
  store_from_double(dtype, to.data(), static_cast<std::size_t>(at), value);
}
}  // namespace
double wrapped(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (!std::isfinite(value)) return 0;
  const int bits = bits_of(dtype);
  const double span = std::ldexp(1.0, bits), whole = std::trunc(value);
  if (dtype != Dtype::u8 && std::fabs(whole) < span / 2) return whole;  // adding 2^64 would round it away
  double low = whole - span * std::floor(whole / span);                 // [0, span)
  if (dtype != Dtype::u8 && low >= span / 2) low -= span;
  return low;
}

double ScalarFunction::settled(double value) const {
  switch (settle) {
    case Settle::keep: return value;
    case Settle::wrap: return wrapped(dtype, value);
    case Settle::truth: return value != 0 ? 1 : 0;
    case Settle::clamp: return rounded(dtype, value);
    case Settle::round: {
      const double stored = rounded(dtype, value);
      if (saturate && !std::isnan(value) && !(std::fabs(stored) <= largest_finite(dtype)))
        return std::copysign(largest_finite(dtype), value);
      return stored;
    }
  }
  return value;
}

ScalarFunction scalar_function(const Graph& graph, const Node& node) {
  using Settle = ScalarFunction::Settle;
  ScalarFunction f;
  f.function = same;
  if (const auto op = plain_operation(node.op)) {
    f.function = plain;
    f.operation = *op;
  }
  for (const Row& row : kFunctions)
    if (row.op == node.op) f.function = row.function;
  f.inputs = static_cast<int>(node.inputs.size());
  f.dtype = graph.tensor(node.outputs[0]).dtype;
  f.parameters = {node.real("alpha"), node.real("beta")};
  const auto has = [&](std::size_t i) { return i < node.inputs.size() && node.inputs[i] != kAbsent; };
  if (node.op == OpKind::Clip) f.parameters = {has(1) ? 1.0 : 0.0, has(2) ? 1.0 : 0.0};
  if (node.op == OpKind::Mod) f.parameters[0] = node.integer("fmod") != 0 ? 1 : 0;
  if (node.op == OpKind::Selu) f.parameters[1] = node.real("gamma");
  if (node.op == OpKind::IsInf)
    f.parameters = {static_cast<double>(node.integer("detect_positive")), static_cast<double>(node.integer("detect_negative"))};
  if (node.op == OpKind::Gelu) f.parameters[0] = node.text("approximate") == "tanh" ? 1 : 0;

  const Dtype from = graph.tensor(node.inputs[0]).dtype;
  const bool moves = node.op == OpKind::Identity || node.op == OpKind::Dropout || node.op == OpKind::Where;
  if (f.dtype == Dtype::boolean) {
    f.settle = Settle::truth;
  } else if (!is_float(f.dtype)) {
    f.settle = moves ? Settle::keep : is_cast(node.op) && is_float(from) ? Settle::clamp : Settle::wrap;
  } else if (is_cast(node.op) && !holds(f.dtype, from)) {
    f.settle = Settle::round;
    f.saturate = bits_of(f.dtype) == 8 && node.integer("saturate", 1) != 0;
  }
  return f;
}

std::vector<std::int64_t> coordinates_of(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    at[i] = flat % shape[i];
    flat /= shape[i];
  }
  return at;
}

std::int64_t broadcast_index(const Shape& shape, const std::vector<std::int64_t>& coordinates) {
  const std::size_t skipped = coordinates.size() - shape.size();
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + (shape[i] == 1 ? 0 : coordinates[skipped + i]);
  return flat;
}

Origins::Origins(const Question& q) : gathers_(q.node.op == OpKind::Gather) {
  for (std::size_t i = 0; i < q.node.inputs.size(); ++i)
    if (auto access = q.has(i) ? operator_of(q.node.op).access(q, i) : std::nullopt) {
      inputs_.push_back(i);
      access_.push_back(std::move(*access));
      shapes_.push_back(q.in(i).shape);
    }
}

Origins::Origin Origins::operator()(const Shape& out, const std::function<std::int64_t(const Shape&)>& index) const {
  const auto read = [&](std::size_t input, std::int64_t chosen) {
    Shape at;
    for (const AxisSource& source : access_[input])
      at.push_back(source.axis == AxisSource::kWhole ? chosen
                                                     : source.begin + source.step * out[static_cast<std::size_t>(source.axis)]);
    return at;
  };
  std::int64_t chosen = 0;
  if (gathers_) {
    const auto axis = std::find_if(access_[0].begin(), access_[0].end(),
                                   [](const AxisSource& source) { return source.axis == AxisSource::kWhole; });
    const std::int64_t size = shapes_[0][static_cast<std::size_t>(axis - access_[0].begin())];
    chosen = index(read(1, 0));
    chosen = std::clamp<std::int64_t>(chosen < 0 ? chosen + size : chosen, 0, size - 1);  // outside: undefined
  }
  for (std::size_t i = 0; i < access_.size(); ++i) {
    Shape at = read(i, chosen);
    const auto inside = [](std::int64_t x, std::int64_t size) { return x >= 0 && x < size; };
    if (gathers_ || std::equal(at.begin(), at.end(), shapes_[i].begin(), inside)) return {inputs_[i], at};
  }
  return {kNowhere, {}};
}
namespace {
// A node as a graph of its own, evaluated; its inputs are constant.
bool fold_by_reference(Graph& graph, const Node& node) {
  Graph alone;
  std::int64_t elements = 0;
  const auto moved = [&](std::vector<TensorId> ids) {
    for (TensorId& id : ids) {
      if (id == kAbsent) continue;
      elements += element_count(graph.tensor(id).shape);
      id = alone.add_tensor(graph.tensor(id));
    }
    return ids;
  };
  alone.nodes.push_back({node.op, node.name, moved(node.inputs), moved(node.outputs), node.attributes});
  if (elements > 4 * kMaxFoldedElements) return false;
  std::copy_if(alone.nodes[0].outputs.begin(), alone.nodes[0].outputs.end(), std::back_inserter(alone.outputs),
               [](TensorId id) { return id != kAbsent; });
  const auto values = evaluate(alone, {}, 1);
  if (!values) return false;
  auto value = values->begin();
  for (TensorId id : node.outputs) {
    if (id == kAbsent) continue;
    Tensor& out = graph.tensor(id);
    out.constant.emplace(static_cast<std::size_t>(byte_count(out)));
    for (std::size_t i = 0; i < value->size(); ++i)
      store_constant(out.dtype, *out.constant, static_cast<std::int64_t>(i), (*value)[i]);
    ++value;
  }
  return true;
}
}  // namespace
bool fold(Graph& graph, const Node& node) {
  const OpClass kind = class_of(node.op);
  constexpr OpClass kNever[] = {OpClass::contraction, OpClass::convolution, OpClass::window, OpClass::softmax};
  if (std::find(std::begin(kNever), std::end(kNever), kind) != std::end(kNever) || node.op == OpKind::DequantizeLinear)
    return false;
  Tensor& out = graph.tensor(node.outputs[0]);
  const std::int64_t count = element_count(out.shape);
  if (count > kMaxFoldedElements) return false;
  std::vector<std::byte> bytes(static_cast<std::size_t>(byte_count(out)));
  if (node.op == OpKind::Shape) {
    const Shape& shape = graph.tensor(node.inputs[0]).shape;
    const auto [begin, end] = shape_range(node, shape.size());
    if (begin < end)
      std::copy_n(reinterpret_cast<const std::byte*>(shape.data() + begin), static_cast<std::size_t>(end - begin) * 8,
                  bytes.begin());
    out.constant = std::move(bytes);
    return true;
  }
  const auto is_known = [&](TensorId id) {  // of CastLike's second input only the type matters
    const bool type_only = node.op == OpKind::CastLike && id == node.inputs[1];
    return id == kAbsent || graph.tensor(id).constant || type_only;
  };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) return false;
  if (kind == OpClass::reduction || kind == OpClass::composite) return fold_by_reference(graph, node);
  if (kind == OpClass::view || node.op == OpKind::Identity) {
    bytes = *graph.tensor(node.inputs[0]).constant;
  } else if (kind == OpClass::movement) {
    const Origins origins({graph, node});
    const auto indices = node.op == OpKind::Gather ? constant_integers(graph, node.inputs[1]) : std::nullopt;
    const auto index = [&](const Shape& at) {
      return (*indices)[static_cast<std::size_t>(broadcast_index(graph.tensor(node.inputs[1]).shape, at))];
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const auto [input, at] = origins(coordinates_of(out.shape, i), index);
      if (input == Origins::kNowhere) continue;
      const Tensor& from = graph.tensor(node.inputs[input]);
      copy_element(from, broadcast_index(from.shape, at), bytes, i);
    }
  } else {
    const ScalarFunction f = scalar_function(graph, node);
    std::vector<double> values(node.inputs.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = coordinates_of(out.shape, i);
      for (std::size_t k = 0; k < values.size(); ++k) {
        if (node.inputs[k] == kAbsent || !graph.tensor(node.inputs[k]).constant) continue;
        const Tensor& in = graph.tensor(node.inputs[k]);
        const bool stretches = in.shape.size() <= out.shape.size();  // CastLike's second input need not
        values[k] = load_as_double(in.dtype, in.constant->data(),
                                   stretches ? static_cast<std::size_t>(broadcast_index(in.shape, at)) : 0);
      }
      store_constant(out.dtype, bytes, i, f(values.data()));
    }
  }
  out.constant = std::move(bytes);
  return true;
}
}  // namespace warploom::graph
