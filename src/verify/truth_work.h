// What evaluating a graph in FP64 on a GPU asks of resources/truth/: so that what a compiler takes
// long over is compiled before it is wanted, and nothing else is.
//
//   const Result<TruthWork> work = truth_work_of(graph);
//   work->operations   // {ValueOp::exp, ValueOp::sub} of a softmax
//   work->kernels      // {"truth_pointwise", "truth_reduce_each", …}
//
// Errors: those of decompose() and steps_for().
#pragma once
#include <set>
#include <string>
#include "base/error.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/steps.h"

namespace warploom::verify {
struct TruthWork {
  std::set<ValueOp> operations;   // that pointwise steps apply
  std::set<std::string> kernels;  // that are sure to be launched, or nearly so
};

// Which kernel carries out a step of pointwise work.
const char* pointwise_kernel(const graph::Step& step, const graph::PointwiseStep& work);

TruthWork all_truth_work();  // every operation, and no kernel in particular

Result<TruthWork> truth_work_of(const graph::Graph& graph);
}  // namespace warploom::verify
