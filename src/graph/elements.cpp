#include <cmath>
#include "graph/evaluator.h"
namespace warploom::graph {
namespace {
// Every value of `from` is a value of `to`.
bool holds(Dtype to, Dtype from) {
  if (to == from || to == Dtype::f64) return true;
  if (to != Dtype::f32) return is_float(to) && from == Dtype::boolean;
  return is_float(from) ? from != Dtype::f64 : bits_of(from) <= 8;
}
}  // namespace
double wrapped(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (!std::isfinite(value)) return 0;
  const double span = std::ldexp(1.0, bits_of(dtype)), low = std::remainder(std::trunc(value), span);  // [-span/2, span/2]
  if (!is_signed(dtype)) return low < 0 ? low + span : low;
  return low == span / 2 ? -low : low;
}

void ScalarFunction::operator()(std::int64_t count, std::span<const Column> inputs, const Column& to) const {
  if (!power || to.magnitude) evaluate(expression, count, inputs, to);
  for (std::int64_t i = 0; i < count; ++i) {
    to.value[i] = settled(power ? std::pow(inputs[0].value[i], inputs[1].value[i]) : to.value[i]);
    if (to.magnitude && rounds && !std::isinf(to.value[i])) to.magnitude[i] += std::fabs(to.value[i]);
  }
}

ScalarFunction scalar_function(const Graph& graph, const Node& node) {
  ScalarFunction f{node.op == OpKind::Pow, *expression_of(graph, node)};
  const Dtype from = graph.tensor(node.inputs[0]).dtype, to = graph.tensor(node.outputs[0]).dtype;
  const bool moves = node.op == OpKind::Identity || node.op == OpKind::Where;
  if (node.op == OpKind::Cast && (is_float(to) || is_float(from)) && !holds(to, from)) {
    f.rounds = is_float(to);
    const bool saturates = f.rounds && bits_of(to) == 8 && node.integer("saturate", 1) != 0;  // overflow gives the largest number
    f.settled = [=](double value) {
      const double stored = rounded(to, value), largest = to == Dtype::e4m3 ? 448 : 57344;
      return saturates && !std::isnan(value) && !(std::fabs(stored) <= largest) ? std::copysign(largest, value) : stored;
    };
  } else if (!is_float(to) && !moves) {
    f.settled = [=](double value) { return wrapped(to, value); };
  }
  return f;
}

std::vector<std::int64_t> coordinates_of(const Shape& shape, std::int64_t flat) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}
namespace {
// A node as a graph of its own, evaluated. What is large is read in place.
void fold_by_reference(Graph& graph, const Node& node) {
  Graph alone;
  std::vector<Bytes> data;
  std::int64_t elements = 0;
  const auto moved = [&](std::vector<TensorId> ids) {
    for (TensorId& id : ids) {
      if (id == kAbsent) continue;
      const Tensor& given = graph.tensor(id);
      const bool large = given.constant && given.constant->size() > static_cast<std::size_t>(kMaxFoldedElements) * 8;
      elements += given.constant ? element_count(given.shape) : 0;
      id = alone.add_tensor(large ? Tensor{given, std::nullopt} : given);
      if (large) alone.inputs.push_back(id), data.push_back(*given.constant);
    }
    return ids;
  };
  alone.nodes.push_back({node.op, node.name, moved(node.inputs), moved(node.outputs), node.attributes});
  const bool repeats = class_of(node.op) == OpClass::reduction || class_of(node.op) == OpClass::composite;
  if (repeats && elements > 4 * kMaxFoldedElements) return;
  std::ranges::copy_if(alone.nodes[0].outputs, std::back_inserter(alone.outputs), [](TensorId id) { return id != kAbsent; });
  const auto values = evaluate(alone, data, 1);
  if (!values) return;
  auto value = values->begin();
  for (TensorId id : node.outputs) {
    if (id == kAbsent) continue;
    Tensor& out = graph.tensor(id);
    out.constant.emplace(byte_count(out));
    for (std::size_t i = 0; i < value->size(); ++i) store_from_double(out.dtype, out.constant->data(), i, (*value)[i]);
    ++value;
  }
}
}  // namespace
void fold(Graph& graph, const Node& node) {
  const OpClass kind = class_of(node.op);
  if (multiplies(kind) || kind == OpClass::window || is_scaling(node.op)) return;
  Tensor& out = graph.tensor(node.outputs[0]);
  if (element_count(out.shape) > kMaxFoldedElements) return;
  const auto is_known = [&](TensorId id) {  // of Shape's input and CastLike's second the elements do not matter
    const bool unread = node.op == OpKind::Shape || (node.op == OpKind::CastLike && id == node.inputs[1]);
    return id == kAbsent || graph.tensor(id).constant || unread;
  };
  if (!std::ranges::all_of(node.inputs, is_known)) return;
  const bool same = node.op == OpKind::Identity || (node.op == OpKind::Cast && graph.tensor(node.inputs[0]).dtype == out.dtype);
  if (kind != OpClass::view && !same) return fold_by_reference(graph, node);  // in FP64, which lacks the largest integers
  out.constant = graph.tensor(node.inputs[0]).constant;
}
}  // namespace warploom::graph
