#include "graph/demand.h"

#include <algorithm>

#include "graph/elements.h"
#include "graph/shape_rules.h"

namespace warploom::graph {
namespace {

Box empty_box(std::size_t rank) { return {Shape(rank, 0), Shape(rank, 0)}; }

// The part of a tensor of shape `in` that broadcasting lines up with `out`, a box of at least as many axes.
Box stretched(const Box& out, const Shape& in) {
  const std::size_t skipped = out.size.size() - in.size();
  Box box = whole(in);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i] != 1) {
      box.begin[i] = out.begin[skipped + i];
      box.size[i] = out.size[skipped + i];
    }
  return box;
}

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

Box of_matmul(const Box& out, const Shape& shape, bool is_left, bool left_is_vector, bool right_is_vector) {
  // The output's axes: batch..., rows unless the left is a vector, columns unless the right is one.
  const std::size_t tail = (left_is_vector ? 0u : 1u) + (right_is_vector ? 0u : 1u);
  const std::size_t batch = out.size.size() - tail;
  Box box = whole(shape);
  if (shape.size() == 1) return box;
  const std::size_t own_batch = shape.size() - 2;
  for (std::size_t i = 0; i < own_batch; ++i)
    if (shape[i] != 1) {
      box.begin[i] = out.begin[batch - own_batch + i];
      box.size[i] = out.size[batch - own_batch + i];
    }
  const std::size_t mine = is_left ? own_batch : own_batch + 1;  // the axis that is also the output's
  const std::size_t its = is_left ? batch : out.size.size() - 1;
  box.begin[mine] = out.begin[its];
  box.size[mine] = out.size[its];
  return box;
}

Box of_gemm(const Box& out, const Shape& shape, std::size_t kept, std::size_t axis) {
  Box box = whole(shape);
  box.begin[kept] = out.begin[axis];
  box.size[kept] = out.size[axis];
  return box;
}

Box of_movement(const Graph& graph, const Node& node, std::size_t input, const Box& out) {
  const Shape& in = graph.tensor(node.inputs[input]).shape;
  Box box = whole(in);
  switch (node.op) {
    case OpKind::Expand: return input == 0 ? stretched(out, in) : box;
    case OpKind::Transpose: {
      const auto perm = permutation_of(node, in.size());
      for (std::size_t i = 0; i < perm.size(); ++i) {
        box.begin[static_cast<std::size_t>(perm[i])] = out.begin[i];
        box.size[static_cast<std::size_t>(perm[i])] = out.size[i];
      }
      return box;
    }
    case OpKind::Slice: {
      const auto spec = slice_spec({graph, node, ""});
      if (input != 0 || !spec) return box;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const std::int64_t a = spec->begin[i] + out.begin[i] * spec->step[i];
        const std::int64_t b = a + (out.size[i] - 1) * spec->step[i];
        box.begin[i] = out.size[i] > 0 ? std::min(a, b) : 0;
        box.size[i] = out.size[i] > 0 ? std::max(a, b) - std::min(a, b) + 1 : 0;
      }
      return box;
    }
    case OpKind::Concat: {
      const auto axis = static_cast<std::size_t>(*normalized_axis(node.integer("axis"), in.size(), ""));
      std::int64_t before = 0;
      for (std::size_t i = 0; i < input; ++i) before += graph.tensor(node.inputs[i]).shape[axis];
      box = out;
      const std::int64_t low = std::max<std::int64_t>(out.begin[axis] - before, 0);
      const std::int64_t high = std::min(out.begin[axis] + out.size[axis] - before, in[axis]);
      box.begin[axis] = high > low ? low : 0;
      box.size[axis] = std::max<std::int64_t>(high - low, 0);
      return box;
    }
    case OpKind::Gather: {
      if (input == 1) return box;
      const auto axis = static_cast<std::size_t>(*normalized_axis(node.integer("axis"), in.size(), ""));
      const std::size_t added = graph.tensor(node.inputs[1]).shape.size();
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (i == axis) continue;
        box.begin[i] = out.begin[i < axis ? i : i + added - 1];
        box.size[i] = out.size[i < axis ? i : i + added - 1];
      }
      return box;
    }
    default: return box;
  }
}

Box needed(const Graph& graph, const Node& node, std::size_t input, const Box& out) {
  const Shape& in = graph.tensor(node.inputs[input]).shape;
  switch (class_of(node.op)) {
    case OpClass::pointwise: return stretched(out, in);
    case OpClass::view: return reshaped(out, graph.tensor(node.outputs[0]).shape, in);
    case OpClass::movement: return of_movement(graph, node, input, out);
    case OpClass::softmax: {
      Box box = out;
      const auto axis = static_cast<std::size_t>(*normalized_axis(node.integer("axis"), in.size(), ""));
      box.begin[axis] = 0;
      box.size[axis] = in[axis];
      return box;
    }
    case OpClass::contraction:
      if (node.op == OpKind::MatMul)
        return of_matmul(out, in, input == 0, graph.tensor(node.inputs[0]).shape.size() == 1,
                         graph.tensor(node.inputs[1]).shape.size() == 1);
      if (input == 0) return of_gemm(out, in, node.integer("transA") != 0 ? 1 : 0, 0);
      if (input == 1) return of_gemm(out, in, node.integer("transB") != 0 ? 0 : 1, 1);
      return stretched(out, in);
    case OpClass::constant: break;
  }
  return whole(in);
}

void split(const Shape& shape, std::size_t axis, std::size_t axes, Box box, std::int64_t begin, std::int64_t end,
           std::vector<Box>& to) {
  if (begin >= end) return;
  if (axis + 1 == axes) {
    box.begin[axis] = begin;
    box.size[axis] = end - begin;
    to.push_back(std::move(box));
    return;
  }
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < axes; ++i) inner *= shape[i];
  const auto partial = [&](std::int64_t at, std::int64_t from, std::int64_t until) {
    Box part = box;
    part.begin[axis] = at;
    part.size[axis] = 1;
    split(shape, axis + 1, axes, part, from, until, to);
  };
  const std::int64_t first = begin / inner, last = end / inner;
  if (first == last) return partial(first, begin % inner, end % inner);
  std::int64_t full = first;
  if (begin % inner != 0) partial(full++, begin % inner, inner);
  if (full < last) {
    Box middle = box;
    middle.begin[axis] = full;
    middle.size[axis] = last - full;
    to.push_back(std::move(middle));
  }
  partial(last, 0, end % inner);
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
  if (axes == 0) {
    if (begin < end) boxes.push_back(whole(shape));
  } else {
    split(shape, 0, axes, whole(shape), begin, end, boxes);
  }
  return boxes;
}

void propagate(const Graph& graph, Demand& demand) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto& out = demand[static_cast<std::size_t>(node->outputs[0])];
    if (!out || graph.tensor(node->outputs[0]).constant) continue;
    const Box wanted = *out;
    // CastLike looks at its second input's type, Dropout at nothing but its first, Reshape at the shapes alone.
    const bool first_only = node->op == OpKind::CastLike || node->op == OpKind::Dropout ||
                            class_of(node->op) == OpClass::view || node->op == OpKind::Expand ||
                            node->op == OpKind::Slice;
    for (std::size_t i = 0; i < node->inputs.size() && !(first_only && i > 0); ++i) {
      const TensorId id = node->inputs[i];
      if (id == kAbsent) continue;
      auto& slot = demand[static_cast<std::size_t>(id)];
      const Box box = needed(graph, *node, i, wanted);
      slot = slot ? hull(*slot, box) : box;
    }
  }
}

}  // namespace warploom::graph
