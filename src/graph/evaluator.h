// The reference at work: one element of a pointwise node, and a box of a tensor, computed node by
// node; constants folded by it. Private to the room.
#pragma once
#include "graph/operators.h"
#include "graph/pointwise.h"
#include "graph/reference.h"

namespace warploom::graph {
// A pointwise node as a function of its inputs' elements, in FP64: its expression, but for powers,
// which that only approximates. Absent inputs may hold anything.
struct ScalarFunction {
  bool power;
  Expression expression;
  // The result as it enters the output's type: as it is; truncated and wrapped as the integer type
  // does (0 or 1 for a boolean); as rounded() has it (a cast between floats or from one to an
  // integer, where the type cannot hold every value).
  std::function<double(double)> settled = std::identity();
  bool rounds = false;     // to a float: another error
  bool integers = false;   // whole numbers of whole numbers: computed on these instead
  bool drops_nan = false;  // EvalOptions' own

  void operator()(int64_t count, std::span<const Column> inputs, const Column& to) const;
};

ScalarFunction scalar_function(const Graph& graph, const Node& node);

// As pointwise.h has it; `drops_nan`: of a NaN and a number max, min and relu take the number.
void evaluate(const Expression& expression, int64_t count, std::span<const Column> inputs,
              const Column& to, bool drops_nan);

// The double that storing in an integer type and loading again gives, two's complement wrapping
// included.
double wrapped(Dtype dtype, double value);

std::vector<int64_t> coordinates_of(const Shape& shape, int64_t flat);

// Which part of every tensor a part of an output needs: boxes (a range along every axis), pushed
// back through the graph.
struct Box {
  Shape begin;
  Shape size;
  bool operator==(const Box&) const = default;
};

Box whole(const Shape& shape);
int64_t volume(const Box& box);
// The smallest box of `to` that holds the elements of `box` of `from` under the same flat order.
Box reshaped(const Box& box, const Shape& from, const Shape& to);

// What a box of an output is made from of an input of shape `in` that is read so, and the part of
// that which the input has.
Box reach(const Access& access, const Shape& in, const Box& out);
Box inside(Box box, const Shape& in);

// One entry a tensor; nothing where a tensor is not needed. What is asked for need not be all that
// is given: boxes are rounded up to the smallest box that holds what is needed.
using Demand = std::vector<std::optional<Box>>;

// Operations that a tensor of a primitive graph takes.
double evaluation_cost(const Graph& graph, TensorId id);

// Appends the box of tensor `id` in row-major order, `demand` holds the box and all that it needs.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id,
               const Box& box, const EvalOptions& means, ValueAndMagnitude& to);
}  // namespace warploom::graph
