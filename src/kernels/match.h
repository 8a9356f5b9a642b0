// Patterns: what a region computes, in the words that builders of kernels need.
//
// A builder does not want nodes, it wants "C[batch, m, n] = f(Σ_k A[batch, m, k]·B[batch, k, n], operands…)".
// match_matmul() reads a graph that is one contraction with pointwise operators around it, and says so in
// these terms: sizes, views of the tensors involved, one expression over base/value_ops.def. It answers nothing
// where the graph is of another form. (Other families read nests: nest.h.)
//
// A View is a tensor of the graph seen through the region's own axes: a size and a stride (in elements) for
// each, size 1 and stride 0 where the tensor is stretched along an axis. Axes of the graph that mean nothing
// to the region are merged: the batch axes of x [8,128,1024] · w [1024,768] join the rows, so that m is 1024
// and there is no batch left. Transposed inputs, by a Transpose node or by Gemm's flags, are nothing but
// other strides.
//
// Worked example, y = gelu(x·wᵀ + b), x [512,1024], w [768,1024], b [768]:
//
//   batch {}  m 512  n 768  k 1024
//   a x sizes {512,1024} strides {1024,1}     b w sizes {1024,768} strides {1,1024}  (fast_axis 0: k runs
//   fastest) out y sizes {512,768} strides {768,1}     operands[0] b sizes {1,768} strides {0,1} epilogue:
//   input 0 is the sum over k, input 1 is operands[0]
//
// Intermediate results are not rounded to their 16-bit types inside an expression; a Cast that narrows in the
// middle of a chain is therefore not matched.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "graph/pointwise.h"
#include "tile/program.h"
namespace warploom::kernels {
struct View {
  graph::TensorId tensor = graph::kAbsent;
  std::string name;  // of the graph's tensor
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;    // batch axes, then the region's two own axes
  std::vector<std::int64_t> strides;  // elements; 0 where stretched

  std::size_t batch_rank() const { return shape.size() - 2; }
  // Which of the last two axes runs fastest in memory: 1 for rows stored one after another, 0 for columns; 1
  // in doubt.
  int fast_axis() const;
  // The same tensor with the last two axes exchanged.
  View transposed() const;
};

struct MatmulRegion {
  std::vector<std::int64_t> batch;  // sizes of the batch axes left after merging, often none
  std::int64_t m = 1, n = 1, k = 1;
  View a, b,
      out;  // [batch…, m, k], [batch…, k, n], [batch…, m, n]; a and b have size 1 in stretched batch axes
  std::vector<View> operands;  // of the epilogue, [batch…, m, n] with size 1 where stretched
  graph::Expression epilogue;  // input 0: the sum over k; input i: operands[i - 1]
  bool has_epilogue = false;   // whether it is more than input 0

  std::int64_t batch_count() const;
};

std::optional<MatmulRegion> match_matmul(const graph::Graph& graph);

// An expression as a tile language value, `inputs` standing for the expression's inputs.
tile::Value to_value(const graph::Expression& expression, std::span<const tile::Value> inputs);
}  // namespace warploom::kernels
