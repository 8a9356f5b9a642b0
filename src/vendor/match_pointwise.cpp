// Elementwise operators: functions that libraries have, and combinations of two tensors.
#include <fmt/format.h>
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "vendor/match.h"
#include "vendor/matcher.h"
#include "vendor/places.h"
#include "vendor/problem.h"

namespace warploom::vendor {
namespace {
using graph::kAbsent;
using graph::Tensor;
using graph::TensorInfo;

constexpr size_t kMostTogether = 12;  // nodes that are tried as one function
constexpr int kPoints = 48;

// As closely as fp32 tells.
bool agree(double value, double wanted) {
  if (!std::isfinite(wanted)) return !std::isfinite(value);
  return std::abs(value - wanted) <= 2e-6 * (1 + std::abs(wanted));
}

// The function that `values` are of `points`: two that agree there as closely as fp32 tells are the
// same.
std::optional<After> function_of(std::span<const double> points, std::span<const double> values) {
  for (size_t i = 0; i < functions().size(); ++i) {
    const auto function = static_cast<Function>(i);
    const FunctionRow& row = functions()[i];
    const bool has_numbers =
        function == Function::linear || function == Function::power || function == Function::clip;
    if (has_numbers) continue;
    const double alpha = function == Function::relu ? 0 : 1;
    bool same = true;
    for (size_t p = 0; p < points.size() && same; ++p)
      same = agree(values[p], row.value(points[p], alpha, 0));
    if (same) return After{.function = function, .alpha = alpha};
  }
  return std::nullopt;
}

constexpr std::pair<OpKind, Combine> kCombines[] = {
    {OpKind::Add, Combine::add}, {OpKind::Sub, Combine::sub}, {OpKind::Mul, Combine::mul},
    {OpKind::Div, Combine::div}, {OpKind::Max, Combine::max}, {OpKind::Min, Combine::min},
    {OpKind::Sum, Combine::add}};
}  // namespace

// The nodes that read `from` and each other alone, as far as they are elementwise of its shape; of
// their results the last that nobody outside needs anything before, and that a library knows.
bool Matcher::recognized(const Node& node) {
  TensorId from = kAbsent;
  for (const TensorId id : node.inputs)
    if (id != kAbsent && !scalar(id)) from = id;
  if (from == kAbsent) return false;
  const auto together = elementwise_from(from, number_of(node));
  if (!contains(together, number_of(node))) return false;
  for (size_t last = together.size(); last-- > 0;) {
    const TensorId result = graph().nodes[together[last]].outputs[0];
    const auto up_to_last = std::span(together).first(last + 1);
    const auto nodes = behind(result, up_to_last);
    if (!contains(nodes, number_of(node)) || !is_closed(nodes, result)) continue;
    const auto function = as_function(from, result, nodes);
    if (!function) continue;
    apply({*function}, from, result, nodes);
    return true;
  }
  return false;
}

// Nodes from number `first` on that read `from`, numbers and each other alone, elementwise.
std::vector<int> Matcher::elementwise_from(TensorId from, int first) const {
  std::vector<int> together;
  std::set<TensorId> inside = {from};
  const auto known = [&](TensorId id) {
    return id == kAbsent || inside.contains(id) || scalar(id).has_value();
  };
  const auto reads = [&](TensorId id) { return id != kAbsent && inside.contains(id); };
  for (int n = first; n < std::ssize(graph().nodes); ++n) {
    const Node& next = graph().nodes[n];
    if (done_[n] || class_of(next.op) != OpClass::pointwise) continue;
    if (!std::ranges::all_of(next.inputs, known)) continue;
    if (!std::ranges::any_of(next.inputs, reads)) continue;
    const Tensor& made = tensor(next.outputs[0]);
    if (made.dtype != tensor(from).dtype || made.shape != tensor(from).shape) continue;
    together.push_back(n);
    inside.insert(next.outputs[0]);
    if (together.size() == kMostTogether) break;
  }
  return together;
}

// Those of `nodes`, which are in order, that `result` needs.
std::vector<int> Matcher::behind(TensorId result, std::span<const int> nodes) const {
  std::set<TensorId> needed = {result};
  std::vector<int> out;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& each = graph().nodes[nodes[i]];
    if (!needed.contains(each.outputs[0])) continue;
    out.push_back(nodes[i]);
    needed.insert(each.inputs.begin(), each.inputs.end());
  }
  std::ranges::sort(out);
  return out;
}

// Whether nobody but these nodes reads what they make, but for their result.
bool Matcher::is_closed(const std::vector<int>& nodes, TensorId result) const {
  const auto among_them = [&](int reader) { return contains(nodes, reader); };
  const auto closed = [&](int n) {
    const TensorId made = graph().nodes[n].outputs[0];
    if (made == result) return true;
    if (contains(graph().outputs, made)) return false;
    return std::ranges::all_of(consumers_[made], among_them);
  };
  return std::ranges::all_of(nodes, closed);
}

// What the nodes make of numbers in the place of `from`.
std::optional<After> Matcher::as_function(TensorId from, TensorId result,
                                          const std::vector<int>& nodes) const {
  Graph one;
  std::map<TensorId, TensorId> known = {{kAbsent, kAbsent}};
  const Dtype dtype = tensor(from).dtype;
  const TensorInfo x{"x", dtype, {kPoints}};
  known[from] = one.add_tensor({x, std::nullopt});
  one.inputs = {known[from]};
  for (const int n : nodes) {
    Node node = graph().nodes[n];
    for (TensorId& id : node.inputs) {
      if (!known.contains(id)) {
        Tensor constant = tensor(id);
        constant.name = fmt::format("c{}", one.tensors.size());
        constant.shape = {};
        known[id] = one.add_tensor(std::move(constant));
      }
      id = known[id];
    }
    const TensorId made = node.outputs[0];
    const TensorInfo info{fmt::format("t{}", n), dtype, {kPoints}};
    node.outputs = {one.add_tensor({info, std::nullopt})};
    known[made] = node.outputs[0];
    one.nodes.push_back(std::move(node));
  }
  one.outputs = {known[result]};
  const int64_t size = bytes_of(dtype, kPoints);
  std::vector<std::byte> bytes(as_size(size));
  Random random(7, "function");
  std::vector<double> points;
  for (int p = 0; p < kPoints; ++p) {
    const double point = 3 * random.normal();
    store_from_double(dtype, bytes.data(), p, point);
    points.push_back(load_as_double(dtype, bytes.data(), p));
  }
  const graph::Bytes input = bytes;
  const auto values = graph::evaluate(one, {&input, 1}, 1);
  if (!values) return std::nullopt;
  return function_of(points, (*values)[0]);
}

// In the step that alone wrote `from`, or as one of its own.
void Matcher::apply(const std::vector<After>& after, TensorId from, TensorId to,
                    const std::vector<int>& nodes) {
  for (const int n : nodes)
    done_[n] = true;
  const auto has_other = [](const After& one) { return one.other.has_value(); };
  const auto found = std::ranges::find_if(after, has_other);
  std::optional<Place> other;
  if (found != after.end()) other = found->other;
  const bool joins = functions_ == Functions::fused || other;
  Step* const step = joins ? host(from, nodes, other) : nullptr;
  if (!step || tensor(from).dtype != tensor(to).dtype) {
    push({Elementwise{place(from), own_place(to)}, after}, to);
    return;
  }
  const size_t rank = destination(step->operation)->shape.size();
  for (After one : after) {
    if (one.other) one.other = of_rank(*one.other, rank);
    step->after.push_back(std::move(one));
  }
  destination(step->operation)->buffer = tensor(to).name;
  const auto number = step - problem_.steps.data();
  writer_[tensor(to).name] = as_int(number);
  places_[to] = own_place(to);
}

bool Matcher::unary(const Node& node) {
  const auto number = [&](size_t i, double otherwise) -> std::optional<double> {
    if (node.inputs.size() <= i || node.inputs[i] == kAbsent) return otherwise;
    return scalar(node.inputs[i]);
  };
  std::vector<After> after;
  switch (node.op) {
    case OpKind::LeakyRelu:
      after = {{.function = Function::relu, .alpha = node.real("alpha", 0.01)}};
      break;
    case OpKind::Elu: after = {{.function = Function::elu, .alpha = node.real("alpha", 1)}}; break;
    case OpKind::Selu: {
      const double alpha = node.real("alpha", 1.67326319217681884765625);
      const double gamma = node.real("gamma", 1.05070102214813232421875);
      after = {{.function = Function::elu, .alpha = alpha}, {.alpha = gamma}};
      break;
    }
    case OpKind::HardSigmoid: {
      const double slope = node.real("alpha", 0.2);
      const double shift = node.real("beta", 0.5);
      after.push_back({.alpha = slope, .beta = shift});
      after.push_back({.function = Function::clip, .alpha = 0, .beta = 1});
      break;
    }
    case OpKind::Clip: {
      const auto low = number(1, -FLT_MAX);
      const auto high = number(2, FLT_MAX);
      if (!low || !high) return false;
      after = {{.function = Function::clip, .alpha = *low, .beta = *high}};
      break;
    }
    case OpKind::Neg: after = {{.alpha = -1}}; break;
    case OpKind::Reciprocal: after = {{.function = Function::power, .alpha = 1, .beta = -1}}; break;
    case OpKind::Pow: {
      const auto exponent = number(1, 1);
      const Dtype base_type = tensor(node.inputs[0]).dtype;
      const bool same_type = base_type == tensor(node.outputs[0]).dtype;
      if (!exponent || !same_type) return false;
      after = {{.function = Function::power, .alpha = 1, .beta = *exponent}};
      if (*exponent == 2) after = {{.function = Function::square}};
      if (*exponent == 0.5) after = {{.function = Function::sqrt}};
      break;
    }
    default: return false;
  }
  if (tensor(node.inputs[0]).shape != tensor(node.outputs[0]).shape) return false;
  const std::vector<int> nodes = {number_of(node)};
  apply(after, node.inputs[0], node.outputs[0], nodes);
  return true;
}

namespace {
// x combined with a number.
std::optional<After> with_number(Combine how, double number, bool reversed) {
  switch (how) {
    case Combine::add: return After{.alpha = 1, .beta = number};
    case Combine::sub:
      if (reversed) return After{.alpha = -1, .beta = number};
      return After{.alpha = 1, .beta = -number};
    case Combine::mul: return After{.alpha = number};
    case Combine::div:
      if (reversed) return After{.function = Function::power, .alpha = number, .beta = -1};
      return After{.alpha = 1 / number};
    case Combine::max: return After{.function = Function::clip, .alpha = number, .beta = FLT_MAX};
    case Combine::min: return After{.function = Function::clip, .alpha = -FLT_MAX, .beta = number};
  }
  return std::nullopt;
}
}  // namespace

// x `how` other, or other `how` x where it is reversed.
bool Matcher::combine(TensorId x, TensorId other, Combine how, TensorId out, bool reversed) {
  if (tensor(x).shape != tensor(out).shape || tensor(x).dtype != tensor(out).dtype) return false;
  const int node = graph().producer(out);
  if (const auto number = scalar(other)) {
    const auto after = with_number(how, *number, reversed);
    if (after) apply({*after}, x, out, {node});
    return after.has_value();
  }
  const size_t rank = tensor(out).shape.size();
  const Place at = of_rank(place(other), rank);
  std::vector<After> after;
  const bool turns = reversed && (how == Combine::sub || how == Combine::div);
  // other - x = -x + other, other / x = 1/x · other
  if (turns && how == Combine::sub) after = {{.alpha = -1}, {.other = at}};
  if (turns && how == Combine::div) {
    after.push_back({.function = Function::power, .alpha = 1, .beta = -1});
    after.push_back({.other = at, .combine = Combine::mul});
  }
  if (!turns) after = {{.other = at, .combine = how}};
  apply(after, x, out, {node});
  return true;
}

bool Matcher::binary(const Node& node) {
  using OpCombine = std::pair<OpKind, Combine>;
  const auto row = std::ranges::find(kCombines, node.op, &OpCombine::first);
  if (row == std::end(kCombines) || node.inputs.size() != 2) return false;
  const TensorId a = node.inputs[0];
  const TensorId b = node.inputs[1];
  const TensorId out = node.outputs[0];
  const std::vector<int> reader = {number_of(node)};
  // Into the step that wrote one of them, if it may; else the first that has the whole shape.
  const bool fits_b = tensor(b).shape == tensor(out).shape && !scalar(b);
  const auto hosts = [&](TensorId x, TensorId other) {
    std::optional<Place> read;
    if (!scalar(other)) read = place(other);
    return !scalar(x) && host(x, reader, read);
  };
  if (fits_b && !hosts(a, b) && hosts(b, a)) return combine(b, a, row->second, out, true);
  if (!scalar(a) && combine(a, b, row->second, out)) return true;
  return fits_b && combine(b, a, row->second, out, true);
}
}  // namespace warploom::vendor
