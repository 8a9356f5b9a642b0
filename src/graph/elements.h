// What one element of a node's output is: the scalar meaning of pointwise operators by the standard library's functions,
// and where the elements of views and movements come from. The reference and constant folding both stand on this.
#pragma once
#include <array>
#include <span>
#include "base/value_op.h"
#include "graph/operators.h"
namespace warploom::graph {
// A pointwise node as a function of its inputs' elements, in FP64. Absent inputs may hold anything.
struct ScalarFunction {
  // How the result enters the output's type: as it is; truncated and wrapped as the integer type does; clamped to the
  // integer type (a cast of a float); 0 or 1; rounded to the type (a cast to a float that cannot hold every value).
  enum class Settle : std::uint8_t { keep, wrap, clamp, truth, round };

  double (*function)(const double* inputs, const ScalarFunction& self) = nullptr;
  ValueOp operation = ValueOp::add;  // of a function that is one
  int inputs = 0;
  std::array<double, 2> parameters = {0, 0};
  Settle settle = Settle::keep;
  bool saturate = false;  // Settle::round to an 8-bit float: overflow gives the largest number
  Dtype dtype = Dtype::f32;

  double operator()(const double* values) const {
    const double result = function(values, *this);
    return settle == Settle::keep ? result : settled(result);
  }
  double settled(double value) const;
};
ScalarFunction scalar_function(const Graph& graph, const Node& node);

// The double that storing in an integer type and loading again gives, two's complement wrapping included.
double wrapped(Dtype dtype, double value);

// Where single elements of a movement's output come from: an input and coordinates in it, by the access rules. What a Pad adds comes
// from its third input, or from nowhere, which is 0.
class Origins {
 public:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  struct Origin {
    std::size_t input;
    Shape at;
  };
  explicit Origins(const Question& question);
  // `index` reads an element of Gather's second input; it is not called for other operators.
  Origin operator()(const Shape& out, const std::function<std::int64_t(const Shape&)>& index) const;

 private:
  std::vector<std::size_t> inputs_;  // those that are read
  std::vector<Access> access_;
  std::vector<Shape> shapes_;
  bool gathers_;
};

std::vector<std::int64_t> coordinates_of(const Shape& shape, std::int64_t flat);
// The flat index into `shape` of the element that broadcasting puts at `coordinates`.
std::int64_t broadcast_index(const Shape& shape, const std::vector<std::int64_t>& coordinates);

// Computes a node whose inputs are all constant (Shape: whatever its input) into its output's constant, if the output is
// small enough to be worth it and the operator is no contraction, convolution, window or softmax. Says whether it did.
inline constexpr std::int64_t kMaxFoldedElements = 16384;
bool fold(Graph& graph, const Node& node);
}  // namespace warploom::graph
