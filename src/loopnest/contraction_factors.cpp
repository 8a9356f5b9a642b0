#include "loopnest/contraction_factors.h"
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/value_op.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
bool is_apply(const Expr& value, ValueOp op) {
  return value.kind == Kind::apply && value.op == op;
}

bool is_constant(const Expr& value, double number) {
  return value.kind == Kind::constant && value.value == number;
}

// Whether a coordinate is the index along one axis.
bool is_index_along_an_axis(const Affine& coordinate) {
  const size_t axes = coordinate.steps.size();
  const auto found = std::ranges::find(coordinate.steps, 1);
  const auto axis = as_size(found - coordinate.steps.begin());
  return axis < axes && coordinate == along(axis, axes);
}
}  // namespace

std::optional<Affine> constraint_of(const LoopNest& nest, int condition, bool holds) {
  const auto operand = [&](const Expr& of, size_t i) -> const Expr& {
    return nest.value(of.operands[i]);
  };
  const Expr& value = nest.value(condition);
  const auto is_less_or_equal = [&] {  // where(a < b, 1, a == b)
    if (!is_apply(value, ValueOp::where) || operand(value, 1).value != 1) return false;
    const Expr& less = operand(value, 0);
    const Expr& equal = operand(value, 2);
    if (!is_apply(less, ValueOp::less) || !is_apply(equal, ValueOp::equal)) return false;
    return std::ranges::is_permutation(less.operands, equal.operands);
  };
  const bool or_equal = is_less_or_equal();
  const Expr& less = or_equal ? operand(value, 0) : value;
  if (!is_apply(less, ValueOp::less)) return std::nullopt;
  const Expr& x = operand(less, holds ? 0 : 1);
  const Expr& y = operand(less, holds ? 1 : 0);
  if (x.kind != Kind::index || y.kind != Kind::index) return std::nullopt;
  Affine constraint = y.at;
  const bool strict = holds != or_equal;
  constraint.begin -= x.at.begin + (strict ? 1 : 0);
  for (size_t a = 0; a < constraint.steps.size(); ++a)
    constraint.steps[a] -= x.at.steps[a];
  return constraint;
}

bool TermFactors::take(int id) {
  constexpr int kMost = 256;  // a square is two factors, its square four: no end in sight
  if (++taken_ > kMost) return false;
  const Expr& value = nest_.value(id);
  if (value.kind == Kind::constant) {
    number *= value.value;
    return true;
  }
  if (std::ranges::none_of(summed_, [&](size_t axis) { return value.varies[axis]; })) {
    constant_along_sum.push_back(id);
    return true;
  }
  if (value.kind == Kind::load) return take_load(value);
  if (value.kind != Kind::apply) return false;
  if (value.op == ValueOp::where) return take_triangle(value);
  const auto is_zero = [&](int operand) { return is_constant(nest_.value(operand), 0); };
  const bool has_zero_point = value.op == ValueOp::sub && is_zero(value.operands[1]);
  if (has_zero_point) return take(value.operands[0]);
  if (value.op != ValueOp::mul) return false;
  return take(value.operands[0]) && take(value.operands[1]);
}

bool TermFactors::take_load(const Expr& value) {
  loads.push_back(as_size(value.load));
  return !nest_.load_of(value).is_gathered();
}

// where(x ≤ y, element, 0), each axis a dimension of the element's tensor.
bool TermFactors::take_triangle(const Expr& where) {
  const Expr& kept = nest_.value(where.operands[1]);
  const Expr& beyond = nest_.value(where.operands[2]);
  const auto constraint = constraint_of(nest_, where.operands[0], true);
  if (!constraint || kept.kind != Kind::load || !is_constant(beyond, 0)) return false;
  const Access& load = nest_.load_of(kept);
  const bool typed = load.in_bounds && is_computed_float(load.dtype);
  bool plain = typed && std::ranges::all_of(load.at, is_index_along_an_axis);
  for (size_t a = 0; a < nest_.axes.size(); ++a)
    plain = plain && (constraint->steps[a] == 0 || load.uses(a));
  triangular.emplace(kept.load, *constraint);
  return plain && take(where.operands[1]);
}

std::vector<size_t> TermFactors::take_block_scales() {
  const auto goes_along_all = [&](size_t load) {
    return std::ranges::all_of(summed_, [&](size_t axis) { return nest_.loads[load].uses(axis); });
  };
  const auto scales = std::stable_partition(loads.begin(), loads.end(), goes_along_all);
  std::vector<size_t> out(scales, loads.end());
  loads.erase(scales, loads.end());
  return out;
}
}  // namespace warploom::loopnest
