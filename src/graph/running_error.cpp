#include "graph/running_error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace warploom::graph {
namespace {

// Σ |∂op/∂arg| E_arg at arguments x with result v. Choices (max, min, relu, where) count as if the other side could be
// taken, since rounding may do so near the edge.
double carried(ValueOp op, const double* x, double v, const double* e) {
  const auto times = [](double slope, double error) { return error == 0 ? 0 : std::fabs(slope) * error; };
  switch (op) {
    case ValueOp::add:
    case ValueOp::sub: return e[0] + e[1];
    case ValueOp::mul: return times(x[1], e[0]) + times(x[0], e[1]);
    case ValueOp::div: return times(1 / x[1], e[0]) + times(v / x[1], e[1]);
    case ValueOp::max:
    case ValueOp::min: return std::max(e[0], e[1]);
    case ValueOp::fma: return times(x[1], e[0]) + times(x[0], e[1]) + e[2];
    case ValueOp::where: return x[0] != 0 ? e[1] : e[2];
    case ValueOp::less:
    case ValueOp::equal:
    case ValueOp::floor: return 0;
    case ValueOp::neg:
    case ValueOp::abs:
    case ValueOp::relu:
    case ValueOp::round_tf32: return e[0];
    case ValueOp::exp: return times(v, e[0]);
    case ValueOp::exp2: return times(v * std::numbers::ln2, e[0]);
    case ValueOp::log: return times(1 / x[0], e[0]);
    case ValueOp::sqrt: return times(0.5 / v, e[0]);
    case ValueOp::rsqrt: return times(0.5 * v / x[0], e[0]);
    case ValueOp::reciprocal: return times(v * v, e[0]);
    case ValueOp::tanh: return times(1 - v * v, e[0]);
    case ValueOp::erf: return times(2 * std::numbers::inv_sqrtpi * std::exp(-x[0] * x[0]), e[0]);
    case ValueOp::sigmoid: return times(v * (1 - v), e[0]);
  }
  return e[0] + e[1] + e[2];  // an operation added to the vocabulary later
}

}  // namespace

double magnitude_of(const Expression& expression, std::span<const double> inputs, std::span<const double> magnitudes) {
  std::vector<double> value(expression.terms.size()), error(expression.terms.size(), 0.0);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Term& term = expression.terms[i];
    if (term.kind == Term::Kind::input) {
      value[i] = inputs[static_cast<std::size_t>(term.input)];
      error[i] = magnitudes[static_cast<std::size_t>(term.input)];
    } else if (term.kind == Term::Kind::constant) {
      value[i] = term.value;
    } else {
      double x[3] = {0, 0, 0}, e[3] = {0, 0, 0};
      for (int k = 0; k < arity_of(term.op); ++k) {
        x[k] = value[static_cast<std::size_t>(term.args[static_cast<std::size_t>(k)])];
        e[k] = error[static_cast<std::size_t>(term.args[static_cast<std::size_t>(k)])];
      }
      value[i] = apply(term.op, x[0], x[1], x[2]);
      error[i] = std::fabs(value[i]) + carried(term.op, x, value[i], e);
    }
  }
  return error.back();
}

}  // namespace warploom::graph
