#include "graph/evaluator.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/rows.h"
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/node_evaluator.h"
#include "graph/operators.h"
#include "graph/parallel.h"
#include "graph/reference.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
namespace {
constexpr int64_t kGrain = 1 << 18;  // elements that one thread looks through

// The largest finite absolute value.
double largest_of(const UnsetDoubles& numbers) {
  const auto of_part = [&](double& most, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double size = std::fabs(numbers[i]);
      most = size > most && size < HUGE_VAL ? size : most;
    }
  };
  double most = 0;
  for (const double part : in_parallel<double>(std::ssize(numbers), kGrain, of_part))
    most = std::max(most, part);
  return most;
}

bool overflows_in(Dtype dtype, const UnsetDoubles& numbers) {
  return !std::isfinite(rounded(dtype, largest_of(numbers)));
}

// A type that holds less than FP64 does.
bool can_overflow(Dtype dtype) {
  return is_float(dtype) && dtype != Dtype::f64;
}
}  // namespace

NodeEvaluator::NodeEvaluator(const Graph& graph, std::span<const Bytes> inputs,
                             const EvalOptions& options)
    : graph_(graph), views_(graph.tensors.size()), options_(options) {
  by_element_ = std::ranges::all_of(graph.nodes, [](const Node& node) {
    const OpClass kind = class_of(node.op);
    return kind == OpClass::pointwise || only_moves(kind);
  });
  const auto hold = [&](size_t i, const std::byte* data) {
    const Tensor& tensor = graph.tensors[i];
    Shape strides = strides_of(tensor.shape);
    views_[i] = {.data = data, .dtype = tensor.dtype, .strides = std::move(strides)};
  };
  for (size_t i = 0; i < views_.size(); ++i)
    if (graph.tensors[i].constant) hold(i, graph.tensors[i].constant->data());
  for (size_t i = 0; i < inputs.size(); ++i)
    hold(graph.inputs[i], inputs[i].data());
}

Status NodeEvaluator::run(const Demand& demand, TensorId wanted, const Box& box_wanted,
                          ValueAndMagnitude& to) {
  const auto last_use = last_uses();
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    const std::optional<Box>& box = demand[node.outputs[0]];
    if (!box || output_of(node).constant) continue;
    WARPLOOM_CHECK(evaluate(node, *box));
    note_overflow(node, node.outputs[0] == wanted, to);
    for (TensorId id : node.inputs)
      if (id != kAbsent && last_use[id] == n) views_[id].owner.reset();
  }
  append(wanted, box_wanted, to);
  return ok();
}

// The last node that reads each tensor; after all nodes where it is an output or nothing reads it.
std::vector<size_t> NodeEvaluator::last_uses() const {
  std::vector<size_t> last_use(views_.size(), graph_.nodes.size());
  for (size_t n = 0; n < graph_.nodes.size(); ++n)
    for (TensorId id : graph_.nodes[n].inputs)
      if (id != kAbsent) last_use[id] = n;
  for (TensorId id : graph_.outputs)
    last_use[id] = graph_.nodes.size();
  return last_use;
}

Status NodeEvaluator::evaluate(const Node& node, const Box& box) {
  switch (class_of(node.op)) {
    case OpClass::contraction:
    case OpClass::convolution: product(node, box, make(node, box)); break;
    case OpClass::window:
    case OpClass::reduction: reduce(node, box, make(node, box)); break;
    case OpClass::scan: scan(node, box, make(node, box)); break;
    case OpClass::pointwise: pointwise(node, box, make(node, box)); break;
    case OpClass::view: reshape(node, box); break;
    case OpClass::movement: movement(node, box); break;
    default: return fail({ErrorCode::kInternal, "a node is no primitive", place_of(node)});
  }
  return ok();
}

Storage& NodeEvaluator::make(const Node& node, const Box& box) {
  const auto count = as_size(volume(box));
  auto fresh = std::make_shared<Storage>();
  fresh->is_whole = is_integer(output_of(node).dtype);
  if (fresh->is_whole) {
    fresh->integers.resize(count);
  } else {
    fresh->value.resize(count);
    if (options_.magnitudes) fresh->magnitude.resize(count);
  }
  views_[node.outputs[0]] = packed(box, fresh);
  return *fresh;
}

void NodeEvaluator::append(TensorId id, const Box& box, ValueAndMagnitude& to) const {
  View place = packed(box);
  place.origin += std::ssize(to.value);
  to.value.resize(to.value.size() + as_size(volume(box)));
  if (options_.magnitudes) to.magnitude.resize(to.value.size());
  if (is_integer(graph_.tensor(id).dtype)) to.integers.resize(to.value.size());
  copy(view(id), box, place, options_.threads, to);
}

void NodeEvaluator::note_overflow(const Node& node, bool last, ValueAndMagnitude& to) {
  if (!options_.magnitudes || only_moves(class_of(node.op))) return;
  if (!by_element_ && !options_.marks) {
    to.overflowed |= overflows(node, last);
    return;
  }
  const bool marked = mark_overflow(node, last);
  to.overflowed |= marked;
  to.marked |= marked;
}

// Gives the elements that are more than their type holds, but for the output that is wanted, and
// those whose terms are more than fp32 holds while they are summed, a magnitude of NaN; whether
// there are any.
bool NodeEvaluator::mark_overflow(const Node& node, bool last) {
  constexpr double kHeld = 240;  // by every type of floats
  const Dtype dtype = output_of(node).dtype;
  if (!can_overflow(dtype)) return false;
  const bool sums = class_of(node.op) != OpClass::pointwise;
  Storage& made = *views_[node.outputs[0]].owner;
  const auto is_beyond = [](Dtype type, double number) {
    const double size = std::fabs(number);
    return size > kHeld && size != HUGE_VAL && !std::isfinite(rounded(type, size));
  };
  const auto mark = [&](int& marked, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool stored = !last && is_beyond(dtype, made.value[i]);
      const bool summed = sums && is_beyond(Dtype::f32, made.magnitude[i]);
      if (!stored && !summed) continue;
      made.magnitude[i] = std::numeric_limits<double>::quiet_NaN();
      marked = 1;
    }
  };
  return contains(in_parallel<int>(std::ssize(made.value), kGrain, mark), 1);
}

// Whether the node's numbers are more than fp32 holds while they are summed or, but for the output
// that is wanted, more than their own type holds.
bool NodeEvaluator::overflows(const Node& node, bool last) const {
  const Dtype dtype = output_of(node).dtype;
  if (!can_overflow(dtype)) return false;
  const Storage& made = *views_[node.outputs[0]].owner;
  if (!last && overflows_in(dtype, made.value)) return true;
  const bool sums = class_of(node.op) != OpClass::pointwise;
  return sums && overflows_in(Dtype::f32, made.magnitude);
}

Fill NodeEvaluator::fill_of(TensorId id, double value) const {
  const Dtype dtype = graph_.tensor(id).dtype;
  return {value, 0, is_integer(dtype) ? saturated_integer(dtype, value) : 0};
}

View NodeEvaluator::padded(const Node& node, const Box& box, const Fill& fill) const {
  const Shape& in = shape(node.inputs[0]);
  const Box region = reach(*axis_sources(graph_, node, 0), in, box);
  return stored(view(node.inputs[0]), region, inside(region, in), fill);
}

View NodeEvaluator::stored(const View& from, const Box& region, const Box& part,
                           const Fill& fill) const {
  const auto fresh = std::make_shared<Storage>();
  fresh->is_whole = is_integer(from.dtype);
  if (fresh->is_whole)
    fresh->integers.assign(volume(region), fill.whole);
  else
    fresh->value.assign(volume(region), fill.value);
  const bool has_errors = from.magnitude || fill.error != 0;
  if (options_.magnitudes && !fresh->is_whole && has_errors)
    fresh->magnitude.assign(fresh->value.size(), fill.error);
  const View to = packed(region, fresh);
  copy(from, part, to, options_.threads, *fresh);
  return to;
}

Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id,
               const Box& box, const EvalOptions& options, ValueAndMagnitude& to) {
  return NodeEvaluator(graph, inputs, options).run(demand, id, box, to);
}
}  // namespace warploom::graph
