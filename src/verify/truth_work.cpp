#include "verify/truth_work.h"
#include <algorithm>
#include <cstdint>
#include <variant>
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/pointwise.h"
#include "graph/reference.h"
#include "graph/steps.h"

namespace warploom::verify {
namespace {
// Adds what one step asks for.
struct Asker {
  TruthWork& work;
  const graph::Step& step;

  void operator()(const graph::PointwiseStep& pointwise) const {
    work.kernels.insert(pointwise_kernel(step, pointwise));
    for (const graph::ExpressionTerm& term : pointwise.expression.terms)
      if (term.kind == graph::ExpressionTerm::Kind::apply) work.operations.insert(term.op);
  }

  void operator()(const graph::CopyStep&) const { work.kernels.insert("truth_copy"); }

  void operator()(const graph::GatherStep&) const { work.kernels.insert("truth_gather"); }

  void operator()(const graph::ReduceStep&) const {
    work.kernels.insert({"truth_reduce_each", "truth_reduce_together", "truth_merge"});
  }

  void operator()(const graph::ScanStep&) const {
    work.kernels.insert({"truth_scan_each", "truth_scan_together"});
  }

  void operator()(const graph::ProductStep&) const {
    work.kernels.insert({"truth_product", "truth_merge"});
  }
};
}  // namespace

const char* pointwise_kernel(const graph::Step& step, const graph::PointwiseStep& work) {
  const bool is_plain = is_float(step.dtype) && !work.integers && !work.power && !work.wraps;
  return is_plain ? "truth_pointwise" : "truth_pointwise_any";
}

TruthWork all_truth_work() {
  TruthWork work;
#define WARPLOOM_VALUE_OP(name, ...) work.operations.insert(ValueOp::name);
#include "base/value_ops.def"
  return work;
}

// The steps of one row are those of all.
Result<TruthWork> truth_work_of(const graph::Graph& graph) {
  WARPLOOM_TRY(const graph::Graph primitive, graph::decompose(graph));
  TruthWork work;
  work.kernels = {"truth_draw", "truth_move", "truth_compare", "truth_same", "truth_hash"};
  for (int n = 0; n < static_cast<int>(primitive.outputs.size()); ++n) {
    const int64_t rows = std::min<int64_t>(1, graph::rows_of(primitive, n).count);
    WARPLOOM_TRY(const auto lists, graph::steps_for(primitive, n, 0, rows));
    for (const graph::Steps& steps : lists)
      for (const graph::Step& step : steps.steps)
        std::visit(Asker{work, step}, step.work);
  }
  return work;
}
}  // namespace warploom::verify
