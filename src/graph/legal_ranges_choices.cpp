// What a Where asks of its two sides: each only of the numbers that come to it.
#include <cmath>
#include <cstddef>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/legal_ranges.h"
#include "graph/ranges.h"

namespace warploom::graph {
// An identity, or a cast of whole numbers to what holds them.
bool LegalRanges::keeps_numbers(const Node& node) const {
  if (node.op == OpKind::Identity) return true;
  const bool to_boolean = graph_.tensor(node.outputs[0]).dtype == Dtype::boolean;
  return node.op == OpKind::Cast && can(node.inputs[0]).whole && !to_boolean;
}

// A tensor as an affine function of another, over the operators between them.
Affine LegalRanges::affine(TensorId id) const {
  Affine result = {id};
  for (const Node* node = maker(id); node; node = maker(result.root)) {
    if (keeps_numbers(*node)) {
      result.root = node->inputs[0];
      continue;
    }
    if (node->op == OpKind::Neg) {
      result = {node->inputs[0], -result.scale, result.offset};
      continue;
    }
    const bool minus = node->op == OpKind::Sub;
    const bool times = node->op == OpKind::Mul;
    if (node->op != OpKind::Add && !minus && !times) break;
    const size_t i = can(node->inputs[1]).is_point() ? 0 : 1;
    const Range& other = can(node->inputs[1 - i]);
    if (!other.is_point() || (times && other.low == 0)) break;
    double own = minus && i == 1 ? -1 : 1;
    double beside = minus && i == 0 ? -other.low : other.low;
    if (times) {
      own = other.low;
      beside = 0;
    }
    const double offset = result.offset + result.scale * beside;
    result = {node->inputs[i], result.scale * own, offset};
  }
  return result;
}

ConditionSplit LegalRanges::split_by(TensorId condition) const {
  const Node* const node = maker(condition);
  if (!node) return {};
  if (node->op == OpKind::Not) {
    const ConditionSplit other = split_by(node->inputs[0]);
    return {other.root, other.no, other.yes};
  }
  const bool below = node->op == OpKind::Less || node->op == OpKind::LessOrEqual;
  const bool above = node->op == OpKind::Greater || node->op == OpKind::GreaterOrEqual;
  if (!below && !above) return {};
  const size_t i = can(node->inputs[1]).is_point() ? 0 : 1;
  const Range& edge = can(node->inputs[1 - i]);
  if (!edge.is_point()) return {};
  const Affine compared = affine(node->inputs[i]);
  const double place = (edge.low - compared.offset) / compared.scale;
  const bool strict = node->op == OpKind::Less || node->op == OpKind::Greater;
  // Whether the condition holds of numbers below the place.
  const bool under = (below == (i == 0)) == (compared.scale > 0);
  const bool whole = can(compared.root).whole;
  // The largest number of the lower part, and the least of the upper one.
  const bool edge_is_below = under != strict;
  double last = place;
  double next = place;
  if (whole) {
    last = edge_is_below ? std::floor(place) : std::ceil(place) - 1;
    next = last + 1;
  }
  const Range lower = {-HUGE_VAL, last};
  const Range upper = {next, HUGE_VAL};
  if (under) return {compared.root, lower, upper};
  return {compared.root, upper, lower};
}

// where(i < 0, i + n, i): each side is asked only for the numbers that come to it.
void LegalRanges::chooses(const Node& node, const Range& wanted) {
  const ConditionSplit split = split_by(node.inputs[0]);
  Range yes = split.yes;
  Range no = split.no;
  bool bound = false;
  const auto ask = [&](TensorId side, Range& part) {
    const Affine of = affine(side);
    if (split.root == kAbsent || of.root != split.root) return restrict_to(side, wanted);
    part = meet(part, of.root_for(wanted));
    bound = true;
  };
  ask(node.inputs[1], yes);
  ask(node.inputs[2], no);
  if (!bound) return;
  if (yes.is_empty()) return restrict_to(split.root, no);
  if (no.is_empty()) return restrict_to(split.root, yes);
  const bool yes_is_lower = yes.low < no.low;
  const Range& lower = yes_is_lower ? yes : no;
  const Range& upper = yes_is_lower ? no : yes;
  const double smallest_step = can(split.root).whole ? 1 : 0;
  const bool joined = upper.low - lower.high <= smallest_step;
  const bool lower_is_wider = lower.high - lower.low > upper.high - upper.low;
  const Range& wider = lower_is_wider ? lower : upper;
  restrict_to(split.root, joined ? hull(lower, upper) : wider);
}
}  // namespace warploom::graph
