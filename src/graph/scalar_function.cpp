#include "graph/scalar_function.h"
#include <cmath>
#include <cstdint>
#include <span>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/pointwise.h"

namespace warploom::graph {
namespace {
// Every value of `from` is a value of `to`.
bool holds(Dtype to, Dtype from) {
  if (to == from || to == Dtype::f64) return true;
  if (to != Dtype::f32) return is_float(to) && from == Dtype::boolean;
  return is_float(from) ? from != Dtype::f64 : bits_of(from) <= 8;
}

// A cast to `to`; `saturates`: what is too large becomes the largest number.
double stored(Dtype to, bool saturates, double value) {
  const double result = rounded(to, value);
  if (!saturates || std::isnan(value)) return result;
  const double largest = to == Dtype::e4m3 ? 448 : 57344;
  const bool fits = std::fabs(result) <= largest;
  return fits ? result : std::copysign(largest, value);
}
}  // namespace

double wrapped(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (!std::isfinite(value)) return 0;
  const double span = std::ldexp(1.0, bits_of(dtype));
  const double low = std::remainder(std::trunc(value), span);  // [-span/2, span/2]
  if (!is_signed(dtype)) return low < 0 ? low + span : low;
  return low == span / 2 ? -low : low;
}

void ScalarFunction::operator()(int64_t count, std::span<const Column> inputs,
                                const Column& to) const {
  if (!power || to.magnitude) evaluate(expression, count, inputs, to, drops_nan);
  for (int64_t i = 0; i < count; ++i) {
    if (power) {
      const double base = inputs[0].value[i];
      const double exponent = inputs[1].value[i];
      to.value[i] = std::pow(base, exponent);
    }
    to.value[i] = as_stored(to.value[i]);
    if (to.magnitude && rounds && !std::isinf(to.value[i]))
      to.magnitude[i] += std::fabs(to.value[i]);
  }
}

ScalarFunction scalar_function(const Graph& graph, const Node& node) {
  ScalarFunction function{node.op == OpKind::Pow, *expression_of(graph, node)};
  function.integers = in_integers(graph, node, function.expression);
  const Dtype from = graph.tensor(node.inputs[0]).dtype;
  const Dtype to = graph.tensor(node.outputs[0]).dtype;
  using enum ScalarFunction::Storing;
  function.type = to;
  const bool any_float = is_float(to) || is_float(from);
  const bool moves = node.op == OpKind::Identity || node.op == OpKind::Where;
  const bool loses = !holds(to, from) || node.integer("rounds") != 0;
  if (node.op == OpKind::Cast && any_float && loses) {
    function.rounds = is_float(to);
    const bool is_fp8 = function.rounds && bits_of(to) == 8;
    const bool saturating = is_fp8 && node.integer("saturate", 1) != 0;
    function.storing = saturating ? saturates : rounds;
    function.as_stored = [=](double value) { return stored(to, saturating, value); };
  } else if (!is_float(to) && !moves) {
    function.storing = wraps;
    function.as_stored = [=](double value) { return wrapped(to, value); };
  }
  return function;
}
}  // namespace warploom::graph
