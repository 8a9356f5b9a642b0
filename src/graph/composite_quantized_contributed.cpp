// The rewriting of ONNX Runtime's quantized operators.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_pieces.h"
#include "graph/composite_quantized.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
// x by the scale and zero point that inputs i and i + 1 are; in the type of the first input where
// there is no zero point.
Result<Id> requantized(PrimitiveWriter& writer, Id x, size_t i, size_t first = 0) {
  WARPLOOM_TRY(const Id scale, scalar_input(writer, i, "y_scale"));
  Id zero = kAbsent;
  Dtype type = writer.in(first).dtype;
  if (writer.has(i + 1)) {
    WARPLOOM_CHECK(check_small_integer(writer, i + 1));
    WARPLOOM_TRY(zero, scalar_input(writer, i + 1, "y_zero"));
    type = writer.in(i + 1).dtype;
  }
  const Id ratio = writer.make(OpKind::Div, {x, scale}, "ratio");
  return quantized(writer, ratio, zero, type, "y");
}
}  // namespace

// Sums, products and functions of one: numbers, scales and zero points of each operand, then the
// scale and zero point of the result.
Result<Outputs> quantized_pointwise(PrimitiveWriter& writer) {
  using enum OpKind;
  const OpKind op = writer.node.op;
  const bool of_two = op == QLinearAdd || op == QLinearMul;
  WARPLOOM_CHECK(of_two ? check_given(writer, {0, 1, 3, 4, 6}) : check_given(writer, {0, 1, 3}));
  WARPLOOM_TRY(const Id a, dequantized_input(writer, 0, "a"));
  Id y = kAbsent;
  size_t scale = 3;
  if (of_two) {
    WARPLOOM_TRY(const Id b, dequantized_input(writer, 3, "b"));
    y = writer.make(op == QLinearAdd ? Add : Mul, {a, b}, "real");
    scale = 6;
  } else if (op == QLinearSigmoid) {
    y = writer.make(Sigmoid, {a}, "real");
  } else {
    const double alpha = writer.node.real("alpha");
    y = writer.make(LeakyRelu, {a}, "real", {{"alpha", alpha}});
  }
  WARPLOOM_TRY(const Id narrow, requantized(writer, y, scale));
  return Outputs{narrow};
}

// Means over windows, or over all pixels; with channels last where the node says so.
Result<Outputs> quantized_pool(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_given(writer, {0, 1, 3}));
  const bool last = writer.node.integer("channels_last") != 0;
  WARPLOOM_TRY(Id x, dequantized_input(writer, 0, "x"));
  const size_t rank = writer.rank(x);
  if (rank < 3)
    return writer.error(kShape, "an input has no spatial axes", "3 axes or more", writer.shape(x));
  List first = {0, as_int64(rank) - 1};
  first = chained(first, span(1, rank - 1));
  List back = {0};
  back = chained(back, span(2, rank));
  back.push_back(1);
  if (last) x = writer.make(OpKind::Transpose, {x}, "channels_first", {{"perm", first}});
  Id y = kAbsent;
  if (writer.node.op == OpKind::QLinearGlobalAveragePool)
    y = writer.make(OpKind::GlobalAveragePool, {x}, "means");
  else
    y = writer.make(OpKind::AveragePool, {x}, "means", window_attributes(writer.node));
  if (last) y = writer.make(OpKind::Transpose, {y}, "channels_last", {{"perm", back}});
  WARPLOOM_TRY(const Id narrow, requantized(writer, y, 3));
  return Outputs{narrow};
}

// The scale and zero point of the result, then numbers, scale and zero point of each part.
Result<Outputs> quantized_concat(PrimitiveWriter& writer) {
  const size_t count = writer.node.inputs.size();
  if (count % 3 != 2)
    return writer.error(ErrorCode::kOnnxName, "wrong number of inputs",
                        "two, and three for each part", fmt::format("{}", count));
  std::vector<Id> parts;
  for (size_t i = 2; i < count; i += 3) {
    WARPLOOM_TRY(const Id part, dequantized_input(writer, i, "part"));
    parts.push_back(part);
  }
  const int64_t axis = writer.node.integer("axis");
  const Id all = writer.make(OpKind::Concat, std::move(parts), "all", {{"axis", axis}});
  WARPLOOM_TRY(const Id narrow, requantized(writer, all, 0, 2));
  return Outputs{narrow};
}

namespace {
// A · B less their zero points, times scales and plus a bias, in the scales' type.
struct Scaled {
  Id whole = kAbsent;  // [..,M,N] of i32
  Id a_scale = kAbsent;
  size_t b_scale = 0;  // an input, of one element or N
  size_t bias = 0;
};

Result<Id> scaled_product(PrimitiveWriter& writer, const Scaled& of) {
  const int64_t columns = writer.shape(of.whole).back();
  for (const size_t i : {of.b_scale, of.bias}) {
    if (!writer.has(i)) continue;
    const Shape& given = writer.in(i).shape;
    if (element_count(given) == 1 && i == of.b_scale) continue;
    WARPLOOM_CHECK(check_vector(writer, i, columns));
  }
  const Id b = writer.raw(of.b_scale);
  const bool one = element_count(writer.shape(b)) == 1;
  const Id b_scale = writer.reshape(b, one ? Shape{} : Shape{columns}, "b_scale");
  const Id scale = writer.mul(of.a_scale, b_scale, "scale");
  Id y = writer.mul(writer.cast(of.whole, writer.dtype(scale), "real"), scale, "scaled");
  if (writer.has(of.bias)) y = writer.add(y, writer.raw(of.bias), "biased");
  return y;
}

Result<Id> column_zero(PrimitiveWriter& writer, size_t i, const Shape& matrix) {
  if (!writer.has(i)) return kAbsent;
  const Shape& given = writer.in(i).shape;
  if (element_count(given) == 1) return writer.reshape(writer.raw(i), {}, "b_zero");
  WARPLOOM_CHECK(check_vector(writer, i, matrix.back()));
  return writer.raw(i);
}
}  // namespace

// A, B, their scales, their zero points, a bias.
Result<Outputs> integer_matmul_scaled(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_small_integer(writer, 0));
  WARPLOOM_CHECK(check_small_integer(writer, 1));
  Scaled of;
  WARPLOOM_TRY(of.a_scale, scalar_input(writer, 2, "a_scale"));
  Id a_zero = kAbsent;
  if (writer.has(4)) {
    WARPLOOM_TRY(a_zero, scalar_input(writer, 4, "a_zero"));
  }
  const Shape matrix = writer.in(1).shape;
  if (matrix.size() < 2) return writer.error(kShape, "B is no matrix", "2 axes or more", matrix);
  WARPLOOM_TRY(const Id b_zero, column_zero(writer, 5, matrix));
  const Id a = around_zero(writer, writer.raw(0), a_zero, "a");
  const Id b = around_zero(writer, writer.raw(1), b_zero, "b");
  of.whole = writer.make(OpKind::MatMul, {a, b}, "product");
  of.b_scale = 3;
  of.bias = 6;
  WARPLOOM_TRY(const Id y, scaled_product(writer, of));
  return Outputs{y};
}

// A of floats, which its own ends quantize; B, its scale and zero point, a bias.
Result<Outputs> dynamic_quantize_matmul(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_small_integer(writer, 1));
  const Shape matrix = writer.in(1).shape;
  if (matrix.size() < 2) return writer.error(kShape, "B is no matrix", "2 axes or more", matrix);
  WARPLOOM_TRY(const Id b_zero, column_zero(writer, 3, matrix));
  WARPLOOM_TRY(const Outputs a, dynamic_quantize(writer));
  const Id left = around_zero(writer, a[0], a[2], "a");
  const Id right = around_zero(writer, writer.raw(1), b_zero, "b");
  Scaled of;
  of.whole = writer.make(OpKind::MatMul, {left, right}, "product");
  of.a_scale = a[1];
  of.b_scale = 2;
  of.bias = 4;
  WARPLOOM_TRY(const Id y, scaled_product(writer, of));
  return Outputs{y};
}
}  // namespace warploom::graph::rewrites
