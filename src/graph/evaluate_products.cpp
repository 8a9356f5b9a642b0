// Contractions and convolutions of the FP64 reference: as matrix products (reference.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/node_evaluator.h"
#include "graph/operators.h"
#include "graph/reference.h"
#include "graph/strided.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
namespace {
int64_t element(const Operand& operand, int64_t line, int64_t depth) {
  const int64_t place = operand.lines[line] + operand.depths[depth];
  return load_whole(operand.dtype, operand.data, place);
}

Operand at_offset(Operand operand, int64_t elements) {
  const auto* const bytes = static_cast<const std::byte*>(operand.data);
  operand.data = bytes + elements * bytes_of(operand.dtype);
  return operand;
}

// A product of whole numbers, which wrap.
void multiply_exactly(const Product& product, int64_t* to) {
  for (const Offsets& offset : product.batch) {
    const Operand a = at_offset(product.a, offset.a);
    const Operand b = at_offset(product.b, offset.b);
    for (int64_t i = 0; i < product.m; ++i)
      for (int64_t j = 0; j < product.n; ++j) {
        int64_t& sum = to[offset.c + i * product.n + j];
        for (int64_t k = 0; k < product.k; ++k) {
          const int64_t left = element(a, i, k);
          const int64_t right = element(b, j, k);
          sum = apply_integers(ValueOp::fma, left, right, sum);
        }
      }
  }
}

// The first of the axes before `end` that can be one range of a matrix's rows, or columns: the
// operand `still` does not vary along them, and in the output they are neighbours.
size_t first_axis(const Box& box, const View& out, const View& still, size_t end) {
  const auto joins = [&](size_t i) {
    if (box.size[i] == 1) return true;
    const int64_t behind = element_count(entries(box.size, i + 1));
    return still.strides[i] == 0 && out.strides[i] == behind;
  };
  size_t axis = end;
  while (axis > 0 && joins(axis - 1))
    --axis;
  return axis;
}
}  // namespace

void NodeEvaluator::product(const Node& node, const Box& box, Storage& fresh) const {
  fresh.fill(0);  // products are added
  if (volume(box) == 0) return;
  if (class_of(node.op) == OpClass::convolution) {
    convolution(node, box, fresh);
  } else {
    const View& a = view(node.inputs[0]);
    const View& b = view(node.inputs[1]);
    multiply(node, box, 0, a, b, fresh);
  }
  const Dtype dtype = output_of(node).dtype;
  for (int64_t& value : fresh.integers)
    value = wrapped_integer(dtype, value);
}

// The weights are the left operand. A group at a time, and no more images than kPadded elements
// hold when they are padded.
void NodeEvaluator::convolution(const Node& node, const Box& box, Storage& to) const {
  constexpr int64_t kPadded = 1 << 24;
  const Shape& weights = shape(node.inputs[1]);
  const AxisSources sources = *axis_sources(graph_, node, 0);
  const bool by_channel = sources[1].axis != AxisSource::kWhole;  // an axis like others, no groups
  const int64_t groups = by_channel ? 1 : node.integer("group", 1);
  const int64_t group_channels = weights[0] / groups;
  const int64_t end_channel = box.begin[1] + box.size[1];
  const int64_t end_image = box.begin[0] + box.size[0];
  Box part = box;
  part.size[0] = 1;
  const int64_t image_elements = volume(reach(sources, shape(node.inputs[0]), part));
  const int64_t most_images = kPadded / std::max<int64_t>(1, image_elements);
  while (part.begin[0] < end_image) {
    part.size = box.size;
    const int64_t images_left = end_image - part.begin[0];
    part.size[0] = std::clamp<int64_t>(most_images, 1, images_left);
    part.begin[1] = box.begin[1];
    const View x = padded(node, part, {});
    while (part.begin[1] < end_channel) {
      const int64_t group = part.begin[1] / group_channels;
      const int64_t end_group = (group + 1) * group_channels;
      part.size[1] = std::min(end_channel, end_group) - part.begin[1];
      View of_group = x;
      of_group.origin += group * weights[1] * x.strides[1];
      multiply(node, part, 1, view(node.inputs[1]), of_group, to);
      part.begin[1] += part.size[1];
    }
    part.begin[0] += part.size[0];
  }
}

// Adds a batch of products of input `left`, A, and the other, B. The last axes, along which A does
// not vary, are columns; those before, along which B does not vary, are rows; the rest is the
// batch.
void NodeEvaluator::multiply(const Node& node, const Box& box, size_t left, const View& a,
                             const View& b, Storage& to) const {
  const View in_a = projected(node, left, a);
  const View in_b = projected(node, 1 - left, b);
  const View& out = view(node.outputs[0]);
  const size_t rank = box.size.size();
  const size_t columns = first_axis(box, out, in_a, rank);
  const size_t rows = first_axis(box, out, in_b, columns);
  const auto lines = [&](const View& in, size_t begin, size_t end) {
    return offsets(entries(box.size, begin, end), entries(in.strides, begin, end));
  };
  const auto a_lines = lines(in_a, rows, columns);
  const auto b_lines = lines(in_b, columns, rank);
  const Taps a_taps = taps_of(node, left, a);
  const Taps b_taps = taps_of(node, 1 - left, b);
  const auto a_depths = offsets(a_taps.count, a_taps.steps);
  // Of a convolution's input one group's channels, as many as the weights have.
  const Shape& b_count = left == 1 ? a_taps.count : b_taps.count;
  const auto b_depths = offsets(b_count, b_taps.steps);
  Product product;
  product.a = {a.data, a.dtype, a_lines.data(), a_depths.data()};
  product.b = {b.data, b.dtype, b_lines.data(), b_depths.data()};
  product.m = std::ssize(a_lines);
  product.n = std::ssize(b_lines);
  product.k = std::ssize(a_depths);
  const Shape batch = entries(box.size, 0, rows);
  for (int64_t i = 0; i < element_count(batch); ++i) {
    Shape at = box.begin;
    const Shape within = coordinates_of(batch, i);
    for (size_t k = 0; k < rows; ++k)
      at[k] += within[k];
    const int64_t a_at = address(in_a, at);
    const int64_t b_at = address(in_b, at);
    product.batch.push_back({a_at, b_at, address(out, at)});
  }
  if (to.is_whole) return multiply_exactly(product, to.integers.data());
  double* const magnitude = to.error(0);
  multiply_add(product, to.value.data(), magnitude, options_);
  const auto add_errors = [&](Operand& operand, const double* errors) {  // |a|·E_b and E_a·|b|
    if (!magnitude || !errors) return;
    const Operand values = operand;
    operand.data = errors;
    operand.dtype = Dtype::f64;
    multiply_add(product, nullptr, magnitude, options_);
    operand = values;
  };
  add_errors(product.a, a.magnitude);
  add_errors(product.b, b.magnitude);
}
}  // namespace warploom::graph
