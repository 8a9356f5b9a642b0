#include "verify/coverage.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/track.h"
#include "verify/inputs.h"
#include "verify/range_ends.h"

namespace warploom::verify {
namespace {
using graph::Graph;
using graph::kAbsent;
using graph::Node;
using graph::OpClass;
using graph::OpKind;
using graph::Ranges;
using graph::Tensor;
using graph::TensorId;

// What only adds, multiplies, divides or chooses: of rounded numbers no more than rounding comes.
constexpr OpKind kStraight[] = {
    OpKind::Add,       OpKind::Sub,        OpKind::Mul,      OpKind::Div,  OpKind::Neg,
    OpKind::Abs,       OpKind::Max,        OpKind::Min,      OpKind::Sum,  OpKind::Mean,
    OpKind::Relu,      OpKind::LeakyRelu,  OpKind::PRelu,    OpKind::Sqrt, OpKind::Clip,
    OpKind::Where,     OpKind::Reciprocal, OpKind::Identity, OpKind::Cast, OpKind::Dequantize,
    OpKind::HardSwish, OpKind::HardSigmoid};

// What makes zeros of numbers that are none, which other kernels leave out of their sums.
constexpr OpKind kVanishing[] = {OpKind::Exp,     OpKind::Where, OpKind::Pad, OpKind::Sigmoid,
                                 OpKind::And,     OpKind::Or,    OpKind::Not, OpKind::Less,
                                 OpKind::Greater, OpKind::Equal};

constexpr OpKind kNotOfZero[] = {OpKind::Div, OpKind::Reciprocal, OpKind::Log, OpKind::Pow,
                                 OpKind::Mod};

constexpr OpKind kComparisons[] = {OpKind::Equal,       OpKind::Less,           OpKind::Greater,
                                   OpKind::LessOrEqual, OpKind::GreaterOrEqual, OpKind::Not,
                                   OpKind::IsNaN,       OpKind::IsInf,          OpKind::Sign,
                                   OpKind::Shrink,      OpKind::ThresholdedRelu};

bool is_one_of(std::span<const OpKind> kinds, OpKind op) {
  return std::ranges::find(kinds, op) != kinds.end();
}

bool has_any(const Graph& graph, std::span<const OpKind> kinds) {
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return is_one_of(kinds, node.op); });
}

bool by_element(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const Node& node) {
    const OpClass kind = class_of(node.op);
    return kind == OpClass::pointwise || only_moves(kind);
  });
}

bool counts(Dtype dtype) {
  return is_integer(dtype) && dtype != Dtype::boolean;
}

// What is known of a tensor, from the inputs on.
struct Made {
  int roundings = 0;              // one behind another
  bool vanishes = false;          // zeros are among what it is made of that may be left out
  bool may_be_zero = true;        // where an input holds zeros
  bool cancels = false;           // in a row of one number it may be zero, or what rounding leaves
  bool given = true;              // an input or a constant, moved at the most
  std::vector<size_t> of_inputs;  // that it is made of, ascending
};

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), made_(graph.tensors.size()) {
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      of(graph.inputs[i]).of_inputs = {i};
    for (const Node& node : graph.nodes)
      step(node);
  }

  const Made& at(TensorId id) const { return made_[as_size(id)]; }

 private:
  Made& of(TensorId id) { return made_[as_size(id)]; }

  void step(const Node& node) {
    Made made;
    made.given = only_moves(class_of(node.op));
    for (const TensorId id : node.inputs) {
      if (id == kAbsent) continue;
      const Made& from = at(id);
      made.roundings = std::max(made.roundings, from.roundings);
      made.vanishes |= from.vanishes;
      made.given &= from.given;
      std::vector<size_t> all;
      std::ranges::set_union(made.of_inputs, from.of_inputs, std::back_inserter(all));
      made.of_inputs = std::move(all);
    }
    made.vanishes |= is_one_of(kVanishing, node.op);
    made.cancels = cancels(node);
    made.may_be_zero = !lifts(node) && std::ranges::any_of(node.inputs, [&](TensorId id) {
      return id != kAbsent && !is_constant(id) && at(id).may_be_zero;
    });
    const bool floats = is_float(graph_.tensor(node.outputs[0]).dtype);
    made.roundings += floats && !keeps_exact(node) && !is_step(graph_, node);
    for (const TensorId id : node.outputs)
      if (id != kAbsent) of(id) = made;
  }

  // A difference of what one input gave twice (x less its mean), and what is made of that; what is
  // added to it, or its exponential, is none.
  bool cancels(const Node& node) const {
    if (lifts(node)) return false;
    if (node.op == OpKind::Sub) {
      const auto& left = at(node.inputs[0]).of_inputs;
      const auto& right = at(node.inputs[1]).of_inputs;
      const auto is_of_right = [&](size_t input) { return contains(right, input); };
      if (std::ranges::any_of(left, is_of_right)) return true;
    }
    return std::ranges::any_of(node.inputs,
                               [&](TensorId id) { return id != kAbsent && at(id).cancels; });
  }

  // Exponentials, and sums with a constant: such as an epsilon under a root.
  bool lifts(const Node& node) const {
    const bool adds = node.op == OpKind::Add;
    return node.op == OpKind::Exp ||
           (adds && (is_constant(node.inputs[0]) || is_constant(node.inputs[1])));
  }

  bool is_constant(TensorId id) const { return graph_.tensor(id).constant.has_value(); }

  const Graph& graph_;
  std::vector<Made> made_;
};

// Quotients, logarithms and the like of what cancels.
bool divides_by_cancelled(const Graph& graph, const Walk& walk) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return is_one_of(kNotOfZero, node.op) && walk.at(node.inputs.back()).cancels;
  });
}

bool steps_on_rounded(const Graph& graph, const Walk& walk) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return is_step(graph, node) && std::ranges::any_of(node.inputs, [&](TensorId id) {
             return id != kAbsent && walk.at(id).roundings > 0;
           });
  });
}

bool casts(const Graph& graph, bool to_integer) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    if (class_of(node.op) != OpClass::pointwise) return false;
    const Dtype from = graph.tensor(node.inputs[0]).dtype;
    const Dtype to = graph.tensor(node.outputs[0]).dtype;
    const bool between = to_integer ? is_float(from) && counts(to) : counts(from) && is_float(to);
    return node.op == OpKind::Cast && between;
  });
}

// Functions, but for what is straight, of numbers that were rounded at most once.
bool bends_no_rounded(const Graph& graph, const Walk& walk) {
  return std::ranges::all_of(graph.nodes, [&](const Node& node) {
    if (class_of(node.op) != OpClass::pointwise || is_one_of(kStraight, node.op)) return true;
    return std::ranges::all_of(
        node.inputs, [&](TensorId id) { return id == kAbsent || walk.at(id).roundings <= 1; });
  });
}

template <class Wanted>
bool has_free_input(const Graph& graph, const Ranges& ranges, Wanted wanted) {
  return std::ranges::any_of(graph.inputs, [&](TensorId id) {
    const Tensor& tensor = graph.tensor(id);
    return wanted(tensor.dtype) && is_free(graph::range_in(ranges, tensor.name), tensor.dtype);
  });
}

bool divides_integers(const Graph& graph, const Node& node) {
  return (node.op == OpKind::Div || node.op == OpKind::Mod) &&
         counts(graph.tensor(node.outputs[0]).dtype);
}

// Quotients of what is given, or by positive constants.
bool divides_safely(const Graph& graph, const Walk& walk, const Node& node) {
  if (!divides_integers(graph, node)) return true;
  const Tensor& divisor = graph.tensor(node.inputs[1]);
  if (!divisor.constant) return walk.at(node.inputs[0]).given && walk.at(node.inputs[1]).given;
  for (int64_t i = 0; i < graph::element_count(divisor.shape); ++i)
    if (load_as_double(divisor.dtype, divisor.constant->data(), as_size(i)) <= 0) return false;
  return true;
}

// All of a track's operands, and what it stores, have the exponents of fp32.
bool has_wide_exponents(Track track) {
  return track != Track::fp16 && track != Track::fp8;
}

bool has_wide_numbers(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f64;
}

bool holds_special_values(Dtype dtype) {
  return is_float(dtype) && bits_of(dtype) >= 16;
}

struct Judged {
  bool whole_range = false;
  bool ties = false;
  bool magnitudes = false;
  bool infinities = false;
  bool nans = false;
  bool ends = false;
  bool large = false;
  bool level_rows = false;
};

Judged judged_on(const Graph& graph, Track track, const Ranges& ranges) {
  const Walk walk(graph);
  const bool steps = steps_on_rounded(graph, walk);
  const bool to_integer = casts(graph, true);
  const bool to_float = casts(graph, false) || has_any(graph, std::array{OpKind::Dequantize});
  const bool straight = !steps && !to_integer && bends_no_rounded(graph, walk);
  const bool elements = by_element(graph);
  const auto safely = [&](const Node& node) { return divides_safely(graph, walk, node); };
  const bool powers = std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == OpKind::Pow && counts(graph.tensor(node.outputs[0]).dtype);
  });
  Judged on;
  on.ends = is_judged_at_ends(graph);
  on.whole_range = has_free_input(graph, ranges, counts) && !powers && (!to_float || straight) &&
                   std::ranges::all_of(graph.nodes, safely);
  on.ties = !steps && has_free_input(graph, ranges, [](Dtype dtype) { return is_float(dtype); });
  on.magnitudes = straight && !elements && has_wide_exponents(track) &&
                  has_free_input(graph, ranges, has_wide_numbers);
  on.large =
      straight && has_wide_exponents(track) && has_free_input(graph, ranges, has_wide_numbers);
  on.level_rows = on.ties && !elements && !divides_by_cancelled(graph, walk);
  const bool carried = !carriers_of(graph, ranges).inputs.empty();
  on.infinities = carried && !elements && !steps && !to_integer && has_wide_exponents(track);
  on.nans = on.infinities && !has_any(graph, kComparisons);
  return on;
}

bool has_padding(const Node& node) {
  return std::ranges::any_of(node.integers("pads"), [](int64_t pad) { return pad != 0; });
}
}  // namespace

bool divides_by_zeros(const Graph& given) {
  const auto primitive = graph::decompose(given);
  if (!primitive) return true;
  const Walk walk(*primitive);
  return std::ranges::any_of(primitive->nodes, [&](const Node& node) {
    return is_one_of(kNotOfZero, node.op) && walk.at(node.inputs.back()).may_be_zero;
  });
}

bool is_free(const graph::Range& range, Dtype dtype) {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
  if (!is_float(dtype)) {
    const double size = std::ldexp(1.0, bits_of(dtype));
    low = is_signed(dtype) ? -size / 2 : 0;
    high = low + size - 1;
  }
  return range.low <= low && range.high >= high;
}

Carriers carriers_of(const Graph& given, const Ranges& ranges) {
  Carriers carriers;
  const auto primitive = graph::decompose(given);
  if (!primitive) return carriers;
  const Graph& graph = *primitive;
  const Walk walk(graph);
  std::vector<bool> may(graph.inputs.size());
  for (size_t i = 0; i < may.size(); ++i) {
    const Tensor& input = graph.tensor(graph.inputs[i]);
    may[i] = holds_special_values(input.dtype) &&
             is_free(graph::range_in(ranges, input.name), input.dtype);
  }
  const auto count = [&](TensorId id) { return graph::element_count(graph.tensor(id).shape); };
  const auto forbid = [&](TensorId id, int64_t most) {
    for (const size_t i : walk.at(id).of_inputs)
      if (count(graph.inputs[i]) <= most) may[i] = false;
  };
  for (const Node& node : graph.nodes) {
    const OpClass kind = class_of(node.op);
    const bool scales = node.op == OpKind::Mul || node.op == OpKind::Div;
    if (!multiplies(kind) && !scales) continue;
    for (const size_t side : {0, 1}) {
      const TensorId own = node.inputs[side];
      const TensorId other = node.inputs[1 - side];
      const bool padded = kind == OpClass::convolution && side == 1 && has_padding(node);
      if (multiplies(kind) && (padded || walk.at(other).vanishes)) forbid(own, INT64_MAX);
      if (scales && count(own) < count(other)) forbid(own, count(own));
    }
  }
  for (size_t i = 0; i < may.size(); ++i)
    if (may[i]) carriers.inputs.push_back(i);
  // A logarithm of a sum of exponentials less their largest.
  carriers.only_negative =
      has_any(graph, std::array{OpKind::Log}) && has_any(graph, std::array{OpKind::ReduceMax});
  return carriers;
}

bool avoids_least(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == OpKind::Abs || divides_integers(graph, node);
  });
}

bool avoids_zeros(const Graph& given) {
  const auto primitive = graph::decompose(given);
  return primitive && !by_element(*primitive) && has_any(*primitive, kNotOfZero);
}

Coverage coverage_of(const Graph& given, Track track, SpecialValues promised, const Ranges& known) {
  Coverage out;
  const auto primitive = graph::decompose(given);
  Judged on;
  if (primitive) on = judged_on(*primitive, track, graph::ranges_of(*primitive, known));
  const bool finite = promised == SpecialValues::finite;
  for (const InputFamily family : input_families()) {
    bool in_force = true;
    switch (family) {
      case InputFamily::whole_range: in_force = on.whole_range; break;
      case InputFamily::ties: in_force = on.ties; break;
      case InputFamily::magnitudes: in_force = on.magnitudes && !finite; break;
      case InputFamily::infinities: in_force = on.infinities && !finite; break;
      case InputFamily::nans: in_force = on.nans && !finite; break;
      case InputFamily::ends: in_force = on.ends && !finite; break;
      case InputFamily::large: in_force = on.large; break;
      case InputFamily::level_rows:
      case InputFamily::ordered_rows: in_force = on.level_rows; break;
      default: break;
    }
    if (in_force) out.families.push_back(family);
  }
  const bool floats = has_free_input(given, {}, [](Dtype dtype) { return is_float(dtype); });
  const bool integers = has_free_input(given, known, counts);
  if (floats && finite)
    out.not_promised.push_back(
        "special values: inputs must be finite, of like magnitude within a sum, and no larger than "
        "those tried (about 3500; of 16-bit types 100)");
  else if (floats && !on.ends && !on.infinities)
    out.not_promised.push_back("infinities and NaN: the operators leave several right results");
  else if (floats && !on.ends && !on.nans)
    out.not_promised.push_back("NaN: the operators leave several right results");
  if (floats && !finite && !on.ends && !on.magnitudes)
    out.not_promised.push_back("magnitudes far apart: what is rounded is bent, or a step follows");
  if (integers && !on.whole_range)
    out.not_promised.push_back("integers beyond -8 to 15: an end of their type is undefined");
  return out;
}
}  // namespace warploom::verify
