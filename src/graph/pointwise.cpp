#include "graph/pointwise.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/scalar_function.h"

namespace warploom::graph {
namespace {
// A formula: a term, and where it applies an operation the operands. A number is a constant.
struct Formula {
  Formula(double number) : term{.value = number} {}

  explicit Formula(ExpressionTerm top, std::vector<Formula> below = {})
      : term(top), operands(std::make_shared<const std::vector<Formula>>(std::move(below))) {}

  ExpressionTerm term;
  std::shared_ptr<const std::vector<Formula>> operands;
};

Formula input(int i) {
  return Formula({.kind = ExpressionTerm::Kind::input, .input = i});
}

Formula applied(ValueOp op, std::vector<Formula> to) {
  return Formula({.kind = ExpressionTerm::Kind::apply, .op = op}, std::move(to));
}

// Its terms, each once and after those that it needs, behind what is there; the place of its own.
int place(const Formula& value, std::vector<ExpressionTerm>& terms) {
  ExpressionTerm term = value.term;
  for (int k = 0; term.kind == ExpressionTerm::Kind::apply && k < arity_of(term.op); ++k)
    term.args[k] = place((*value.operands)[k], terms);
  const auto same = [&](const ExpressionTerm& old) {
    const bool same_place = old.kind == term.kind && old.input == term.input;
    const bool same_operation = old.op == term.op && old.args == term.args;
    const auto old_bits = std::bit_cast<uint64_t>(old.value);
    return same_place && same_operation && old_bits == std::bit_cast<uint64_t>(term.value);
  };
  const auto at = std::ranges::find_if(terms, same) - terms.begin();
  if (at == std::ssize(terms)) terms.push_back(term);
  return as_int(at);
}

#define WARPLOOM_VALUE_OP(name, ...)                                                            \
  [[maybe_unused]] Formula name(const Formula& a, const Formula& b = 0, const Formula& c = 0) { \
    return applied(ValueOp::name, {a, b, c});                                                   \
  }
#include "base/value_ops.def"

Formula operator+(const Formula& a, const Formula& b) {
  return add(a, b);
}

Formula operator-(const Formula& a, const Formula& b) {
  return sub(a, b);
}

Formula operator*(const Formula& a, const Formula& b) {
  return mul(a, b);
}

Formula operator/(const Formula& a, const Formula& b) {
  return div(a, b);
}

Formula operator-(const Formula& a) {
  return neg(a);
}

Formula operator<(const Formula& a, const Formula& b) {
  return less(a, b);
}

Formula operator==(const Formula& a, const Formula& b) {
  return equal(a, b);
}

// All inputs by one operation; the largest and the smallest pass a NaN on from either side.
Formula all(const NodeContext& context, ValueOp op) {
  Formula value = input(0);
  for (int i = 1; i < as_int(context.node.inputs.size()); ++i)
    value = applied(op, {value, input(i)});
  return value;
}

Formula truncate(const Formula& a) {
  return where(a < 0, -floor(-a), floor(a));
}

// log(1 + e) for e >= 0: where 1 + e rounds to 1 it is e; elsewhere the rounding of u = 1 + e is
// undone by e / (u - 1).
Formula log1p(const Formula& e) {
  const Formula u = e + 1;
  const Formula correction = where(u == e, 1, e / (u - 1));
  return where(u == 1, e, log(u) * correction);
}

// exp(x) - 1, by the same trick turned round: (u - 1)·x / log(u) with u = exp(x).
Formula expm1(const Formula& x) {
  const Formula u = exp(x);
  const Formula minus = u - 1;
  const Formula corrected = minus * (x / log(u));
  return where(u == 1, x, where(minus == -1, -1, corrected));
}

// e^s / 2 where e^s itself may be more than the type holds: half of e^(s/2) times the other.
Formula half_exp(const Formula& s) {
  const Formula root = exp(0.5 * s);
  return (0.5 * root) * root;
}

Formula cosh(const Formula& x) {
  const Formula s = abs(x);
  return half_exp(s) + 0.5 * exp(-s);
}

// (e^x - e^-x) / 2 = (m + m/(m + 1)) / 2 with m = e^x - 1, which loses nothing near 0; from 1 on as
// it is written.
Formula sinh(const Formula& x) {
  const Formula m = expm1(x);
  const Formula s = abs(x);
  const Formula size = half_exp(s) - 0.5 * exp(-s);
  const Formula near_zero = 0.5 * (m + m / (m + 1));
  const Formula far = where(x < 0, -size, size);
  return where(s < 1, near_zero, far);
}

// From here on the 1 in sqrt(s² ± 1) is lost in fp32 and FP64 alike, and s² is not beyond either.
constexpr double kLarge = 1e9;

// log(2s), where 2s may be more than the type holds.
Formula log_twice(const Formula& s) {
  return log(s) + std::numbers::ln2;
}

// log(s + sqrt(s² + 1)) of the size s, by way of log1p; where s² would overflow, log(2s).
Formula asinh(const Formula& x) {
  const Formula s = abs(x);
  const Formula c = min(s, kLarge);
  const Formula square = c * c;
  const Formula small = log1p(c + square / (sqrt(square + 1) + 1));
  const Formula size = where(s < kLarge, small, log_twice(s));
  return where(x < 0, -size, where(x == 0, x, size));
}

// log(x + sqrt(x² - 1)), likewise; each root by itself, so that what is below 1 has none.
Formula acosh(const Formula& x) {
  const Formula c = min(x, kLarge);
  const Formula over = c - 1;
  const Formula root = sqrt(over) * sqrt(c + 1);
  return where(x < kLarge, log1p(over + root), log_twice(x));
}

Formula atanh(const Formula& x) {
  const Formula s = abs(x);
  const Formula size = 0.5 * log1p((s + s) / (1 - s));
  return where(x < 0, -size, where(x == 0, x, size));
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// exp(y·log|x|), as C has it: 1 to any power, and anything to the power 0, is 1, also of NaN; -1 to
// an infinite one is 1. An odd whole exponent keeps the sign of x, also that of a zero, which shows
// in its reciprocal; a finite x below 0 has no power that is not whole, -inf has.
Formula general_power(const Formula& x, const Formula& y) {
  const Formula above = abs(x);
  const Formula size = where(above == 1, 1, exp(y * log(above)));
  const Formula half = 0.5 * y;
  const Formula whole = floor(y) == y;
  const Formula odd = where(floor(half) == half, 0, whole);
  const Formula signed_size = where(min(x, reciprocal(x)) < 0, -size, size);
  const Formula has_power = where(above == kInfinite, 1, whole);
  const Formula broken = std::numeric_limits<double>::quiet_NaN();
  const Formula of_negative = where(has_power, size, broken);
  const Formula not_odd = where(x < 0, of_negative, size);
  return where(y == 0, 1, where(odd, signed_size, not_odd));
}

Formula power(const NodeContext& context) {
  const Formula x = input(0);
  if (const auto exponent = constant_scalar(context.graph, context.node.inputs[1])) {
    const double e = *exponent;
    // Roots, but for what C says of powers of -inf and of 0 without its sign.
    if (e == 0.5) return where(x == -kInfinite, kInfinite, sqrt(x));
    if (e == -0.5) return where(x == -kInfinite, 0, where(x == 0, kInfinite, rsqrt(x)));
    if (e == std::trunc(e) && std::fabs(e) <= 64) {  // repeated squaring
      Formula square = x;
      std::optional<Formula> result;
      for (int n = as_int(std::fabs(e)); n > 0; n /= 2) {
        if (n % 2) result = result ? *result * square : square;
        if (n > 1) square = square * square;
      }
      return e < 0 ? reciprocal(*result) : result.value_or(1);
    }
  }
  return general_power(x, input(1));
}

// Of integers the quotient is cut towards zero, by the operation itself or, of small ones in
// floats, by truncate().
Formula modulo(const NodeContext& context) {
  const Formula x = input(0);
  const Formula y = input(1);
  const bool real = is_float(context.in(0).dtype);
  const Formula rest = real ? fmod(x, y) : x - y * truncate(x / y);
  if (context.node.integer("fmod") != 0) return rest;
  const Formula same_side = (rest < 0) == (y < 0);
  return where(rest == 0, rest, where(same_side, rest, rest + y));
}

Formula cast(const NodeContext& context) {
  const Formula x = input(0);
  const Dtype to = context.graph.tensor(context.node.outputs[0]).dtype;
  if (to == Dtype::boolean) return where(x == 0, 0, 1);
  return !is_float(to) && is_float(context.in(0).dtype) ? truncate(x) : x;
}

Formula gelu(const Formula& x, bool by_tanh) {
  if (!by_tanh) return 0.5 * x * (erf((1 / std::numbers::sqrt2) * x) + 1);
  const double scale = std::sqrt(2 / std::numbers::pi);
  const Formula cube = x * x * x;
  return 0.5 * x * (tanh(scale * (x + 0.044715 * cube)) + 1);
}

Formula clip(const NodeContext& context) {
  Formula value = input(0);
  if (context.has(1)) value = max(value, input(1));
  if (context.has(2)) value = min(value, input(2));
  return value;
}

// x·tanh(log(1 + e^x)) = x·t/(t + 2) with t = e^x (e^x + 2); from 20 on the factor is 1 and e^40
// still fits fp32.
Formula mish(const Formula& x) {
  const Formula n = exp(min(x, 20));
  const Formula t = n * (n + 2);
  return x * (t / (t + 2));
}

// To the nearest whole number, of two equally near to the even one.
Formula round(const Formula& x) {
  const Formula low = floor(x);
  const Formula over = x - low;
  const Formula half = 0.5 * low;
  const Formula even = where(floor(half) == half, low, low + 1);
  return where(over < 0.5, low, where(0.5 < over, low + 1, even));
}

Formula is_infinite(const Node& node, const Formula& x) {
  const Formula big = kInfinite;
  const bool up = node.integer("detect_positive", 1) != 0;
  const bool down = node.integer("detect_negative", 1) != 0;
  if (up && down) return abs(x) == big;
  if (up) return x == big;
  if (down) return -x == big;
  return 0;
}

// What is left where NaN is left out, by the operations that can.
double without_nan(ValueOp op, const double* x) {
  if (op == ValueOp::relu) return 0;
  const bool chooses = op == ValueOp::max || op == ValueOp::min;
  if (!chooses) return std::numeric_limits<double>::quiet_NaN();
  return std::isnan(x[0]) ? x[1] : x[0];
}

// E of what a term makes of x, which E says e of.
double magnitude_of(ValueOp op, int arity, const double* x, double v, const double* e) {
  if (!std::isinf(v)) return std::fabs(v) + moved(op, x, v, e);
  if (op == ValueOp::where) return x[0] != 0 ? e[1] : e[2];  // what is not taken may be NaN
  for (int k = 0; k < arity; ++k)
    if (std::isnan(e[k])) return e[k];
  double given = -1;  // the largest of arguments that are infinite already
  double others = 0;  // the largest of the rest
  for (int k = 0; k < arity; ++k) {
    double& most = std::isinf(x[k]) ? given : others;
    most = std::max(most, e[k]);
  }
  if (given >= 0) return given;
  return others == 0 ? 0 : HUGE_VAL;
}
}  // namespace

namespace {
// Unsigned numbers of 64 bits are computed with as signed ones: the order of both is the same once
// the highest bit is turned over.
Formula turned_over(const Formula& a) {
  return a + Formula(-0x1p63);
}

Formula unsigned_order(const Formula& value) {
  if (value.term.kind != ExpressionTerm::Kind::apply) return value;
  std::vector<Formula> below;
  for (const Formula& operand : *value.operands)
    below.push_back(unsigned_order(operand));
  const auto is_less = [](const Formula& a, const Formula& b) {
    return less(turned_over(a), turned_over(b));
  };
  switch (value.term.op) {
    case ValueOp::less: return is_less(below[0], below[1]);
    case ValueOp::max: return where(is_less(below[0], below[1]), below[1], below[0]);
    case ValueOp::min: return where(is_less(below[1], below[0]), below[1], below[0]);
    case ValueOp::relu:
    case ValueOp::abs: return below[0];
    default: return applied(value.term.op, std::move(below));
  }
}
}  // namespace

std::optional<Expression> expression_of(const Graph& graph, const Node& node) {
  const NodeContext context{graph, node};
  const Formula x = input(0);
  const Formula y = input(1);
  const Formula z = input(2);
  const double alpha = node.real("alpha");
  const double beta = node.real("beta");
  const double gamma = node.real("gamma");
  std::optional<Formula> result;
  switch (node.op) {
#define WARPLOOM_OP(...)
#define WARPLOOM_POINTWISE(name, since, least, most, rule, ...) \
  case OpKind::name: result = __VA_ARGS__; break;
#include "graph/ops.def"
    default: break;
  }
  if (!result) return std::nullopt;
  const bool is_unsigned = !node.inputs.empty() && context.in(0).dtype == Dtype::u64;
  if (is_unsigned) result = unsigned_order(*result);
  Expression all;
  place(*result, all.terms);
  return all;
}

bool in_integers(const Graph& graph, const Node& node, const Expression& expression) {
  const auto is_whole = [&](TensorId id) {
    return id == kAbsent || is_integer(graph.tensor(id).dtype);
  };
  const auto has_meaning = [](const ExpressionTerm& term) {
    if (term.kind == ExpressionTerm::Kind::apply) return has_integers(term.op);
    return term.kind != ExpressionTerm::Kind::constant || term.value == std::trunc(term.value);
  };
  if (!std::ranges::all_of(node.inputs, is_whole) || !is_whole(node.outputs[0])) return false;
  return std::ranges::all_of(expression.terms, has_meaning);
}

void evaluate_integers(const Expression& expression, int64_t count,
                       std::span<const int64_t* const> inputs, int64_t* to) {
  static thread_local std::vector<int64_t> room;
  room.resize(expression.terms.size() * count);
  std::vector<const int64_t*> done;
  for (const ExpressionTerm& term : expression.terms) {
    if (term.kind == ExpressionTerm::Kind::input) {
      done.push_back(inputs[term.input]);
      continue;
    }
    int64_t* const made = room.data() + done.size() * count;
    if (term.kind == ExpressionTerm::Kind::constant) {
      std::fill_n(made, count, saturated_integer(Dtype::i64, term.value));
    } else {
      std::array<const int64_t*, 3> args{};
      for (int k = 0; k < arity_of(term.op); ++k)
        args[k] = done[term.args[k]];
      const auto arg = [&](int k, int64_t i) { return args[k] == nullptr ? 0 : args[k][i]; };
      for (int64_t i = 0; i < count; ++i) {
        const int64_t a = arg(0, i);
        const int64_t b = arg(1, i);
        made[i] = apply_integers(term.op, a, b, arg(2, i));
      }
    }
    done.push_back(made);
  }
  std::copy_n(done.back(), count, to);
}

void evaluate(const Expression& expression, int64_t count, std::span<const Column> inputs,
              const Column& to) {
  evaluate(expression, count, inputs, to, false);
}

void evaluate(const Expression& expression, int64_t count, std::span<const Column> inputs,
              const Column& to, bool drops_nan) {
  static thread_local std::vector<double> room;
  room.resize(2 * expression.terms.size() * count);
  std::vector<Column> done;
  for (const ExpressionTerm& term : expression.terms) {
    if (term.kind == ExpressionTerm::Kind::input) {
      done.push_back(inputs[term.input]);
      continue;
    }
    double* const values = room.data() + 2 * done.size() * count;
    const Column made = {values, values + count};
    const int arity = term.kind == ExpressionTerm::Kind::apply ? arity_of(term.op) : 0;
    Column args[3];
    for (int k = 0; k < arity; ++k)
      args[k] = done[term.args[k]];
    for (int64_t i = 0; i < count; ++i) {
      double x[3] = {0, 0, 0};
      double e[3] = {0, 0, 0};
      for (int k = 0; k < arity; ++k)
        x[k] = args[k].value[i];
      double& value = made.value[i];
      value = term.value;
      if (arity != 0) value = apply(term.op, x[0], x[1], x[2]);
      if (drops_nan && std::isnan(value)) value = without_nan(term.op, x);
      if (!to.magnitude) continue;
      for (int k = 0; k < arity; ++k)
        e[k] = args[k].magnitude[i];
      double& magnitude = made.magnitude[i];
      magnitude = 0;
      if (arity != 0) magnitude = magnitude_of(term.op, arity, x, value, e);
    }
    done.push_back(made);
  }
  std::copy_n(done.back().value, count, to.value);
  if (to.magnitude) std::copy_n(done.back().magnitude, count, to.magnitude);
}
}  // namespace warploom::graph
