#include "graph/reference.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "graph/box.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::graph {
std::vector<Box> row_boxes(const Shape& shape, size_t axes, int64_t begin, int64_t end) {
  std::vector<Box> boxes;
  const Shape leading = entries(shape, 0, axes);
  for (int64_t row = begin; row < end;) {
    // As many axes as begin at 0 here and fit whole, then a range of the next one out.
    size_t axis = axes;
    int64_t inner = 1;
    const auto fits_whole = [&](int64_t size) { return row % size == 0 && row + size <= end; };
    while (axis > 1 && fits_whole(inner * shape[axis - 1]))
      inner *= shape[--axis];
    const Shape at = coordinates_of(leading, row);
    Box box = whole(shape);
    for (size_t i = 0; i < axis; ++i) {
      box.begin[i] = at[i];
      box.size[i] = 1;
    }
    if (axis == 0) {
      row += 1;
    } else {
      const size_t range = axis - 1;
      const int64_t left_of_axis = shape[range] - at[range];
      const int64_t left_of_rows = (end - row) / inner;
      box.size[range] = std::min(left_of_axis, left_of_rows);
      row += box.size[range] * inner;
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

namespace {
// What one demand costs: multiplications, exponentials and such; moving elements and reading inputs
// is free.
double cost_of(const Graph& graph, const Demand& demand) {
  double cost = 0;
  for (const Node& node : graph.nodes) {
    const auto& box = demand[node.outputs[0]];
    if (!box || graph.tensor(node.outputs[0]).constant) continue;
    const OpClass kind = class_of(node.op);
    if (only_moves(kind)) continue;
    // A scan goes over its whole lines for any part of them: as many elements as it reads.
    const bool scans = kind == OpClass::scan;
    const Box& computed = scans ? *demand[node.inputs[0]] : *box;
    const auto terms = scans ? 1 : as_double(terms_of(graph, node));
    cost += as_double(volume(computed)) * terms;
  }
  return cost;
}

// What the reference evaluates: the graph itself where it is primitive, else its decomposition,
// held in `made`.
Result<const Graph*> primitive_of(const Graph& graph, Graph& made) {
  if (is_primitive(graph)) return &graph;
  WARPLOOM_TRY(made, decompose(graph));
  return &made;
}

// What box `wanted` of a node's output reads of input `i`.
std::optional<Box> read_of(const NodeContext& context, size_t i, const Box& wanted) {
  const Shape& in = context.in(i).shape;
  if (class_of(context.node.op) == OpClass::view && i == 0)
    return reshaped(wanted, context.out(), in);
  const auto sources = axis_sources(context.graph, context.node, i);
  if (!sources) return std::nullopt;
  return inside(reach(*sources, in, wanted), in);
}

}  // namespace

Demand demand_for(const Graph& graph, TensorId id, const Box& asked) {
  Demand demand(graph.tensors.size());
  demand[id] = asked;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto& wanted = demand[node->outputs[0]];
    if (!wanted || graph.tensor(node->outputs[0]).constant) continue;
    const NodeContext context{graph, *node};
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (!context.has(i)) continue;
      const auto box = read_of(context, i, *wanted);
      if (!box) continue;
      std::optional<Box>& needed = demand[node->inputs[i]];
      needed = needed ? hull(*needed, *box) : *box;
    }
  }
  return demand;
}

namespace {
OutputRows rows_of_primitive(const Graph& graph, int output) {  // of a primitive graph
  const TensorId id = graph.outputs[output];
  const Shape& shape = graph.tensor(id).shape;
  const auto rows_over = [&](size_t axes) {
    const int64_t count = element_count(entries(shape, 0, axes));
    const int64_t elements = element_count(entries(shape, axes));
    return OutputRows{count, elements, true, axes};
  };
  const auto row_cost = [&](size_t axes, int64_t row) {
    const Box box = row_boxes(shape, axes, row, row + 1)[0];
    return cost_of(graph, demand_for(graph, id, box));
  };
  if (shape.empty()) return rows_over(0);
  const double full = evaluation_cost(graph, id);
  for (size_t axes = shape.size() > 1 ? shape.size() - 1 : 1; axes > 0; --axes) {
    const OutputRows rows = rows_over(axes);
    if (rows.count == 0) return rows;
    double dearest = 0;
    for (int64_t row : {int64_t{0}, rows.count / 2, rows.count - 1})
      dearest = std::max(dearest, row_cost(axes, row));
    if (dearest * as_double(rows.count) <= 1.5 * full) return rows;
  }
  OutputRows rows = rows_over(1);
  rows.independent = false;
  return rows;
}
}  // namespace

double evaluation_cost(const Graph& graph, TensorId id) {
  return cost_of(graph, demand_for(graph, id, whole(graph.tensor(id).shape)));
}

OutputRows rows_of(const Graph& graph, int output) {
  Graph made;
  if (const auto held = primitive_of(graph, made)) return rows_of_primitive(**held, output);
  const TensorId id = graph.outputs[output];
  return {1, element_count(graph.tensor(id).shape)};  // evaluation says what is wrong
}

Result<std::vector<ValueAndMagnitude>> evaluate_exactly(const Graph& graph,
                                                        std::span<const Bytes> inputs,
                                                        EvalOptions options) {
  options.magnitudes = false;
  std::vector<ValueAndMagnitude> outputs(graph.outputs.size());
  Graph made;
  WARPLOOM_TRY(const Graph* const held, primitive_of(graph, made));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int output = as_int(i);
    const int64_t rows = rows_of(*held, output).count;
    WARPLOOM_TRY(outputs[i], evaluate_magnitude_rows(*held, inputs, output, 0, rows, options));
  }
  return outputs;
}

Result<std::vector<std::vector<double>>> evaluate(const Graph& graph, std::span<const Bytes> inputs,
                                                  EvalOptions options) {
  WARPLOOM_TRY(std::vector<ValueAndMagnitude> all,
               evaluate_exactly(graph, inputs, std::move(options)));
  std::vector<std::vector<double>> outputs;
  for (ValueAndMagnitude& one : all)
    outputs.push_back(std::move(one.value));
  return outputs;
}

namespace {
// From the first corner of a box to its last.
ElementRange range_of(const Box& box, const Shape& shape) {
  if (volume(box) == 0) return {};
  int64_t first = 0;
  int64_t last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    first = first * shape[axis] + box.begin[axis];
    last = last * shape[axis] + box.begin[axis] + box.size[axis] - 1;
  }
  return {first, last + 1};
}

void widen(ElementRange& range, const ElementRange& more) {
  if (more.begin == more.end) return;
  const bool empty = range.begin == range.end;
  range.begin = empty ? more.begin : std::min(range.begin, more.begin);
  range.end = empty ? more.end : std::max(range.end, more.end);
}
}  // namespace

Result<std::vector<ElementRange>> inputs_of_rows(const Graph& given, int output, int64_t begin,
                                                 int64_t end) {
  Graph made;
  WARPLOOM_TRY(const Graph* const held, primitive_of(given, made));
  const Graph& graph = *held;
  const TensorId id = graph.outputs[output];
  const OutputRows rows = rows_of_primitive(graph, output);
  std::vector<ElementRange> read(graph.inputs.size());
  for (const Box& box : row_boxes(graph.tensor(id).shape, rows.axes, begin, end)) {
    if (volume(box) == 0) continue;
    const Demand demand = demand_for(graph, id, box);
    for (size_t i = 0; i < read.size(); ++i) {
      const std::optional<Box>& needed = demand[graph.inputs[i]];
      if (needed) widen(read[i], range_of(*needed, graph.tensor(graph.inputs[i]).shape));
    }
  }
  return read;
}

Result<ValueAndMagnitude> evaluate_magnitude_rows(const Graph& given, std::span<const Bytes> inputs,
                                                  int output, int64_t begin, int64_t end,
                                                  const EvalOptions& options) {
  const auto fits = [&](Bytes bytes, TensorId id) {
    return std::ssize(bytes) == byte_count(given.tensor(id));
  };
  if (!std::ranges::equal(inputs, given.inputs, fits))
    return fail(
        {ErrorCode::kInternal, "the reference is given other inputs than the graph's", given.name});
  Graph made;
  WARPLOOM_TRY(const Graph* const held, primitive_of(given, made));
  const Graph& graph = *held;
  const TensorId id = graph.outputs[output];
  const OutputRows rows = rows_of_primitive(graph, output);
  if (begin < 0 || end > rows.count || begin > end) {
    const std::string expected = fmt::format("0 to {}", rows.count);
    const std::string found = fmt::format("{} to {}", begin, end);
    return fail({ErrorCode::kInternal, "rows outside the output", graph.name, expected, found});
  }
  ValueAndMagnitude result;
  try {
    for (const Box& box : row_boxes(graph.tensor(id).shape, rows.axes, begin, end)) {
      if (volume(box) == 0) continue;
      const Demand demand = demand_for(graph, id, box);
      WARPLOOM_CHECK(compute(graph, inputs, demand, id, box, options, result));
    }
    return result;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  return fail({ErrorCode::kOutOfMemory, "the reference does not fit in memory", graph.name, "", "",
               "evaluate fewer rows at a time"});
}
}  // namespace warploom::graph
