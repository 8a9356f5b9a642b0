// A chain of pointwise nodes as one expression, and the tensors it reads. Used by match.cpp alone.
#pragma once
#include <map>
#include <optional>
#include <vector>
#include "graph/graph.h"
#include "graph/pointwise.h"
namespace warploom::kernels {
class Chain {
 public:
  // `core` is the tensor that is the expression's input 0, or kAbsent: then operand i is input i.
  Chain(const graph::Graph& graph, graph::TensorId core) : graph_(graph), core_(core) {}

  // Appends what computes `id`, whose value is stored as the region's result when `last`. False where the
  // chain leaves pointwise operators or floating-point tensors.
  bool append(graph::TensorId id, bool last);
  // alpha · (input 0) + beta · c, the scaling that Gemm adds; c may be kAbsent. To be called before append().
  bool scale_core(double alpha, double beta, graph::TensorId c);
  // (input 0) · scale, before either.
  bool scale_core(graph::TensorId scale);

  const graph::Expression& expression() const { return expression_; }
  const std::vector<graph::TensorId>& operands() const { return operands_; }
  bool trivial() const { return expression_.terms.size() == 1 && expression_.terms[0].kind == graph::Term::Kind::input; }

 private:
  std::optional<int> term_of(graph::TensorId id, bool last);
  std::optional<int> leaf(graph::TensorId id);
  int add(graph::Term term);
  int apply(ValueOp op, int a, int b);
  int core();  // the term that stands for input 0, scaled as it is so far

  const graph::Graph& graph_;
  graph::TensorId core_;
  graph::Expression expression_;
  std::vector<graph::TensorId> operands_;
  std::map<graph::TensorId, int> known_;
};

bool is_computed_float(Dtype dtype);  // f32, bf16 or f16: what emitted kernels load and store
}  // namespace warploom::kernels
