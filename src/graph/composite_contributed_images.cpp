// The rewriting of ONNX Runtime's operators for images that are made of noise: norms of groups with
// channels last, and gates.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/composite_quantized.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
// Channels from the last axis to the second, and back.
Id channels_moved(PrimitiveWriter& writer, Id x, bool to_front, std::string_view what) {
  const size_t rank = writer.rank(x);
  List order = {0};
  if (to_front) {
    order.push_back(as_int64(rank) - 1);
    order = chained(order, span(1, rank - 1));
  } else {
    order = chained(order, span(2, rank));
    order.push_back(1);
  }
  return writer.make(OpKind::Transpose, {x}, what, {{"perm", order}});
}

// x, of at least three axes, normed by groups of channels with inputs 1 and 2 as scale and bias.
Result<Id> normed_groups(PrimitiveWriter& writer, Id x) {
  const bool last = writer.node.integer("channels_last") != 0;
  if (writer.rank(x) < 3)
    return writer.error(kShape, "an input has no spatial axes", "3 axes or more", writer.shape(x));
  if (last) x = channels_moved(writer, x, true, "channels_first");
  const int64_t groups = writer.node.integer("groups");
  const int64_t channels = writer.shape(x)[1];
  if (groups < 1 || channels % groups != 0)
    return writer.error(kAttribute, "groups does not divide the channels",
                        fmt::format("a divisor of {}", channels), groups);
  for (const size_t i : {1, 2})
    WARPLOOM_CHECK(check_vector(writer, i, channels));
  const double epsilon = writer.node.real("epsilon");
  const std::vector<Id> inputs = {x, writer.raw(1), writer.raw(2)};
  Id y = writer.make(OpKind::GroupNormalization, inputs, "normed",
                     {{"num_groups", groups}, {"epsilon", epsilon}});
  if (writer.node.integer("activation") == 1)
    y = writer.mul(y, writer.make(OpKind::Sigmoid, {y}, "gate"), "silu");
  return last ? channels_moved(writer, y, false, "channels_last") : y;
}
}  // namespace

Result<Outputs> contributed_group_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  WARPLOOM_TRY(const Id y, normed_groups(writer, writer.raw(0)));
  return Outputs{y};
}

// X, scale, bias, what is added before, a bias of that: Y and the sum.
Result<Outputs> skip_group_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  const Shape x = writer.in(0).shape;
  Id sum = writer.raw(0);
  for (const size_t i : {3, 4}) {
    if (!writer.has(i)) continue;
    const Shape given = writer.in(i).shape;
    // One for each channel, or for each image and channel, stretches over the pixels.
    const bool by_image = given.size() == 2 && x.size() > 2;
    Id own = writer.raw(i);
    if (by_image) own = writer.reshape(own, {given[0], 1, 1, given[1]}, "by_image");
    WARPLOOM_TRY(const Shape both, broadcast(x, writer.shape(own), writer.place));
    if (both != x)
      return writer.error(kShape, "what is added does not stretch to the input", x, given);
    sum = writer.add(sum, own, "sum");
  }
  WARPLOOM_TRY(const Id y, normed_groups(writer, sum));
  return Outputs{y, sum};
}

// (x + bias) in halves along its last axis: the first times the Gelu of the second.
Result<Outputs> bias_split_gelu(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  const Id sum = writer.add(writer.wide(0), writer.wide(1), "sum");
  const Shape shape = writer.shape(sum);
  if (shape != writer.in(0).shape || shape.empty() || shape.back() % 2 != 0)
    return writer.error(kShape, "an input has no halves", "an even number of columns",
                        writer.in(0).shape);
  const size_t last = shape.size() - 1;
  const Id left = part_of(writer, sum, last, 0, shape.back() / 2, "left");
  const Id right = part_of(writer, sum, last, shape.back() / 2, shape.back(), "right");
  return Outputs{writer.mul(left, writer.make(OpKind::Gelu, {right}, "gelu"), "y")};
}

// The softmax of x + bias over all from an axis on.
Result<Outputs> bias_softmax(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const Shape shape = writer.in(0).shape;
  const Id sum = writer.add(writer.raw(0), writer.raw(1), "sum");
  if (writer.shape(sum) != shape)
    return writer.error(kShape, "the bias does not stretch to the input", shape,
                        writer.in(1).shape);
  Shape rows = entries(shape, 0, axis);
  rows.push_back(element_count(entries(shape, axis)));
  const Id flat = writer.reshape(sum, rows, "rows");
  const int64_t last = -1;
  const Id y = writer.make(OpKind::Softmax, {flat}, "chosen", {{"axis", last}});
  return Outputs{writer.reshape(y, shape, "y")};
}

Result<Outputs> gemm_fast_gelu(PrimitiveWriter& writer) {
  Id y = writer.make(OpKind::MatMul, {writer.raw(0), writer.raw(1)}, "product");
  if (writer.has(2)) y = writer.add(y, writer.raw(2), "biased");
  return Outputs{writer.make(OpKind::Gelu, {y}, "gelu", {{"approximate", std::string("tanh")}})};
}

namespace {
// C, of i32, behind a product of whole numbers.
Result<Id> with_c(PrimitiveWriter& writer, Id product) {
  if (!writer.has(6)) return product;
  if (writer.in(6).dtype != Dtype::i32) return type_error(writer, "a C of i32", writer.in(6).dtype);
  const Shape made = writer.shape(product);
  const Id sum = writer.add(product, writer.raw(6), "biased");
  if (writer.shape(sum) == made) return sum;
  return writer.error(kShape, "C does not stretch to the product's shape", made,
                      writer.in(6).shape);
}

// Numbers by the scale and zero point of Y, where it has them.
Result<Id> as_y(PrimitiveWriter& writer, Id real) {
  if (!writer.has(7)) return real;
  WARPLOOM_TRY(const Id y_scale, scalar_input(writer, 7, "y_scale"));
  const Id ratio = writer.make(OpKind::Div, {real, y_scale}, "ratio");
  if (!writer.has(8)) return quantized(writer, ratio, kAbsent, writer.in(0).dtype, "y");
  WARPLOOM_TRY(const Id zero, scalar_input(writer, 8, "y_zero"));
  return quantized(writer, ratio, zero, writer.in(8).dtype, "y");
}
}  // namespace

// A, its scale and zero point, B likewise, C of i32, the scale and zero point of Y: alpha · A · B +
// C, floats where Y has no scale.
Result<Outputs> quantized_gemm(PrimitiveWriter& writer) {
  for (const size_t i : {0, 3}) {
    WARPLOOM_CHECK(check_small_integer(writer, i));
    if (writer.in(i).shape.size() != 2)
      return writer.error(kShape, "an operand is no matrix", "2 axes", writer.in(i).shape);
  }
  WARPLOOM_TRY(const Id a_scale, scalar_input(writer, 1, "a_scale"));
  WARPLOOM_TRY(const Id a_zero, scalar_input(writer, 2, "a_zero"));
  const bool turns = writer.node.integer("transB") != 0;
  const Shape b = writer.in(3).shape;
  const int64_t columns = b[turns ? 0 : 1];
  const auto by_column = [&](size_t i, std::string_view what) -> Result<Id> {
    if (element_count(writer.in(i).shape) == 1) return writer.reshape(writer.raw(i), {}, what);
    WARPLOOM_CHECK(check_vector(writer, i, columns));
    return writer.raw(i);
  };
  WARPLOOM_TRY(const Id b_scale, by_column(4, "b_scale"));
  WARPLOOM_TRY(const Id b_zero, by_column(5, "b_zero"));
  Id left = around_zero(writer, writer.raw(0), a_zero, "a");
  if (writer.node.integer("transA") != 0) left = writer.make(OpKind::Transpose, {left}, "a_turned");
  Id right = writer.raw(3);
  if (turns) right = writer.make(OpKind::Transpose, {right}, "b_turned");
  right = around_zero(writer, right, b_zero, "b");
  const Id product = writer.make(OpKind::MatMul, {left, right}, "product");
  WARPLOOM_TRY(const Id whole, with_c(writer, product));
  Id scale = writer.mul(a_scale, b_scale, "scale");
  const Id alpha = writer.scalar(writer.node.real("alpha"), scale, "alpha");
  scale = writer.mul(scale, alpha, "scaled_by_alpha");
  const Id real = writer.mul(writer.cast(whole, writer.dtype(scale), "real"), scale, "scaled");
  WARPLOOM_TRY(const Id y, as_y(writer, real));
  return Outputs{y};
}
}  // namespace warploom::graph::rewrites
