// Reductions, windows and scans of the FP64 reference.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/node_evaluator.h"
#include "graph/operators.h"
#include "graph/reference.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
namespace {
// The larger, or smaller, of two numbers; a NaN stays, or is dropped.
template <ValueOp op, bool drops_nan> double extreme(double v, double x) {
  if (std::isnan(drops_nan ? x : v)) return v;
  const bool keeps = op == ValueOp::max ? v > x : v < x;
  return keeps ? v : x;
}

// Combines elements x of errors e with the results: step 0 takes all into one, step 1 each into its
// own.
template <ValueOp op, bool drops_nan = false>
void absorb(int64_t count, int64_t step, const double* x, const double* e, double* value,
            double* error) {
  for (int64_t i = 0; i < count; ++i) {
    const double v = value[i * step];
    if (error) {
      double& to = error[i * step];
      if (op == ValueOp::add)
        to += std::fabs(x[i]) + e[i];
      else if (op == ValueOp::mul) {
        const double before = to * std::fabs(x[i]);
        const double of_factor = std::fabs(v) * e[i];
        to = before + of_factor + std::fabs(v * x[i]);
      } else if (!std::isnan(to) && !(e[i] <= to) && !std::isinf(e[i])) {
        to = e[i];  // one that is marked stays so; an infinite sum has no error of its own
      }
    }
    if (op == ValueOp::add)
      value[i * step] = v + x[i];
    else if (op == ValueOp::mul)
      value[i * step] = v * x[i];
    else
      value[i * step] = extreme<op, drops_nan>(v, x[i]);
  }
}

using Absorb = void(int64_t, int64_t, const double*, const double*, double*, double*);

struct Reducer {
  OpKind op;
  ValueOp combine;
  double start;
  Absorb* absorb;
  Absorb* without_nan = absorb;  // EvalOptions::drops_nan
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Reducer kReducers[] = {
    {OpKind::ReduceSum, ValueOp::add, 0, absorb<ValueOp::add>},
    {OpKind::SumPool, ValueOp::add, 0, absorb<ValueOp::add>},
    {OpKind::ReduceProd, ValueOp::mul, 1, absorb<ValueOp::mul>},
    {OpKind::ReduceMax, ValueOp::max, -kInfinity, absorb<ValueOp::max>, absorb<ValueOp::max, true>},
    {OpKind::MaxPool, ValueOp::max, -kInfinity, absorb<ValueOp::max>, absorb<ValueOp::max, true>},
    {OpKind::ReduceMin, ValueOp::min, kInfinity, absorb<ValueOp::min>, absorb<ValueOp::min, true>}};

// What a run of neighbouring outputs reads at one of its offsets: lines of `length` elements,
// `stride` apart. Where the last axis is reduced, each output has a line of its own; else one line
// holds one element of each output.
struct Lines {
  int64_t begin;    // address of the first line
  int64_t count;    // one an output, or one in all
  int64_t step;     // from a line to the next
  int64_t length;   // elements of a line
  int64_t stride;   // from an element to the next
  bool to_outputs;  // element k goes to output k; else all of a line to one output
};

// Reductions of whole numbers.
void reduce_integers(const Reducer& reducer, const View& from, const Lines& lines,
                     const std::vector<int64_t>& outer, int64_t* to) {
  std::vector<int64_t> whole(lines.length);
  for (int64_t i = 0; i < lines.count; ++i)
    for (const int64_t offset : outer) {
      const int64_t first = lines.begin + i * lines.step + offset;
      load(from, first, lines.stride, lines.length, whole.data());
      for (int64_t k = 0; k < lines.length; ++k) {
        int64_t& result = to[lines.to_outputs ? k : i];
        result = apply_integers(reducer.combine, result, whole[k]);
      }
    }
}

// `error` is null where no magnitudes are wanted.
void reduce_floats(Absorb* absorb, const View& from, const Lines& lines,
                   const std::vector<int64_t>& outer, double* value, double* error) {
  static thread_local std::vector<double> values;
  static thread_local std::vector<double> errors;
  values.resize(lines.length);
  errors.resize(error ? values.size() : 0);
  double* const read_errors = error ? errors.data() : nullptr;
  const int64_t result_step = lines.to_outputs ? 1 : 0;
  for (int64_t i = 0; i < lines.count; ++i)
    for (const int64_t offset : outer) {
      const int64_t first = lines.begin + i * lines.step + offset;
      load(from, first, lines.stride, lines.length, values.data(), read_errors);
      double* const result_error = error ? error + i : nullptr;
      double* const result = value + i;
      absorb(lines.length, result_step, values.data(), errors.data(), result, result_error);
    }
}

// A whole line along the scanned axis, of which outputs [begin, begin + count) are wanted.
struct ScanLine {
  int64_t size = 0;  // of the input
  int64_t begin = 0;
  int64_t count = 0;
  bool reverse = false;
  int64_t from = 0;  // addresses of the line's first element and of the first output, their strides
  int64_t from_stride = 0;
  int64_t to = 0;
  int64_t to_stride = 0;

  int64_t index(int64_t k) const { return reverse ? size - 1 - k : k; }

  bool wants(int64_t i) const { return i >= begin && i < begin + count; }

  int64_t place(int64_t i) const { return to + (i - begin) * to_stride; }
};

void scan_integers(const View& from, const ScanLine& line, Dtype dtype, Storage& fresh) {
  std::vector<int64_t> whole(line.size);
  load(from, line.from, line.from_stride, line.size, whole.data());
  int64_t total = 0;
  for (int64_t k = 0; k < line.size; ++k) {
    const int64_t i = line.index(k);
    total = apply_integers(ValueOp::add, total, whole[i]);
    if (line.wants(i)) fresh.integers[line.place(i)] = wrapped_integer(dtype, total);
  }
}

void scan_floats(const View& from, const ScanLine& line, bool magnitudes, Storage& fresh) {
  std::vector<double> x(line.size);
  std::vector<double> e(magnitudes ? x.size() : 0);
  double* const errors = magnitudes ? e.data() : nullptr;
  load(from, line.from, line.from_stride, line.size, x.data(), errors);
  double sum = 0;
  double bound = 0;
  for (int64_t k = 0; k < line.size; ++k) {
    const int64_t i = line.index(k);
    bound += magnitudes ? std::fabs(x[i]) + e[i] : 0;
    sum += x[i];
    if (!line.wants(i)) continue;
    fresh.value[line.place(i)] = sum;
    if (magnitudes) fresh.magnitude[line.place(i)] = bound;
  }
}
}  // namespace

// Every output takes in the elements at `outer`, and from each of these a line of `count` elements
// along the last axis where that is reduced.
void NodeEvaluator::reduce(const Node& node, const Box& box, Storage& fresh) const {
  if (volume(box) == 0) return;
  const Reducer& reducer = *std::ranges::find(kReducers, node.op, &Reducer::op);
  const bool window = class_of(node.op) == OpClass::window;
  View in = view(node.inputs[0]);
  if (window) in = padded(node, box, fill_of(node.inputs[0], reducer.start));
  const View from = projected(node, 0, in);
  auto [taps, steps] = taps_of(node, 0, in);
  const bool has_lines = !window && !taps.empty();
  const int64_t count = has_lines ? std::exchange(taps.back(), 1) : 1;
  if (count == 0) taps.back() = 0;
  const auto outer = offsets(taps, steps);
  const int64_t last_step = steps.empty() ? 0 : steps.back();
  const Dtype dtype = output_of(node).dtype;
  const bool is_boolean = dtype == Dtype::boolean;
  fresh.fill(is_boolean ? reducer.start > 0 : rounded(dtype, reducer.start));
  if (fresh.is_whole && !is_boolean)
    std::ranges::fill(fresh.integers, saturated_integer(dtype, reducer.start));
  for_runs(box, options_.threads, [&](int64_t first, int64_t n, const Shape& at) {
    const int64_t begin = address(from, at);
    const int64_t own = from.last_stride();
    const bool own_lines = count > 1;
    Lines lines{begin, 1, own, n, own, true};
    if (own_lines) lines = {begin, n, own, count, last_step, false};
    if (!fresh.is_whole) {
      double* const values = fresh.value.data() + first;
      Absorb* const absorb = options_.drops_nan ? reducer.without_nan : reducer.absorb;
      return reduce_floats(absorb, from, lines, outer, values, fresh.error(first));
    }
    int64_t* const to = fresh.integers.data() + first;
    reduce_integers(reducer, from, lines, outer, to);
    for (int64_t i = 0; i < n; ++i)
      to[i] = wrapped_integer(dtype, to[i]);
  });
}

// Every line along the scanned axis from its first element on, whatever part of it is wanted.
void NodeEvaluator::scan(const Node& node, const Box& box, Storage& fresh) const {
  const View& from = view(node.inputs[0]);
  const View& to = view(node.outputs[0]);
  const size_t axis = whole_axis(*axis_sources(graph_, node, 0));
  const Dtype dtype = output_of(node).dtype;
  ScanLine wanted;
  wanted.size = shape(node.inputs[0])[axis];
  wanted.begin = box.begin[axis];
  wanted.count = box.size[axis];
  wanted.reverse = node.integer("reverse") != 0;
  wanted.from_stride = from.strides[axis];
  wanted.to_stride = to.strides[axis];
  Box starts = box;
  starts.size[axis] = 1;
  for_runs(starts, options_.threads, [&](int64_t, int64_t n, Shape at) {
    ScanLine line = wanted;
    for (int64_t i = 0; i < n; ++i) {
      line.from = address(from, at) - line.begin * line.from_stride;
      line.to = address(to, at);
      if (fresh.is_whole)
        scan_integers(from, line, dtype, fresh);
      else
        scan_floats(from, line, options_.magnitudes, fresh);
      ++at.back();
    }
  });
}
}  // namespace warploom::graph
