// What each operator makes of its inputs' types and shapes: one function a rule, named by the last column of ops.def.
#pragma once

#include <string>

#include "graph/graph.h"

namespace warploom::graph {

// A node with its inputs already inferred and its attributes complete.
struct Question {
  const Graph& graph;
  const Node& node;
  std::string place;

  bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kAbsent; }
  const Tensor& in(std::size_t i) const { return graph.tensor(node.inputs[i]); }
};
struct Answer {
  Dtype dtype;
  Shape shape;
};

namespace rules {
#define WARPLOOM_RULE(name) Result<Answer> name(const Question& question)
WARPLOOM_RULE(matmul);
WARPLOOM_RULE(gemm);
WARPLOOM_RULE(softmax);
WARPLOOM_RULE(pointwise);        // one number type, broadcast shape
WARPLOOM_RULE(pointwise_float);  // the same with a floating-point type
WARPLOOM_RULE(power);            // the exponent's type may differ
WARPLOOM_RULE(clip);             // bounds are scalars
WARPLOOM_RULE(where);
WARPLOOM_RULE(comparison);  // makes booleans
WARPLOOM_RULE(dropout);
WARPLOOM_RULE(cast);
WARPLOOM_RULE(cast_like);
WARPLOOM_RULE(reshape);
WARPLOOM_RULE(unsqueeze);
WARPLOOM_RULE(squeeze);
WARPLOOM_RULE(flatten);
WARPLOOM_RULE(transpose);
WARPLOOM_RULE(expand);
WARPLOOM_RULE(concat);
WARPLOOM_RULE(gather);
WARPLOOM_RULE(slice);
WARPLOOM_RULE(constant);
WARPLOOM_RULE(shape_of);
#undef WARPLOOM_RULE
}  // namespace rules

// Where a Slice reads: along input axis a, element begin[a] + i·step[a] for i below the output's size there.
struct SliceSpec {
  std::vector<std::int64_t> begin, step, size;
};
Result<SliceSpec> slice_spec(const Question& question);

// Shape's range of axes [begin, end), clamped as ONNX does.
std::pair<std::int64_t, std::int64_t> shape_range(const Node& node, std::size_t rank);

}  // namespace warploom::graph
