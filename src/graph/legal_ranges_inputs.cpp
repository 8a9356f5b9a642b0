// What inputs must be for a result to be as it is wanted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>
#include "base/dtype.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/legal_ranges.h"
#include "graph/range_passes.h"
#include "graph/ranges.h"

namespace warploom::graph {
// What the inputs must be for the result to be as wanted.
void LegalRanges::passes_on(const Node& node, const Range& wanted) {
  switch (class_of(node.op)) {
    case OpClass::view: return restrict_to(node.inputs[0], wanted);
    case OpClass::movement: return moves(node, wanted);
    case OpClass::pointwise: return pointwise(node, wanted);
    case OpClass::reduction:
    case OpClass::scan: return sums(node, wanted);
    case OpClass::window:
      if (node.op == OpKind::MaxPool) restrict_to(node.inputs[0], wanted);
      return;
    case OpClass::composite: return composite(node, wanted);
    default: return;
  }
}

void LegalRanges::moves(const Node& node, const Range& wanted) {
  const size_t count = node.op == OpKind::Concat ? node.inputs.size() : 1;
  for (size_t i = 0; i < count; ++i)
    restrict_to(node.inputs[i], wanted);
}

void LegalRanges::composite(const Node& node, const Range& wanted) {
  using enum OpKind;
  constexpr OpKind kMoves[] = {GatherElements, GatherND, Split,    Tile,  DepthToSpace,
                               SpaceToDepth,   Dropout,  CastLike, Trilu, ReduceMean};
  if (contains(kMoves, node.op)) restrict_to(node.inputs[0], wanted);
}

void LegalRanges::sums(const Node& node, const Range& wanted) {
  const TensorId x = node.inputs[0];
  if (node.op == OpKind::ReduceMax || node.op == OpKind::ReduceMin) return restrict_to(x, wanted);
  if (node.op != OpKind::ReduceSum && node.op != OpKind::CumSum) return;
  const double terms = terms_in(graph_, node);
  const bool some = node.op == OpKind::CumSum;  // from one of them to all
  Range each = {wanted.low / terms, wanted.high / terms};
  if (some && wanted.low > 0) each.low = wanted.low;
  if (some && wanted.high < 0) each.high = wanted.high;
  restrict_to(x, each);
}

void LegalRanges::pointwise(const Node& node, const Range& wanted) {
  const TensorId x = node.inputs[0];
  switch (node.op) {
    case OpKind::Identity:
    case OpKind::Cast:
      // Of a number that is truncated, or rounded to fewer digits: what needs no thought.
      if (graph_.tensor(node.outputs[0]).dtype == Dtype::boolean) return;
      return restrict_to(x, {wanted.low, wanted.high});
    case OpKind::Floor:
    case OpKind::Ceil:
    case OpKind::Round: return restrict_to(x, {wanted.low, wanted.high});
    case OpKind::Neg: return restrict_to(x, negative(wanted));
    case OpKind::Abs: return restrict_to(x, {-wanted.high, wanted.high});
    case OpKind::Add: return adds(node, wanted, false);
    case OpKind::Sub: return adds(node, wanted, true);
    case OpKind::Mul: return multiplies(node, wanted);
    case OpKind::Div: return divides(node, wanted);
    case OpKind::Min:
    case OpKind::Max:
    case OpKind::Clip:
    case OpKind::Relu: return clips(node, wanted);
    case OpKind::Where: return chooses(node, wanted);
    default: return;
  }
}

// x + y, or x - y: the one of which less is known is what the other leaves; if that is nothing,
// each has half.
void LegalRanges::adds(const Node& node, const Range& wanted, bool minus) {
  const TensorId x = node.inputs[0];
  const TensorId y = node.inputs[1];
  const Range other = minus ? negative(can(y)) : can(y);
  const auto left_by = [&](const Range& taken) {
    return Range{wanted.low - taken.low, wanted.high - taken.high};
  };
  const auto restrict_y = [&](const Range& to) { restrict_to(y, minus ? negative(to) : to); };
  const bool x_is_wider = can(x).high - can(x).low >= other.high - other.low;
  const bool first = fixed(y) || (x_is_wider && !fixed(x));
  const Range& narrow = first ? other : can(x);
  if (wanted.holds(sum(can(x), other))) return;
  const Range left = left_by(narrow);
  if (narrow.is_bounded() && !left.is_empty())
    return first ? restrict_to(x, left) : restrict_y(left);
  const Range half = {wanted.low / 2, wanted.high / 2};
  restrict_to(x, half);
  restrict_y(half);
}

void LegalRanges::divides(const Node& node, const Range& wanted) {
  const Range& by = can(node.inputs[1]);
  if (by.is_point() && by.low != 0) restrict_to(node.inputs[0], times(wanted, by.low));
}

void LegalRanges::multiplies(const Node& node, const Range& wanted) {
  for (const size_t i : {0, 1}) {
    const Range& by = can(node.inputs[1 - i]);
    if (by.is_point() && by.low != 0) return restrict_to(node.inputs[i], times(wanted, 1 / by.low));
  }
  const double most = std::min(-wanted.low, wanted.high);  // of the product's size
  if (!wanted.is_bounded() || most <= 0) return;
  const auto size = [&](size_t i) {
    const Range& input = can(node.inputs[i]);
    return std::max(std::fabs(input.low), std::fabs(input.high));
  };
  const size_t wide = size(0) >= size(1) ? 0 : 1;
  const double by = size(1 - wide);
  const double left = most / std::max(1.0, by);
  if (by <= most) return restrict_to(node.inputs[wide], {-left, left});
  const double root = std::sqrt(most);
  for (const TensorId id : node.inputs)
    restrict_to(id, {-root, root});
}

// An end that a bound keeps anyway asks for nothing.
void LegalRanges::clips(const Node& node, const Range& wanted) {
  double least = -HUGE_VAL;
  double most = HUGE_VAL;
  if (node.op == OpKind::Relu) least = 0;
  if (node.op == OpKind::Clip && has(node, 1)) least = can(node.inputs[1]).low;
  if (node.op == OpKind::Clip && has(node, 2)) most = can(node.inputs[2]).high;
  const size_t count = node.op == OpKind::Clip ? 1 : node.inputs.size();
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      if (j == i) continue;
      if (node.op == OpKind::Max) least = can(node.inputs[j]).low;
      if (node.op == OpKind::Min) most = can(node.inputs[j]).high;
    }
    Range asked = {wanted.low, wanted.high};
    if (least >= wanted.low) asked.low = -HUGE_VAL;
    if (most <= wanted.high) asked.high = HUGE_VAL;
    restrict_to(node.inputs[i], asked);
  }
}
}  // namespace warploom::graph
