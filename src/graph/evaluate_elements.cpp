// Pointwise operators and movements of the FP64 reference.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/node_evaluator.h"
#include "graph/operators.h"
#include "graph/pointwise.h"
#include "graph/reference.h"
#include "graph/scalar_function.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
namespace {
// A pointwise node and its inputs in the output's coordinates.
struct PointwiseNode {
  const Node& node;
  const ScalarFunction& function;
  const std::vector<View>& inputs;
  Dtype dtype;  // of the output
};

// A run of outputs (for_runs).
struct Run {
  int64_t first;
  int64_t count;
  const Shape& at;
};

void run_integers(const PointwiseNode& of, const Run& run, Storage& fresh) {
  static thread_local std::vector<int64_t> whole;
  whole.resize(of.inputs.size() * kRun);
  std::vector<const int64_t*> operands(of.inputs.size());
  for (size_t k = 0; k < of.inputs.size(); ++k) {
    if (of.node.inputs[k] == kAbsent) continue;
    int64_t* const operand = whole.data() + k * kRun;
    load(of.inputs[k], run.at, run.count, operand);
    operands[k] = operand;
  }
  int64_t* const to = fresh.integers.data() + run.first;
  evaluate_integers(of.function.expression, run.count, operands, to);
  for (int64_t i = 0; i < run.count; ++i)
    to[i] = wrapped_integer(of.dtype, to[i]);
}

void run_floats(const PointwiseNode& of, const Run& run, bool magnitudes, Storage& fresh) {
  static thread_local std::vector<double> room;  // of each input values, then magnitudes
  room.resize(2 * of.inputs.size() * kRun);
  std::vector<Column> columns(of.inputs.size());
  for (size_t k = 0; k < of.inputs.size(); ++k) {
    if (of.node.inputs[k] == kAbsent) continue;
    double* const values = room.data() + 2 * k * kRun;
    double* const input_magnitudes = magnitudes ? values + kRun : nullptr;
    columns[k] = {values, input_magnitudes};
    load(of.inputs[k], run.at, run.count, values, input_magnitudes);
  }
  if (!fresh.is_whole) {
    double* const values = fresh.value.data() + run.first;
    const Column to = {values, fresh.error(run.first)};
    return of.function(run.count, columns, to);
  }
  std::vector<double> made(run.count);
  std::vector<double> errors(magnitudes ? run.count : 0);
  double* const to_errors = magnitudes ? errors.data() : nullptr;
  of.function(run.count, columns, {made.data(), to_errors});
  for (int64_t i = 0; i < run.count; ++i)
    fresh.integers[run.first + i] = saturated_integer(of.dtype, made[i]);
}
}  // namespace

void NodeEvaluator::pointwise(const Node& node, const Box& box, Storage& fresh) const {
  ScalarFunction function = scalar_function(graph_, node);
  function.drops_nan = options_.drops_nan;
  std::vector<View> inputs(node.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k)
    if (node.inputs[k] != kAbsent) inputs[k] = projected(node, k, view(node.inputs[k]));
  const PointwiseNode of = {node, function, inputs, output_of(node).dtype};
  for_runs(box, options_.threads, [&](int64_t first, int64_t count, const Shape& at) {
    const Run run = {first, count, at};
    if (function.integers)
      run_integers(of, run, fresh);
    else
      run_floats(of, run, options_.magnitudes, fresh);
  });
}

// The part of the input that holds the box is one range of flat indices, and so a view under any
// shape.
void NodeEvaluator::reshape(const Node& node, const Box& box) {
  const Shape& in = shape(node.inputs[0]);
  const Shape& out = shape(node.outputs[0]);
  const Box source = reshaped(box, out, in);
  const auto steps = strides_of(in);
  View to = view(node.inputs[0]);
  bool flat = true;  // element with flat index f is at address(first) + f
  for (size_t i = 0; i < in.size(); ++i)
    flat &= source.size[i] <= 1 || to.strides[i] == steps[i];
  if (!flat) to = stored(to, source, source);
  const Shape& begin = source.begin;
  int64_t flat_begin = 0;
  for (size_t i = 0; i < begin.size(); ++i)
    flat_begin += begin[i] * steps[i];
  to.origin = address(to, begin) - flat_begin;
  to.strides = strides_of(out);
  views_[node.outputs[0]] = std::move(to);
}

void NodeEvaluator::movement(const Node& node, const Box& box) {
  if (node.op == OpKind::Concat) return concat(node, box);
  if (node.op == OpKind::Gather) return gather(node, box);
  View from = view(node.inputs[0]);
  if (node.op == OpKind::Pad) {
    const View& value = view(node.inputs[2]);
    const Shape first(shape(node.inputs[2]).size(), 0);
    Fill fill;
    load(value, first, 1, &fill.value, &fill.error);
    if (is_integer(value.dtype)) load(value, first, 1, &fill.whole);
    from = padded(node, box, fill);
  }
  views_[node.outputs[0]] = projected(node, 0, std::move(from));
}

void NodeEvaluator::gather(const Node& node, const Box& box) {
  Storage& fresh = make(node, box);
  const View from = projected(node, 0, view(node.inputs[0]));
  const View chosen = projected(node, 1, view(node.inputs[1]));
  const size_t rank = shape(node.inputs[0]).size();
  const size_t axis = NodeContext{graph_, node}.axis(rank);
  const int64_t size = shape(node.inputs[0])[axis];
  const int64_t step = view(node.inputs[0]).strides[axis];
  const int64_t own = from.last_stride();
  if (size == 0) return fresh.fill(0);
  for_runs(box, options_.threads, [&](int64_t first, int64_t n, const Shape& at) {
    std::vector<double> indices(n);
    load(chosen, at, n, indices.data(), nullptr);
    for (int64_t i = 0; i < n; ++i) {
      const auto given = as_int64(indices[i]);
      const int64_t from_front = given < 0 ? given + size : given;
      const int64_t index = std::clamp<int64_t>(from_front, 0, size - 1);  // outside: undefined
      const int64_t place = address(from, at) + i * own + index * step;
      const int64_t to = first + i;
      if (fresh.is_whole) {
        load(from, place, 0, 1, fresh.integers.data() + to);
      } else {
        double* const value = fresh.value.data() + to;
        load(from, place, 0, 1, value, fresh.error(to));
      }
    }
  });
}

// Each input fills the part of the output that its sources map into it.
void NodeEvaluator::concat(const Node& node, const Box& box) {
  Storage& fresh = make(node, box);
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const AxisSources sources = *axis_sources(graph_, node, k);
    const Shape& in = shape(node.inputs[k]);
    Box part = inside(reach(sources, in, box), in);
    for (size_t i = 0; i < sources.size(); ++i)
      part.begin[i] -= sources[i].begin;
    const View from = projected(node, k, view(node.inputs[k]));
    copy(from, part, view(node.outputs[0]), options_.threads, fresh);
  }
}
}  // namespace warploom::graph
