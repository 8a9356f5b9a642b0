// What the tensors of a graph can hold, from its inputs on.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/range_passes.h"
#include "graph/ranges.h"

namespace warploom::graph {
namespace {
constexpr Range kTruth = {0, 1, true};
constexpr int64_t kMostLooked = int64_t{1} << 24;  // elements of a constant

// Of a constant's elements. Floats that are not whole are looked at no further: weights are many,
// and say nothing.
Range of_constant(const Tensor& tensor) {
  const int64_t count = element_count(tensor.shape);
  constexpr int64_t kFew = 1024;
  if (count == 0 || count > kMostLooked) return kAnything;
  Range out = {HUGE_VAL, -HUGE_VAL, true};
  for (int64_t i = 0; i < count; ++i) {
    const auto place = as_size(i);
    const double value = load_as_double(tensor.dtype, tensor.constant->data(), place);
    if (std::isnan(value)) return kAnything;
    out.whole &= value == std::trunc(value);
    if (!out.whole && count > kFew) return kAnything;
    out.low = std::min(out.low, value);
    out.high = std::max(out.high, value);
  }
  return out;
}

Range of_type(Dtype dtype) {
  if (is_float(dtype)) return kAnything;
  if (dtype == Dtype::boolean) return kTruth;
  const int bits = bits_of(dtype);
  if (bits >= 32) return {-HUGE_VAL, HUGE_VAL, true};
  const double size = std::ldexp(1.0, bits);
  if (is_signed(dtype)) return {-size / 2, size / 2 - 1, true};
  return {0, size - 1, true};
}

Range absolute(const Range& x) {
  const double low = std::fabs(x.low);
  const double high = std::fabs(x.high);
  return {0, std::max(low, high), x.whole};
}

// Of max(a, b), and of min(a, b).
Range larger(const Range& a, const Range& b) {
  const double low = std::max(a.low, b.low);
  const double high = std::max(a.high, b.high);
  return {low, high, a.whole && b.whole};
}

Range smaller(const Range& a, const Range& b) {
  const double low = std::min(a.low, b.low);
  const double high = std::min(a.high, b.high);
  return {low, high, a.whole && b.whole};
}

Range truncated(double low, double high) {
  return {std::trunc(low), std::trunc(high), true};
}

class Possible {
 public:
  Possible(const Graph& graph, const Ranges& known) : graph_(graph), ranges_(graph.tensors.size()) {
    for (size_t i = 0; i < ranges_.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      const Range held = tensor.constant ? of_constant(tensor) : range_in(known, tensor.name);
      ranges_[i] = meet(of_type(tensor.dtype), held);
    }
  }

  std::vector<Range> run() {
    for (const Node& node : graph_.nodes)
      for (const TensorId id : node.outputs)
        if (id != kAbsent && !graph_.tensor(id).constant) set(id, made_by(node));
    return std::move(ranges_);
  }

 private:
  // What does not fit the type wraps, so that nothing is known of it.
  void set(TensorId id, Range made) {
    const Dtype dtype = graph_.tensor(id).dtype;
    const Range type = of_type(dtype);
    constexpr double kWraps = 0x1p31;
    const bool is_small = made.low >= -kWraps && made.high < kWraps;
    const bool fits = is_float(dtype) || (type.holds(made) && is_small);
    made.whole |= type.whole;
    Range& to = ranges_[as_size(id)];
    const Range both = meet(to, fits ? made : type);
    if (!both.is_empty()) to = both;
  }

  const Range& in(const Node& node, size_t i) const {
    if (!given(node, i)) return kAnything;
    return ranges_[as_size(node.inputs[i])];
  }

  Range hull_from(const Node& node, size_t first) const {
    Range out = in(node, first);
    for (size_t i = first + 1; i < node.inputs.size(); ++i)
      out = hull(out, in(node, i));
    return out;
  }

  Range made_by(const Node& node) const {
    switch (class_of(node.op)) {
      case OpClass::view: return in(node, 0);
      case OpClass::movement: return moved(node);
      case OpClass::pointwise: return pointwise(node);
      case OpClass::reduction:
      case OpClass::scan: return reduced(node);
      case OpClass::window: return node.op == OpKind::MaxPool ? in(node, 0) : kAnything;
      case OpClass::composite: return composite(node);
      default: return kAnything;
    }
  }

  Range moved(const Node& node) const {
    if (node.op == OpKind::Concat) return hull_from(node, 0);
    if (node.op != OpKind::Pad) return in(node, 0);
    Range padding{0, 0, true};
    if (given(node, 2)) padding = in(node, 2);
    return hull(in(node, 0), padding);
  }

  Range reduced(const Node& node) const {
    const Range x = in(node, 0);
    if (node.op == OpKind::ReduceMax || node.op == OpKind::ReduceMin) return x;
    const double terms = terms_in(graph_, node);
    const Range all = times(x, terms);
    if (node.op == OpKind::ReduceSum) return {all.low, all.high, x.whole};
    if (node.op != OpKind::CumSum) return kAnything;
    const Range some = hull(x, all);
    const bool none = node.integer("exclusive") != 0;
    if (none) return hull(some, {0, 0, true});
    return {some.low, some.high, x.whole};
  }

  Range composite(const Node& node) const {
    switch (node.op) {
      case OpKind::GatherElements:
      case OpKind::GatherND:
      case OpKind::Split:
      case OpKind::Tile:
      case OpKind::DepthToSpace:
      case OpKind::SpaceToDepth:
      case OpKind::Dropout:
      case OpKind::CastLike:
      case OpKind::ReduceMean: return in(node, 0);
      case OpKind::Trilu: return hull(in(node, 0), {0, 0, true});
      case OpKind::ArgMax:
      case OpKind::ArgMin: {
        const NodeContext context{graph_, node};
        const size_t axis = context.axis(context.in(0).shape.size());
        const auto last = as_double(context.in(0).shape[axis] - 1);
        return {0, last, true};
      }
      default: return kAnything;
    }
  }

  Range cast(const Node& node) const {
    const Range x = in(node, 0);
    const Dtype to = graph_.tensor(node.outputs[0]).dtype;
    if (to == Dtype::boolean) return kTruth;
    if (!is_float(to)) return {std::trunc(x.low), std::trunc(x.high), true};
    // A narrower float may round beyond the ends, and what is whole stays so.
    return {rounded(to, x.low), rounded(to, x.high), x.whole};
  }

  Range pointwise(const Node& node) const {
    const Range x = in(node, 0);
    const Range y = in(node, 1);
    const bool whole = !is_float(graph_.tensor(node.outputs[0]).dtype);
    switch (node.op) {
      case OpKind::Identity: return x;
      case OpKind::Cast: return cast(node);
      case OpKind::Add: return sum(x, y);
      case OpKind::Sub: return difference(x, y);
      case OpKind::Mul: return product(x, y);
      case OpKind::Neg: return negative(x);
      case OpKind::Abs: return absolute(x);
      case OpKind::Where: return chosen(node);
      case OpKind::Relu: return larger(x, {0, 0, true});
      case OpKind::Floor:
      case OpKind::Ceil:
      case OpKind::Round: return {std::floor(x.low), std::ceil(x.high), true};
      case OpKind::Sign: return {-1, 1, true};
      case OpKind::Max: return extreme(node, true);
      case OpKind::Min: return extreme(node, false);
      case OpKind::Clip: return clip(node);
      case OpKind::Mod: return modulo(node, whole);
      case OpKind::Div:
        if (!whole || !y.is_point() || y.low <= 0) return kAnything;
        return truncated(x.low / y.low, x.high / y.low);
      default: return kAnything;
    }
  }

  Range chosen(const Node& node) const {
    const auto size = as_double(node.integer("index_size"));
    if (size > 0) return {0, size - 1, true};
    return hull_from(node, 1);
  }

  Range extreme(const Node& node, bool largest) const {
    Range out = in(node, 0);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const Range& next = in(node, i);
      out = largest ? larger(out, next) : smaller(out, next);
    }
    return out;
  }

  bool given(const Node& node, size_t i) const {
    return i < node.inputs.size() && node.inputs[i] != kAbsent;
  }

  Range clip(const Node& node) const {
    const Range x = in(node, 0);
    Range least{-HUGE_VAL, -HUGE_VAL, true};
    Range most{HUGE_VAL, HUGE_VAL, true};
    if (given(node, 1)) least = in(node, 1);
    if (given(node, 2)) most = in(node, 2);
    return smaller(larger(x, least), most);
  }

  Range modulo(const Node& node, bool whole) const {
    const Range y = in(node, 1);
    if (!whole || !y.is_point() || y.low <= 0) return kAnything;
    const double low = node.integer("fmod") != 0 ? 1 - y.low : 0;
    return {low, y.low - 1, true};
  }

  const Graph& graph_;
  std::vector<Range> ranges_;
};
}  // namespace

std::vector<Range> possible_ranges(const Graph& graph, const Ranges& known) {
  return Possible(graph, known).run();
}
}  // namespace warploom::graph
