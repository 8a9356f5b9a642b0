// What the tensors of a graph may hold, from its outputs back.
#include "graph/range_passes.h"

namespace warploom::graph {
namespace {
// From this factor on 1 - m of a whole m, multiplied by it, is how an attention's mask is written.
constexpr double kMaskFactor = 1000;

class Legal {
 public:
  Legal(const Graph& graph, const std::vector<Range>& possible)
      : graph_(graph),
        possible_(possible),
        legal_(graph.tensors.size()),
        makers_(graph.tensors.size(), nullptr) {
    for (const Node& node : graph.nodes)
      for (const TensorId id : node.outputs)
        if (id != kAbsent) makers_[at(id)] = &node;
  }

  std::vector<Range> run() {
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

 private:
  static size_t at(TensorId id) { return static_cast<size_t>(id); }

  const Range& can(TensorId id) const { return possible_[at(id)]; }

  bool fixed(TensorId id) const { return graph_.tensor(id).constant.has_value(); }

  bool has(const Node& node, size_t i) const { return NodeContext{graph_, node}.has(i); }

  const Node* maker(TensorId id) const { return makers_[at(id)]; }

  // What a restriction asks for that nothing can meet any more is left out: who asked first stands.
  void restrict_to(TensorId id, Range to) {
    if (can(id).whole) {
      to.low = std::ceil(to.low);
      to.high = std::floor(to.high);
    }
    const Range both = meet(legal_[at(id)], to);
    if (!both.is_empty()) legal_[at(id)] = both;
  }

  void restrict_input(const Node& node, size_t i, const Range& to) {
    if (has(node, i)) restrict_to(node.inputs[i], to);
  }

  // Through what only moves elements or widens them.
  TensorId unmoved(TensorId id) const {
    for (const Node* node = maker(id); node; node = maker(id)) {
      const bool same = node->op == OpKind::Cast || node->op == OpKind::Identity;
      if (!same && !only_moves(class_of(node->op))) break;
      id = node->inputs[0];
    }
    return id;
  }

  // What an operator asks of its inputs whatever becomes of its result.
  void asks(const Node& node) {
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

  void asks_indices(const Node& node) {
    const NodeContext q{graph_, node};
    const size_t rank = q.in(0).shape.size();
    const auto size = static_cast<double>(q.in(0).shape[q.axis(rank)]);
    restrict_input(node, 1, {-size, size - 1, true});
  }

  // Of a place among several axes, which says less of each of its indices.
  void asks_index(const Node& node) {
    const auto size = static_cast<double>(node.integer("index_size"));
    if (size > 0) chooses(node, {0, size - 1, true});
  }

  // Each index along the last axis is of another axis: what all of these have.
  void asks_places(const Node& node) {
    const NodeContext q{graph_, node};
    const auto first = static_cast<size_t>(node.integer("batch_dims"));
    const auto axes = static_cast<size_t>(q.in(1).shape.back());
    for (size_t d = first; d < first + axes; ++d) {
      const auto size = static_cast<double>(q.in(0).shape[d]);
      restrict_input(node, 1, {-size, size - 1, true});
    }
  }

  // The class that is ignored is drawn where it lies beside the others.
  void asks_classes(const Node& node) {
    const auto classes = static_cast<double>(NodeContext{graph_, node}.in(0).shape[1]);
    const auto ignored = static_cast<double>(node.integer("ignore_index"));
    const Range asked = {ignored == -1 ? -1.0 : 0, ignored == classes ? classes : classes - 1,
                         true};
    restrict_input(node, 1, asked);
  }

  void asks_variance(const Node& node) {
    const Node* const sum = maker(unmoved(node.inputs[0]));
    if (!sum || sum->op != OpKind::Add) return;
    for (const size_t i : {0, 1})
      if (fixed(sum->inputs[1 - i])) restrict_to(unmoved(sum->inputs[i]), {0, HUGE_VAL});
  }

  void asks_divisor(const Node& node) {
    const TensorId by = node.inputs[1];
    if (is_float(graph_.tensor(by).dtype) || fixed(by)) return;
    legal_[at(by)].nonzero = true;
    legal_[at(unmoved(by))].nonzero = true;
  }

  // A whole number that is compared with each of a constant's is a class among them.
  void asks_compared(const Node& node) {
    for (const size_t i : {0, 1}) {
      const TensorId table = node.inputs[1 - i];
      const bool several = fixed(table) && can(table).is_bounded() && !can(table).is_point();
      const TensorId one = node.inputs[i];
      if (several && can(table).whole && can(one).whole && !fixed(one))
        restrict_to(one, can(table));
    }
  }

  void asks_mask(const Node& node) {
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

  // What the inputs must be for the result to be as wanted.
  void passes_on(const Node& node, const Range& wanted) {
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

  void moves(const Node& node, const Range& wanted) {
    const size_t count = node.op == OpKind::Concat ? node.inputs.size() : 1;
    for (size_t i = 0; i < count; ++i) restrict_to(node.inputs[i], wanted);
  }

  void composite(const Node& node, const Range& wanted) {
    constexpr OpKind kMoves[] = {OpKind::GatherElements, OpKind::GatherND,     OpKind::Split,
                                 OpKind::Tile,           OpKind::DepthToSpace, OpKind::SpaceToDepth,
                                 OpKind::Dropout,        OpKind::CastLike,     OpKind::Trilu,
                                 OpKind::ReduceMean};
    if (std::ranges::find(kMoves, node.op) != std::end(kMoves)) restrict_to(node.inputs[0], wanted);
  }

  void sums(const Node& node, const Range& wanted) {
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

  void pointwise(const Node& node, const Range& wanted) {
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
      case OpKind::Div:
        if (can(node.inputs[1]).is_point() && can(node.inputs[1]).low != 0)
          restrict_to(x, times(wanted, can(node.inputs[1]).low));
        return;
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
  void adds(const Node& node, const Range& wanted, bool minus) {
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
    if (narrow.is_bounded() && !left_by(narrow).is_empty())
      return first ? restrict_to(x, left_by(narrow)) : restrict_y(left_by(narrow));
    const Range half = {wanted.low / 2, wanted.high / 2};
    restrict_to(x, half);
    restrict_y(half);
  }

  void multiplies(const Node& node, const Range& wanted) {
    for (const size_t i : {0, 1}) {
      const Range& by = can(node.inputs[1 - i]);
      if (by.is_point() && by.low != 0)
        return restrict_to(node.inputs[i], times(wanted, 1 / by.low));
    }
    const double most = std::min(-wanted.low, wanted.high);  // of the product's size
    if (!wanted.is_bounded() || most <= 0) return;
    const auto size = [&](size_t i) {
      return std::max(std::fabs(can(node.inputs[i]).low), std::fabs(can(node.inputs[i]).high));
    };
    const size_t wide = size(0) >= size(1) ? 0 : 1;
    const double by = size(1 - wide);
    const double left = most / std::max(1.0, by);
    if (by <= most) return restrict_to(node.inputs[wide], {-left, left});
    for (const TensorId id : node.inputs) restrict_to(id, {-std::sqrt(most), std::sqrt(most)});
  }

  // An end that a bound keeps anyway asks for nothing.
  void clips(const Node& node, const Range& wanted) {
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
      restrict_to(node.inputs[i], {least >= wanted.low ? -HUGE_VAL : wanted.low,
                                   most <= wanted.high ? HUGE_VAL : wanted.high});
    }
  }

  // scale · root + offset.
  struct Affine {
    TensorId root = kAbsent;
    double scale = 1;
    double offset = 0;

    Range root_for(const Range& wanted) const {
      return times(difference(wanted, {offset, offset, true}), 1 / scale);
    }
  };

  Affine affine(TensorId id) const {
    Affine out = {id};
    for (const Node* node = maker(id); node; node = maker(out.root)) {
      const bool kept =
          node->op == OpKind::Identity || (node->op == OpKind::Cast && can(node->inputs[0]).whole &&
                                           graph_.tensor(node->outputs[0]).dtype != Dtype::boolean);
      if (kept) {
        out.root = node->inputs[0];
        continue;
      }
      if (node->op == OpKind::Neg) {
        out = {node->inputs[0], -out.scale, out.offset};
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
      out = {node->inputs[i], out.scale * own, out.offset + out.scale * beside};
    }
    return out;
  }

  // Where a condition holds: a part of the numbers that a tensor may be, and the rest of them.
  struct Split {
    TensorId root = kAbsent;
    Range yes = {};
    Range no = {};
  };

  Split split_by(TensorId condition) const {
    const Node* const node = maker(condition);
    if (!node) return {};
    if (node->op == OpKind::Not) {
      const Split other = split_by(node->inputs[0]);
      return {other.root, other.no, other.yes};
    }
    const bool below = node->op == OpKind::Less || node->op == OpKind::LessOrEqual;
    const bool above = node->op == OpKind::Greater || node->op == OpKind::GreaterOrEqual;
    if (!below && !above) return {};
    const size_t i = can(node->inputs[1]).is_point() ? 0 : 1;
    const Range& edge = can(node->inputs[1 - i]);
    if (!edge.is_point()) return {};
    const Affine of = affine(node->inputs[i]);
    const double place = (edge.low - of.offset) / of.scale;
    const bool strict = node->op == OpKind::Less || node->op == OpKind::Greater;
    const bool under = (below == (i == 0)) == (of.scale > 0);  // holds of numbers below the place
    const bool whole = can(of.root).whole;
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
    return {of.root, under ? lower : upper, under ? upper : lower};
  }

  // where(i < 0, i + n, i): each side is asked only for the numbers that come to it.
  void chooses(const Node& node, const Range& wanted) {
    const Split split = split_by(node.inputs[0]);
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
    if (yes.is_empty() || no.is_empty()) return restrict_to(split.root, yes.is_empty() ? no : yes);
    const Range& lower = yes.low < no.low ? yes : no;
    const Range& upper = yes.low < no.low ? no : yes;
    const bool joined = upper.low - lower.high <= (can(split.root).whole ? 1 : 0);
    const bool lower_is_wider = lower.high - lower.low > upper.high - upper.low;
    const Range& wider = lower_is_wider ? lower : upper;
    restrict_to(split.root, joined ? hull(lower, upper) : wider);
  }

  const Graph& graph_;
  const std::vector<Range>& possible_;
  std::vector<Range> legal_;
  std::vector<const Node*> makers_;
};
}  // namespace

std::vector<bool> counted_floats(const Graph& graph) {
  std::vector<bool> counted(graph.tensors.size(), false);
  const auto is_number = [&](TensorId id) {
    return id != kAbsent && is_float(graph.tensor(id).dtype);
  };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const TensorId out = node->outputs[0];
    const OpClass kind = class_of(node->op);
    const bool passes = kind == OpClass::pointwise || only_moves(kind) ||
                        kind == OpClass::reduction || kind == OpClass::scan;
    const bool counts = node->op == OpKind::Cast && is_integer(graph.tensor(out).dtype);
    if (!counts && !(passes && is_number(out) && counted[static_cast<size_t>(out)])) continue;
    for (const TensorId id : node->inputs)
      if (is_number(id)) counted[static_cast<size_t>(id)] = true;
  }
  return counted;
}

std::vector<Range> legal_ranges(const Graph& graph, const std::vector<Range>& possible) {
  return Legal(graph, possible).run();
}
}  // namespace warploom::graph
