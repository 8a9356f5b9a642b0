// A pointwise operator in FP64: its expression, then what storing in the output's type does to the
// result. Private to the room.
//
//   Cast of f32 to i8     300.7 is truncated to 300 and wraps to 44
//   Cast of f64 to e4m3   500 is more than the type holds: 448, the largest number, if it saturates
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/pointwise.h"

namespace warploom::graph {
// A pointwise node as a function of its inputs' elements. Pow is computed by std::pow, because its
// expression is an approximation. Absent inputs may hold anything.
struct ScalarFunction {
  // What storing does to a result (as_stored).
  enum class Storing : uint8_t { nothing, wraps, rounds, saturates };

  bool power;  // std::pow of the two inputs
  Expression expression;
  Storing storing = Storing::nothing;
  Dtype type = Dtype::f64;  // the output's
  // The result as the output's type holds it: as it is; truncated and wrapped as the integer type
  // does (0 or 1 for a boolean); as rounded() has it (a cast between floats, or from a float to an
  // integer, where the type cannot hold every value).
  std::function<double(double)> as_stored = std::identity();
  bool rounds = false;     // as_stored rounds to a float, which adds to the error
  bool integers = false;   // integers computed from integers: evaluate_integers() is used instead
  bool drops_nan = false;  // EvalOptions::drops_nan

  void operator()(int64_t count, std::span<const Column> inputs, const Column& to) const;
};

ScalarFunction scalar_function(const Graph& graph, const Node& node);

// evaluate() of pointwise.h; `drops_nan`: of a NaN and a number max, min and relu take the number.
void evaluate(const Expression& expression, int64_t count, std::span<const Column> inputs,
              const Column& to, bool drops_nan);

// The double that storing in an integer type and loading again gives, two's complement wrapping
// included.
double wrapped(Dtype dtype, double value);
}  // namespace warploom::graph
