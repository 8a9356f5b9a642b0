#include "graph/reference.h"
#include "graph/evaluator.h"

namespace warploom::graph {
Box whole(const Shape& shape) {
  return {Shape(shape.size(), 0), shape};
}

int64_t volume(const Box& box) {
  return element_count(box.size);
}

Box reshaped(const Box& box, const Shape& from, const Shape& to) {
  if (volume(box) == 0) return {Shape(to.size(), 0), Shape(to.size(), 0)};
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    low = low * from[i] + box.begin[i];
    high = high * from[i] + box.begin[i] + box.size[i] - 1;
  }
  const auto first = coordinates_of(to, low);
  const auto last = coordinates_of(to, high);
  Box held = whole(to);
  for (size_t i = 0; i < to.size(); ++i) {
    held.begin[i] = first[i];
    held.size[i] = last[i] - first[i] + 1;
    if (first[i] != last[i]) break;  // this axis is a range, the later ones are whole
  }
  return held;
}

Box reach(const Access& access, const Shape& in, const Box& out) {
  Box box = whole(in);
  for (size_t i = 0; i < in.size(); ++i) {
    const AxisSource& source = access[i];
    if (source.axis == AxisSource::kWhole) continue;
    const int64_t count = out.size[source.axis];
    const int64_t first = source.begin + out.begin[source.axis] * source.step;
    box.begin[i] = std::min(first, first + (count - 1) * source.step);
    box.size[i] =
        count == 0 ? 0
                   : (count - 1) * std::abs(source.step) + (source.taps - 1) * source.dilation + 1;
  }
  return box;
}

Box inside(Box box, const Shape& in) {
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t end = std::min(box.begin[i] + box.size[i], in[i]);
    box.begin[i] = std::max<int64_t>(box.begin[i], 0);
    box.size[i] = std::max<int64_t>(end - box.begin[i], 0);
  }
  return box;
}

namespace {
Box hull(const Box& a, const Box& b) {
  if (volume(a) == 0) return b;
  if (volume(b) == 0) return a;
  Box box = a;
  for (size_t i = 0; i < a.size.size(); ++i) {
    box.begin[i] = std::min(a.begin[i], b.begin[i]);
    box.size[i] = std::max(a.begin[i] + a.size[i], b.begin[i] + b.size[i]) - box.begin[i];
  }
  return box;
}

// The boxes, in order, that make up rows [begin, end) where a row is one index of the leading
// `axes` axes taken together.
std::vector<Box> row_boxes(const Shape& shape, size_t axes, int64_t begin, int64_t end) {
  std::vector<Box> boxes;
  const Shape leading = entries(shape, 0, axes);
  for (int64_t row = begin; row < end;) {
    // As many axes as begin at 0 here and fit whole, then a range of the next one out.
    size_t axis = axes;
    int64_t inner = 1;
    while (axis > 1 && row % (inner * shape[axis - 1]) == 0 && row + inner * shape[axis - 1] <= end)
      inner *= shape[--axis];
    const Shape at = coordinates_of(leading, row);
    Box box = whole(shape);
    for (size_t i = 0; i < axis; ++i) {
      box.begin[i] = at[i];
      box.size[i] = i + 1 < axis ? 1 : std::min(shape[i] - at[i], (end - row) / inner);
    }
    row += axis == 0 ? 1 : box.size[axis - 1] * inner;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// What one demand costs: multiplications, exponentials and such; moving elements and reading inputs
// is free.
double cost_of(const Graph& graph, const Demand& demand) {
  double cost = 0;
  for (const Node& node : graph.nodes) {
    const auto& box = demand[node.outputs[0]];
    if (!box || graph.tensor(node.outputs[0]).constant) continue;
    const OpClass kind = class_of(node.op);
    // A scan goes over its whole lines for any part of them: as many elements as it reads.
    const auto count =
        static_cast<double>(volume(kind == OpClass::scan ? *demand[node.inputs[0]] : *box));
    cost += only_moves(kind)
                ? 0
                : count * (kind == OpClass::scan ? 1 : static_cast<double>(terms_of(graph, node)));
  }
  return cost;
}

// What the reference evaluates: the graph itself where it is primitive, else its decomposition,
// held in `made`.
Result<const Graph*> primitive(const Graph& graph, Graph& made) {
  if (is_primitive(graph)) return &graph;
  WARPLOOM_TRY(made, decompose(graph));
  return &made;
}

// What a box of one tensor needs, pushed back through the graph.
Demand demand_for(const Graph& graph, TensorId id, const Box& asked) {
  Demand demand(graph.tensors.size());
  demand[id] = asked;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto& wanted = demand[node->outputs[0]];
    if (!wanted || graph.tensor(node->outputs[0]).constant) continue;
    const NodeContext q{graph, *node};
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (!q.has(i)) continue;
      const auto access = access_of(graph, *node, i);
      const bool view = class_of(node->op) == OpClass::view && i == 0;
      if (!access && !view) continue;
      const Shape& in = q.in(i).shape;
      const Box box =
          view ? reshaped(*wanted, q.out(), in) : inside(reach(*access, in, *wanted), in);
      auto& slot = demand[node->inputs[i]];
      slot = slot ? hull(*slot, box) : box;
    }
  }
  return demand;
}

Rows cut(const Graph& graph, int output) {  // of a primitive graph
  const TensorId id = graph.outputs[output];
  const Shape& shape = graph.tensor(id).shape;
  const auto rows_over = [&](size_t axes) {
    return Rows{element_count(entries(shape, 0, axes)), element_count(entries(shape, axes)), true,
                axes};
  };
  if (shape.empty()) return rows_over(0);
  const double full = evaluation_cost(graph, id);
  for (size_t axes = shape.size() > 1 ? shape.size() - 1 : 1; axes > 0; --axes) {
    const Rows rows = rows_over(axes);
    if (rows.count == 0) return rows;
    double dearest = 0;
    for (int64_t row : {int64_t{0}, rows.count / 2, rows.count - 1})
      dearest = std::max(
          dearest, cost_of(graph, demand_for(graph, id, row_boxes(shape, axes, row, row + 1)[0])));
    if (dearest * static_cast<double>(rows.count) <= 1.5 * full) return rows;
  }
  Rows rows = rows_over(1);
  rows.independent = false;
  return rows;
}
}  // namespace

double evaluation_cost(const Graph& graph, TensorId id) {
  return cost_of(graph, demand_for(graph, id, whole(graph.tensor(id).shape)));
}

Rows rows_of(const Graph& graph, int output) {
  Graph made;
  if (const auto held = primitive(graph, made)) return cut(**held, output);
  const TensorId id = graph.outputs[output];
  return {1, element_count(graph.tensor(id).shape)};  // evaluation says what is wrong
}

Result<std::vector<ValueAndMagnitude>> evaluate_exactly(const Graph& graph,
                                                        std::span<const Bytes> inputs,
                                                        EvalOptions means) {
  means.magnitudes = false;
  std::vector<ValueAndMagnitude> outputs(graph.outputs.size());
  Graph made;
  WARPLOOM_TRY(const Graph* const held, primitive(graph, made));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int output = static_cast<int>(i);
    WARPLOOM_TRY(outputs[i], evaluate_magnitude_rows(*held, inputs, output, 0,
                                                     rows_of(*held, output).count, means));
  }
  return outputs;
}

Result<std::vector<std::vector<double>>> evaluate(const Graph& graph, std::span<const Bytes> inputs,
                                                  EvalOptions means) {
  WARPLOOM_TRY(std::vector<ValueAndMagnitude> all,
               evaluate_exactly(graph, inputs, std::move(means)));
  std::vector<std::vector<double>> outputs;
  for (ValueAndMagnitude& one : all) outputs.push_back(std::move(one.value));
  return outputs;
}

Result<ValueAndMagnitude> evaluate_magnitude_rows(const Graph& given, std::span<const Bytes> inputs,
                                                  int output, int64_t begin, int64_t end,
                                                  const EvalOptions& means) {
  const auto fits = [&](Bytes bytes, TensorId id) {
    return std::ssize(bytes) == byte_count(given.tensor(id));
  };
  if (!std::ranges::equal(inputs, given.inputs, fits))
    return fail(
        {ErrorCode::kInternal, "the reference is given other inputs than the graph's", given.name});
  Graph made;
  WARPLOOM_TRY(const Graph* const held, primitive(given, made));
  const Graph& graph = *held;
  const TensorId id = graph.outputs[output];
  const Rows rows = cut(graph, output);
  if (begin < 0 || end > rows.count || begin > end)
    return fail({ErrorCode::kInternal, "rows outside the output", graph.name,
                 fmt::format("0 to {}", rows.count), fmt::format("{} to {}", begin, end)});
  ValueAndMagnitude result;
  try {
    for (const Box& box : row_boxes(graph.tensor(id).shape, rows.axes, begin, end))
      if (volume(box) > 0)
        WARPLOOM_CHECK(compute(graph, inputs, demand_for(graph, id, box), id, box, means, result));
    return result;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {}
  return fail({ErrorCode::kOutOfMemory, "the reference does not fit in memory", graph.name, "", "",
               "evaluate fewer rows at a time"});
}
}  // namespace warploom::graph
