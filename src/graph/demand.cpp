#include "graph/elements.h"
#include "graph/evaluator.h"
namespace warploom::graph {
namespace {
Box empty_box(std::size_t rank) { return {Shape(rank, 0), Shape(rank, 0)}; }

// The smallest box of `to` that holds the elements of `box` of `from` under the same flat order.
Box reshaped(const Box& box, const Shape& from, const Shape& to) {
  if (volume(box) == 0) return empty_box(to.size());
  std::int64_t low = 0, high = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    low = low * from[i] + box.begin[i];
    high = high * from[i] + box.begin[i] + box.size[i] - 1;
  }
  const auto first = coordinates_of(to, low), last = coordinates_of(to, high);
  Box held = whole(to);
  for (std::size_t i = 0; i < to.size(); ++i) {
    held.begin[i] = first[i];
    held.size[i] = last[i] - first[i] + 1;
    if (first[i] != last[i]) break;  // this axis is a range, the later ones are whole
  }
  return held;
}

// The smallest box of an input of shape `in` from which `out` can be made.
Box read_from(const Access& access, const Shape& in, const Box& out) {
  Box box = whole(in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const AxisSource& source = access[i];
    if (source.axis == AxisSource::kWhole) continue;
    const auto axis = static_cast<std::size_t>(source.axis);
    const std::int64_t first = source.begin + out.begin[axis] * source.step;
    const std::int64_t last = first + (out.size[axis] - 1) * source.step;
    const std::int64_t low = std::max<std::int64_t>(std::min(first, last), 0);
    const std::int64_t high = std::min(std::max(first, last) + (source.taps - 1) * source.dilation, in[i] - 1);
    const bool some = out.size[axis] > 0 && low <= high;
    box.begin[i] = some ? low : 0;
    box.size[i] = some ? high - low + 1 : 0;
  }
  return box;
}
}  // namespace
Box whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }
std::int64_t volume(const Box& box) { return element_count(box.size); }
Box hull(const Box& a, const Box& b) {
  if (volume(a) == 0) return b;
  if (volume(b) == 0) return a;
  Box box = a;
  for (std::size_t i = 0; i < a.size.size(); ++i) {
    box.begin[i] = std::min(a.begin[i], b.begin[i]);
    box.size[i] = std::max(a.begin[i] + a.size[i], b.begin[i] + b.size[i]) - box.begin[i];
  }
  return box;
}

std::vector<Box> row_boxes(const Shape& shape, std::size_t axes, std::int64_t begin, std::int64_t end) {
  std::vector<Box> boxes;
  const Shape leading(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axes));
  for (std::int64_t row = begin; row < end;) {
    // As many axes as begin at 0 here and fit whole, then a range of the next one out.
    std::size_t axis = axes;
    std::int64_t inner = 1;
    while (axis > 1 && row % (inner * shape[axis - 1]) == 0 && row + inner * shape[axis - 1] <= end) inner *= shape[--axis];
    const Shape at = coordinates_of(leading, row);
    Box box = whole(shape);
    for (std::size_t i = 0; i < axis; ++i) {
      box.begin[i] = at[i];
      box.size[i] = i + 1 < axis ? 1 : std::min(shape[i] - at[i], (end - row) / inner);
    }
    row += axis == 0 ? 1 : box.size[axis - 1] * inner;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

void propagate(const Graph& graph, Demand& demand) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto& wanted = demand[static_cast<std::size_t>(node->outputs[0])];
    if (!wanted || graph.tensor(node->outputs[0]).constant) continue;
    const Question q{graph, *node};
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      if (!q.has(i)) continue;
      const auto access = operator_of(node->op).access(q, i);
      const bool view = class_of(node->op) == OpClass::view && i == 0;
      if (!access && !view) continue;
      const Shape& in = q.in(i).shape;
      const Box box = view ? reshaped(*wanted, q.out(), in) : read_from(*access, in, *wanted);
      auto& slot = demand[static_cast<std::size_t>(node->inputs[i])];
      slot = slot ? hull(*slot, box) : box;
    }
  }
}
}  // namespace warploom::graph
