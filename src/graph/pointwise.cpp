#include "graph/pointwise.h"
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
namespace warploom::graph {
namespace {
// Writes terms as formulas. A Value is an index into the expression; the same input or constant is written once.
class Writer {
 public:
  struct Value {
    Writer* writer;
    int at;
  };
  Writer(const Graph& of, const Node& on) : graph(of), node(on) {}

  bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kAbsent; }
  Dtype out() const { return graph.tensor(node.outputs[0]).dtype; }
  Dtype in() const { return graph.tensor(node.inputs[0]).dtype; }

  Value x(int i = 0) { return push({Term::Kind::input, i, 0, ValueOp::add, {0, 0, 0}}); }
  Value c(double value) { return push({Term::Kind::constant, 0, value, ValueOp::add, {0, 0, 0}}); }
  template <class... Values>
  Value op(ValueOp what, Values... args) {
    return push({Term::Kind::apply, 0, 0, what, {args.at...}});
  }
  Expression finish(Value result) {
    terms_.resize(static_cast<std::size_t>(result.at) + 1);  // an earlier term: cut what came after it
    return {terms_};
  }

  const Graph& graph;
  const Node& node;

 private:
  Value push(const Term& term) {
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const Term& old = terms_[i];
      if (old.kind == term.kind && old.input == term.input && old.op == term.op && old.args == term.args &&
          std::bit_cast<std::uint64_t>(old.value) == std::bit_cast<std::uint64_t>(term.value))
        return {this, static_cast<int>(i)};
    }
    terms_.push_back(term);
    return {this, static_cast<int>(terms_.size() - 1)};
  }
  std::vector<Term> terms_;
};
using Value = Writer::Value;

#define WARPLOOM_VALUE_OP(name, ...)                \
  template <class... Values>                        \
  Value name(Value a, Values... more) {             \
    return a.writer->op(ValueOp::name, a, more...); \
  }
#include "base/value_ops.def"

Value operator+(Value a, Value b) { return add(a, b); }
Value operator-(Value a, Value b) { return sub(a, b); }
Value operator*(Value a, Value b) { return mul(a, b); }
Value operator/(Value a, Value b) { return div(a, b); }
Value operator*(double a, Value b) { return b.writer->c(a) * b; }
Value operator+(Value a, double b) { return a + a.writer->c(b); }

// Largest or smallest of all inputs; the operations pass a NaN on from either side.
Value extreme(Writer& w, ValueOp op) {
  Value best = w.x(0);
  for (int i = 1; i < static_cast<int>(w.node.inputs.size()); ++i) best = w.op(op, best, w.x(i));
  return best;
}

Value truncate(Value a) { return where(less(a, a.writer->c(0)), neg(floor(neg(a))), floor(a)); }

// log(1 + e) for e in (0, 1]: where 1 + e rounds to 1 it is e; elsewhere the rounding of u = 1 + e is undone by e / (u - 1).
Value log1p(Value e) {
  const Value u = e + 1.0, one = e.writer->c(1);
  return where(equal(u, one), e, log(u) * (e / (u - one)));
}
// exp(x) - 1, by the same trick turned round: (u - 1)·x / log(u) with u = exp(x).
Value expm1(Value x) {
  const Value u = exp(x), one = x.writer->c(1), minus = u - one;
  return where(equal(u, one), x, where(equal(minus, x.writer->c(-1)), x.writer->c(-1), minus * (x / log(u))));
}

Value power(Writer& w) {
  const Value x = w.x(0);
  if (const auto exponent = constant_scalar(w.graph, w.node.inputs[1])) {
    const double e = *exponent;
    if (e == 0.5) return sqrt(x);
    if (e == -0.5) return rsqrt(x);
    if (e == std::trunc(e) && std::fabs(e) <= 64) {  // repeated squaring
      const Value one = w.c(1);
      Value square = x;
      std::optional<Value> result;
      for (int n = static_cast<int>(std::fabs(e)); n > 0; n /= 2) {
        if (n % 2) result = result ? *result * square : square;
        if (n > 1) square = square * square;
      }
      return e < 0 ? reciprocal(*result) : result.value_or(one);
    }
  }
  // exp(y·log|x|) with the sign of an odd whole exponent; a negative base under a broken exponent is NaN by itself.
  const Value y = w.x(1), zero = w.c(0), one = w.c(1), size = exp(y * log(abs(x)));
  const Value whole = equal(floor(y), y), half = 0.5 * y, even = equal(floor(half), half);
  const Value negative = where(whole, where(even, size, neg(size)), w.c(std::numeric_limits<double>::quiet_NaN()));
  return where(equal(y, zero), one, where(less(x, zero), negative, size));
}

Value cast(Writer& w) {
  const Value x = w.x(0);
  if (w.out() == Dtype::boolean) return where(equal(x, w.c(0)), w.c(0), w.c(1));
  return !is_float(w.out()) && is_float(w.in()) ? truncate(x) : x;
}

Value gelu(Writer& w) {
  const Value x = w.x(), half = w.c(0.5);
  if (w.node.text("approximate") != "tanh") return half * x * (erf((1 / std::numbers::sqrt2) * x) + 1.0);
  const Value inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * (x * x * x));
  return half * x * (tanh(inner) + 1.0);
}

Value clip(Writer& w) {
  Value x = w.x(0), value = x;
  if (w.has(1)) value = max(value, w.x(1));
  if (w.has(2)) value = min(value, w.x(2));
  return value;
}

// x·tanh(log(1 + e^x)) = x·t/(t + 2) with t = e^x (e^x + 2); from 20 on the factor is 1 and e^40 still fits fp32.
Value mish(Writer& w) {
  const Value x = w.x(), n = exp(min(x, w.c(20))), t = n * (n + 2.0);
  return x * (t / (t + 2.0));
}

// To the nearest whole number, of two equally near to the even one.
Value round(Writer& w) {
  const Value x = w.x(), low = floor(x), over = x - low, half = 0.5 * low;
  const Value tie = where(equal(floor(half), half), low, low + 1.0);
  return where(less(over, w.c(0.5)), low, where(less(w.c(0.5), over), low + 1.0, tie));
}

// Of integers: the sign is the divisor's, with fmod the dividend's.
Value mod(Writer& w) {
  const Value ratio = w.x(0) / w.x(1);
  return w.x(0) - w.x(1) * (w.node.integer("fmod") != 0 ? truncate(ratio) : floor(ratio));
}

Value is_infinite(Writer& w) {
  const Value big = w.c(std::numeric_limits<double>::infinity()), x = w.x();
  const bool up = w.node.integer("detect_positive", 1) != 0, down = w.node.integer("detect_negative", 1) != 0;
  return up && down ? equal(abs(x), big) : up ? equal(x, big) : down ? equal(neg(x), big) : w.c(0);
}

struct Row {
  OpKind op;
  Value (*write)(Writer&);
};
const Row kWriters[] = {
    {OpKind::Div, [](Writer& w) { return is_float(w.out()) ? w.x(0) / w.x(1) : truncate(w.x(0) / w.x(1)); }},
    {OpKind::Pow, power},
    {OpKind::Max, [](Writer& w) { return extreme(w, ValueOp::max); }},
    {OpKind::Min, [](Writer& w) { return extreme(w, ValueOp::min); }},
    {OpKind::LeakyRelu, [](Writer& w) { return where(less(w.x(), w.c(0)), w.node.real("alpha") * w.x(), w.x()); }},
    {OpKind::Clip, clip},
    {OpKind::Gelu, gelu},
    {OpKind::Elu, [](Writer& w) { return where(less(w.x(), w.c(0)), w.node.real("alpha") * expm1(w.x()), w.x()); }},
    {OpKind::HardSigmoid, [](Writer& w) { return min(max(w.node.real("alpha") * w.x() + w.node.real("beta"), w.c(0)), w.c(1)); }},
    {OpKind::HardSwish, [](Writer& w) { return w.x() * min(max((1.0 / 6) * w.x() + 0.5, w.c(0)), w.c(1)); }},
    {OpKind::Softplus, [](Writer& w) { return relu(w.x()) + log1p(exp(neg(abs(w.x())))); }},
    {OpKind::Mish, mish},
    {OpKind::Greater, [](Writer& w) { return less(w.x(1), w.x(0)); }},
    {OpKind::LessOrEqual, [](Writer& w) { return where(less(w.x(0), w.x(1)), w.c(1), equal(w.x(0), w.x(1))); }},
    {OpKind::GreaterOrEqual, [](Writer& w) { return where(less(w.x(1), w.x(0)), w.c(1), equal(w.x(0), w.x(1))); }},
    {OpKind::And, [](Writer& w) { return where(w.x(0), w.x(1), w.c(0)); }},
    {OpKind::Or, [](Writer& w) { return where(w.x(0), w.c(1), w.x(1)); }},
    {OpKind::Xor, [](Writer& w) { return where(equal(w.x(0), w.x(1)), w.c(0), w.c(1)); }},
    {OpKind::Not, [](Writer& w) { return equal(w.x(), w.c(0)); }},
    {OpKind::IsNaN, [](Writer& w) { return where(equal(w.x(), w.x()), w.c(0), w.c(1)); }},
    {OpKind::IsInf, is_infinite},
    {OpKind::Sign, [](Writer& w) { return where(less(w.x(), w.c(0)), w.c(-1), where(less(w.c(0), w.x()), w.c(1), w.x())); }},
    {OpKind::Ceil, [](Writer& w) { return neg(floor(neg(w.x()))); }},
    {OpKind::Round, round},
    {OpKind::Mod, mod},
    {OpKind::PRelu, [](Writer& w) { return where(less(w.x(0), w.c(0)), w.x(1) * w.x(0), w.x(0)); }},
    {OpKind::ThresholdedRelu, [](Writer& w) { return where(less(w.c(w.node.real("alpha")), w.x()), w.x(), w.c(0)); }},
    {OpKind::Selu,
     [](Writer& w) {
       const double gamma = w.node.real("gamma");
       return where(less(w.x(), w.c(0)), gamma * w.node.real("alpha") * expm1(w.x()), gamma * w.x());
     }},
    {OpKind::Celu,
     [](Writer& w) {
       const double alpha = w.node.real("alpha");
       return where(less(w.x(), w.c(0)), alpha * expm1((1 / alpha) * w.x()), w.x());
     }},
    {OpKind::Softsign, [](Writer& w) { return w.x() / (abs(w.x()) + 1.0); }},
    {OpKind::DequantizeLinear, [](Writer& w) { return (w.has(2) ? w.x(0) - w.x(2) : w.x(0)) * w.x(1); }},
    {OpKind::Identity, cast},
    {OpKind::Cast, cast},
};
}  // namespace
std::optional<ValueOp> plain_operation(OpKind op) {
  if (class_of(op) != OpClass::pointwise || op == OpKind::Max || op == OpKind::Min || op == OpKind::Div) return std::nullopt;
  std::string name(name_of(op));
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return value_op_named(name);
}

std::optional<Expression> expression_of(const Graph& graph, const Node& node) {
  if (const auto op = plain_operation(node.op)) {
    Expression plain;
    Term result{.kind = Term::Kind::apply, .op = *op};
    for (int i = 0; i < arity_of(*op); ++i) {
      plain.terms.push_back({.kind = Term::Kind::input, .input = i});
      result.args[static_cast<std::size_t>(i)] = i;
    }
    plain.terms.push_back(result);
    return plain;
  }
  for (const Row& row : kWriters)
    if (row.op == node.op) {
      Writer writer(graph, node);
      return writer.finish(row.write(writer));
    }
  return std::nullopt;
}

Computed evaluate(const Expression& expression, std::span<const double> inputs, std::span<const double> magnitudes) {
  static thread_local std::vector<Computed> done;  // kept: this runs once an element
  done.clear();
  for (const Term& term : expression.terms) {
    const auto input = static_cast<std::size_t>(term.input);
    double x[3] = {0, 0, 0}, e[3] = {0, 0, 0}, value = term.value;
    switch (term.kind) {
      case Term::Kind::input: done.push_back({inputs[input], magnitudes.empty() ? 0 : magnitudes[input]}); break;
      case Term::Kind::constant: done.push_back({term.value, 0}); break;
      case Term::Kind::apply:
        for (std::size_t k = 0; k < static_cast<std::size_t>(arity_of(term.op)); ++k) {
          const Computed& arg = done[static_cast<std::size_t>(term.args[k])];
          x[k] = arg.value;
          e[k] = arg.magnitude;
        }
        value = apply(term.op, x[0], x[1], x[2]);
        done.push_back({value, magnitudes.empty() ? 0 : std::fabs(value) + moved(term.op, x, value, e)});
    }
  }
  return done.back();
}

double evaluate(const Expression& expression, std::span<const double> inputs) { return evaluate(expression, inputs, {}).value; }
}  // namespace warploom::graph
