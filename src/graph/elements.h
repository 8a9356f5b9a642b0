// What one element of a pointwise node's output is, and constants folded. The reference and infer() stand on this.
#pragma once
#include "graph/pointwise.h"
namespace warploom::graph {
// A pointwise node as a function of its inputs' elements, in FP64: its expression, except where that only approximates what the
// standard library has a function for. Absent inputs may hold anything.
struct ScalarFunction {
  // How the result enters the output's type: as it is; truncated and wrapped as the integer type does; clamped to the
  // integer type (a cast of a float); 0 or 1; rounded to the type (a cast to a float that cannot hold every value).
  enum class Settle : std::uint8_t { keep, wrap, clamp, truth, round };

  double (*own)(double x, double y, const ScalarFunction& self) = nullptr;  // null: the operation, or else the expression
  std::optional<ValueOp> operation;
  Expression expression;
  std::size_t inputs = 0;
  double alpha = 0, gamma = 0;  // attributes
  Settle settle = Settle::keep;
  bool saturate = false;  // Settle::round to an 8-bit float: overflow gives the largest number
  Dtype dtype = Dtype::f32;

  double operator()(const double* values) const;
  double settled(double value) const;
};
ScalarFunction scalar_function(const Graph& graph, const Node& node);

// The double that storing in an integer type and loading again gives, two's complement wrapping included.
double wrapped(Dtype dtype, double value);

std::vector<std::int64_t> coordinates_of(const Shape& shape, std::int64_t flat);

// Computes a node whose inputs are all constant (Shape: whatever its input) into its output's constant, if the output is
// small enough to be worth it and the operator is no contraction, convolution or window. Says whether it did.
inline constexpr std::int64_t kMaxFoldedElements = 16384;
bool fold(Graph& graph, const Node& node);
}  // namespace warploom::graph
