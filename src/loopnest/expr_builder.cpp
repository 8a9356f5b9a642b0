#include "loopnest/expr_builder.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/pointwise.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
int ExprBuilder::push(Expr value) {
  const size_t hash = value.hash();
  const auto [first, last] = numbers_.equal_range(hash);
  const auto same = std::find_if(
      first, last, [&](const auto& old) { return nest_.value(old.second).same(value); });
  if (same != last) return same->second;
  const int number = as_int(nest_.values.size());
  nest_.values.push_back(std::move(value));
  numbers_.emplace(hash, number);
  return number;
}

int ExprBuilder::load(Access access) {
  nest_.loads.push_back(std::move(access));
  const int number = as_int(nest_.loads.size()) - 1;
  return push({.kind = Kind::load, .load = number});
}

int ExprBuilder::apply(ValueOp op, std::vector<int> operands) {
  std::array<double, 3> known{};
  for (size_t i = 0; i < operands.size(); ++i) {
    const Expr& operand = nest_.value(operands[i]);
    if (operand.kind != Kind::constant) {
      Expr made{.kind = Kind::apply, .op = op};
      made.operands = std::move(operands);
      return push(std::move(made));
    }
    known[i] = operand.value;
  }
  return constant(warploom::apply(op, known[0], known[1], known[2]));
}

// Of constants alone a constant, where a double holds the result.
int ExprBuilder::apply_integers(ValueOp op, std::vector<int> operands) {
  constexpr double kExactInDouble = 0x1p53;
  std::array<int64_t, 3> known{};
  bool all_known = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Expr& operand = nest_.value(operands[i]);
    all_known = all_known && operand.kind == Kind::constant;
    known[i] = saturated_integer(Dtype::i64, operand.value);
  }
  if (all_known) {
    const int64_t result = warploom::apply_integers(op, known[0], known[1], known[2]);
    const auto number = as_double(result);
    if (std::abs(number) <= kExactInDouble) return constant(number);
  }
  Expr made{.kind = Kind::apply, .op = op, .dtype = Dtype::i64, .integers = true};
  made.operands = std::move(operands);
  return push(std::move(made));
}

int ExprBuilder::reduce(ValueOp op, int operand, std::vector<size_t> axes) {
  if (axes.empty()) return operand;
  std::ranges::sort(axes);
  Expr made{.kind = Kind::reduce, .op = op, .operands = {operand}};
  made.axes = std::move(axes);
  return push(std::move(made));
}

int ExprBuilder::apply_as(Dtype dtype, ValueOp op, const std::vector<int>& operands) {
  const auto exact = [&](int v) { return is_exact_in_fp32(v) && !computes_integers(v); };
  if (is_float(dtype)) return apply(op, operands);
  if (std::ranges::all_of(operands, exact))
    if (const int v = apply(op, operands); is_exact_in_fp32(v)) return v;
  std::vector<int> integers;
  for (const int operand : operands) {
    const bool condition = op == ValueOp::where && integers.empty();
    integers.push_back(to_integer(operand, condition ? Dtype::boolean : dtype));
  }
  return wrap(apply_integers(op, std::move(integers)), dtype);
}

int ExprBuilder::reduce_as(Dtype dtype, ValueOp op, int operand, const std::vector<size_t>& axes) {
  if (!is_integer(dtype) || dtype == Dtype::boolean) return reduce(op, to_float(operand), axes);
  if (!computes_integers(operand))
    if (const int v = reduce(op, operand, axes); holds_exactly(dtype, v)) return v;
  const int v = to_integer(operand, Dtype::i64);
  if (axes.empty()) return wrap(v, dtype);
  std::vector<size_t> ascending = axes;
  std::ranges::sort(ascending);
  Expr made{.kind = Kind::reduce, .op = op, .dtype = Dtype::i64, .integers = true};
  made.operands = {v};
  made.axes = std::move(ascending);
  return wrap(push(std::move(made)), dtype);
}

int ExprBuilder::evaluate(const graph::Expression& expression, const std::vector<int>& operands,
                          bool on_integers) {
  using graph::ExpressionTerm;
  std::vector<int> values;  // by term
  for (const ExpressionTerm& term : expression.terms) {
    if (term.kind == ExpressionTerm::Kind::input) values.push_back(operands[as_size(term.input)]);
    if (term.kind == ExpressionTerm::Kind::constant) values.push_back(constant(term.value));
    if (term.kind != ExpressionTerm::Kind::apply) continue;
    std::vector<int> args;
    for (const int arg : std::span(term.args).first(as_size(arity_of(term.op))))
      args.push_back(values[as_size(arg)]);
    if (on_integers)
      values.push_back(apply_integers(term.op, std::move(args)));
    else
      values.push_back(apply(term.op, std::move(args)));
  }
  return values.back();
}

int ExprBuilder::push_integer_of(Dtype dtype, int v) {
  Expr made{.kind = Kind::round, .dtype = dtype, .operands = {v}, .integers = true};
  return push(std::move(made));
}

int ExprBuilder::to_integer(int v, Dtype dtype) {
  if (nest_.is_integer_value(v)) return v;
  return push_integer_of(dtype, v);
}

int ExprBuilder::to_float(int v) {
  return computes_integers(v) ? round(Dtype::f32, v) : v;
}

int ExprBuilder::wrap(int v, Dtype dtype) {
  if (dtype == Dtype::i64 || is_of_type(dtype, v)) return v;
  if (dtype == Dtype::i32 && nest_.largest_magnitude(v) < 0x1p31) return v;
  return push_integer_of(dtype, v);
}

bool ExprBuilder::is_exact_in_fp32(int v) const {
  return nest_.largest_magnitude(v) <= 0x1p24;
}

bool ExprBuilder::is_of_type(Dtype dtype, int v) const {
  std::set<int> seen;
  return is_of_type(dtype, v, seen);
}

bool ExprBuilder::is_of_type(Dtype dtype, int v, std::set<int>& seen) const {
  if (!seen.insert(v).second) return true;
  const Expr& of = nest_.value(v);
  const auto operands_are = [&](size_t from) {
    const auto fits = [&](int operand) { return is_of_type(dtype, operand, seen); };
    return std::ranges::all_of(std::span(of.operands).subspan(from), fits);
  };
  const bool chooses = of.op == ValueOp::max || of.op == ValueOp::min;
  switch (of.kind) {
    case Kind::constant: return rounded(dtype, of.value) == of.value;
    case Kind::load: {
      const Dtype loaded = nest_.load_of(of).dtype;
      return loaded == dtype || loaded == Dtype::boolean;
    }
    case Kind::reduce: return chooses && operands_are(0);
    case Kind::apply:
      if (of.op == ValueOp::less || of.op == ValueOp::equal) return true;
      if (of.op == ValueOp::where) return operands_are(1);
      return chooses && operands_are(0);
    case Kind::round: return of.dtype == dtype;
    default: return false;
  }
}

bool ExprBuilder::holds_exactly(Dtype dtype, int v) const {
  return bits_of(dtype) == 8 ? is_of_type(dtype, v) : is_exact_in_fp32(v);
}
}  // namespace warploom::loopnest
