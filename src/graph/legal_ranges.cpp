// What operators ask of their inputs, whatever becomes of their results.
#include "graph/legal_ranges.h"
#include <cmath>
#include <cstddef>
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
// From this factor on 1 - m of a whole m, multiplied by it, is how an attention's mask is written.
constexpr double kMaskFactor = 1000;
}  // namespace

LegalRanges::LegalRanges(const Graph& graph, const std::vector<Range>& possible)
    : graph_(graph),
      possible_(possible),
      legal_(graph.tensors.size()),
      makers_(graph.tensors.size(), nullptr) {
  for (const Node& node : graph.nodes)
    for (const TensorId id : node.outputs)
      if (id != kAbsent) makers_[at(id)] = &node;
}

std::vector<Range> LegalRanges::run() {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    asks(*node);
    Range wanted = kAnything;
    for (const TensorId id : node->outputs)
      if (id != kAbsent) wanted = meet(wanted, legal_[at(id)]);
    wanted.nonzero = false;
    if (wanted.low != -HUGE_VAL || wanted.high != HUGE_VAL) passes_on(*node, wanted);
  }
  return std::move(legal_);
}

// What a restriction asks for that nothing can meet any more is left out: who asked first stands.
void LegalRanges::restrict_to(TensorId id, Range to) {
  if (can(id).whole) {
    to.low = std::ceil(to.low);
    to.high = std::floor(to.high);
  }
  const Range both = meet(legal_[at(id)], to);
  if (!both.is_empty()) legal_[at(id)] = both;
}

void LegalRanges::restrict_input(const Node& node, size_t i, const Range& to) {
  if (has(node, i)) restrict_to(node.inputs[i], to);
}

// Through what only moves elements or widens them.
TensorId LegalRanges::unmoved(TensorId id) const {
  for (const Node* node = maker(id); node; node = maker(id)) {
    const bool same = node->op == OpKind::Cast || node->op == OpKind::Identity;
    if (!same && !only_moves(class_of(node->op))) break;
    id = node->inputs[0];
  }
  return id;
}

// What an operator asks of its inputs whatever becomes of its result.
void LegalRanges::asks(const Node& node) {
  switch (node.op) {
    case OpKind::Gather:
    case OpKind::GatherElements: return asks_indices(node);
    case OpKind::GatherND: return asks_places(node);
    case OpKind::NegativeLogLikelihoodLoss:
    case OpKind::SoftmaxCrossEntropyLoss: return asks_classes(node);
    case OpKind::BatchNormalization: return restrict_input(node, 4, {0, HUGE_VAL});
    case OpKind::Sqrt: return asks_variance(node);
    case OpKind::Div:
    case OpKind::Mod: return asks_divisor(node);
    case OpKind::Equal: return asks_compared(node);
    case OpKind::Where: return asks_index(node);
    case OpKind::Mul: return asks_mask(node);
    default: return;
  }
}

void LegalRanges::asks_indices(const Node& node) {
  const NodeContext context{graph_, node};
  const size_t rank = context.in(0).shape.size();
  const size_t axis = context.axis(rank);
  const auto size = as_double(context.in(0).shape[axis]);
  restrict_input(node, 1, {-size, size - 1, true});
}

// Of a place among several axes, which says less of each of its indices.
void LegalRanges::asks_index(const Node& node) {
  const auto size = as_double(node.integer("index_size"));
  if (size > 0) chooses(node, {0, size - 1, true});
}

// Each index along the last axis is of another axis: what all of these have.
void LegalRanges::asks_places(const Node& node) {
  const NodeContext context{graph_, node};
  const auto first = as_size(node.integer("batch_dims"));
  const auto axes = as_size(context.in(1).shape.back());
  for (size_t d = first; d < first + axes; ++d) {
    const auto size = as_double(context.in(0).shape[d]);
    restrict_input(node, 1, {-size, size - 1, true});
  }
}

// The class that is ignored is drawn where it lies beside the others.
void LegalRanges::asks_classes(const Node& node) {
  const NodeContext context{graph_, node};
  const auto classes = as_double(context.in(0).shape[1]);
  const auto ignored = as_double(node.integer("ignore_index"));
  const double low = ignored == -1 ? -1 : 0;
  const double high = ignored == classes ? classes : classes - 1;
  restrict_input(node, 1, {low, high, true});
}

void LegalRanges::asks_variance(const Node& node) {
  const Node* const sum = maker(unmoved(node.inputs[0]));
  if (!sum || sum->op != OpKind::Add) return;
  for (const size_t i : {0, 1})
    if (fixed(sum->inputs[1 - i])) restrict_to(unmoved(sum->inputs[i]), {0, HUGE_VAL});
}

void LegalRanges::asks_divisor(const Node& node) {
  const TensorId by = node.inputs[1];
  if (is_float(graph_.tensor(by).dtype) || fixed(by)) return;
  legal_[at(by)].nonzero = true;
  legal_[at(unmoved(by))].nonzero = true;
}

// A whole number that is compared with each of a constant's is a class among them.
void LegalRanges::asks_compared(const Node& node) {
  for (const size_t i : {0, 1}) {
    const TensorId table = node.inputs[1 - i];
    const Range& values = can(table);
    const bool several = fixed(table) && values.is_bounded() && !values.is_point();
    const TensorId one = node.inputs[i];
    if (several && values.whole && can(one).whole && !fixed(one)) restrict_to(one, values);
  }
}

void LegalRanges::asks_mask(const Node& node) {
  for (const size_t i : {0, 1}) {
    const Range& factor = can(node.inputs[1 - i]);
    if (!factor.is_point() || std::fabs(factor.low) < kMaskFactor) continue;
    const Node* const off = maker(unmoved(node.inputs[i]));
    if (!off || off->op != OpKind::Sub) continue;
    const Range& one = can(off->inputs[0]);
    const TensorId mask = unmoved(off->inputs[1]);
    if (one.is_point() && one.low == 1 && can(mask).whole) restrict_to(mask, {0, 1, true});
  }
}

std::vector<bool> counted_floats(const Graph& graph) {
  std::vector<bool> counted(graph.tensors.size(), false);
  const auto is_number = [&](TensorId id) {
    return id != kAbsent && is_float(graph.tensor(id).dtype);
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const TensorId out = node->outputs[0];
    const OpClass kind = class_of(node->op);
    const bool combines = kind == OpClass::reduction || kind == OpClass::scan;
    const bool passes = kind == OpClass::pointwise || only_moves(kind) || combines;
    const bool counts = node->op == OpKind::Cast && is_integer(graph.tensor(out).dtype);
    const bool is_counted = is_number(out) && counted[as_size(out)];
    if (!counts && !(passes && is_counted)) continue;
    for (const TensorId id : node->inputs)
      if (is_number(id)) counted[as_size(id)] = true;
  }
  return counted;
}

std::vector<Range> legal_ranges(const Graph& graph, const std::vector<Range>& possible) {
  return LegalRanges(graph, possible).run();
}
}  // namespace warploom::graph
