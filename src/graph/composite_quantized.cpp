// The rewriting of ONNX's quantized operators: numbers of 8 or 16 bits times scales.
#include "graph/composite_quantized.h"
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
bool is_small_integer(Dtype dtype) {
  const bool fits = bits_of(dtype) == 8 || bits_of(dtype) == 16;
  return is_integer(dtype) && dtype != Dtype::boolean && fits;
}

Status check_small_integer(const NodeContext& context, size_t i) {
  const Dtype dtype = context.in(i).dtype;
  if (is_small_integer(dtype)) return ok();
  return type_error(context, fmt::format("input {} of i8, u8, i16 or u16", i), dtype);
}

Id as_stored(PrimitiveWriter& writer, Id x, std::string_view what) {
  const int64_t to = onnx_type_of(writer.dtype(x));
  const int64_t rounds = 1;
  return writer.make(OpKind::Cast, {x}, what, {{"to", to}, {"rounds", rounds}});
}

Id quantized(PrimitiveWriter& writer, Id x, Id zero, Dtype type, std::string_view what) {
  if (is_float(type)) {
    const int64_t saturate = writer.node.integer("saturate", 1);
    const int64_t to = onnx_type_of(type);
    return writer.make(OpKind::Cast, {x}, what, {{"to", to}, {"saturate", saturate}});
  }
  Id y = writer.make(OpKind::Round, {as_stored(writer, x, "stored")}, "rounded");
  if (zero != kAbsent) y = writer.add(y, writer.cast(zero, writer.dtype(y), "zero"), "moved");
  const int magnitude_bits = bits_of(type) - (is_signed(type) ? 1 : 0);
  const double end = std::ldexp(1.0, magnitude_bits);
  const Id least = writer.scalar(is_signed(type) ? -end : 0, y, "least");
  const Id most = writer.scalar(end - 1, y, "most");
  return writer.cast(writer.make(OpKind::Clip, {y, least, most}, "held"), type, what);
}

Id around_zero(PrimitiveWriter& writer, Id x, Id zero, std::string_view what) {
  const Id whole = writer.cast(x, Dtype::i32, what);
  if (zero == kAbsent) return whole;
  return writer.sub(whole, writer.cast(zero, Dtype::i32, "zero"), what);
}

Result<Id> scalar_input(PrimitiveWriter& writer, size_t i, std::string_view what) {
  const Tensor& given = writer.in(i);
  if (element_count(given.shape) != 1)
    return writer.error(kShape, fmt::format("input {} is no scalar", i), "one element",
                        given.shape);
  const bool narrow = is_float(given.dtype) && bits_of(given.dtype) == 16;
  const Id one = writer.reshape(writer.raw(i), {}, what);
  return narrow ? writer.cast(one, Dtype::f32, what) : one;
}

Result<Id> dequantized_input(PrimitiveWriter& writer, size_t i, std::string_view what) {
  WARPLOOM_CHECK(check_small_integer(writer, i));
  WARPLOOM_TRY(const Id scale, scalar_input(writer, i + 1, "scale"));
  Id zero = kAbsent;
  if (writer.has(i + 2)) {
    WARPLOOM_TRY(zero, scalar_input(writer, i + 2, "zero"));
  }
  const Id whole = around_zero(writer, writer.raw(i), zero, what);
  return writer.mul(writer.cast(whole, writer.dtype(scale), what), scale, what);
}

namespace rewrites {
namespace {
// The type of what a QuantizeLinear makes.
Result<Dtype> quantized_type(const PrimitiveWriter& writer) {
  const int64_t named = writer.node.integer("output_dtype");
  Dtype type = Dtype::u8;
  if (named != 0) {
    WARPLOOM_TRY(type, checked_dtype(named, "QuantizeLinear's output type", writer.place));
  }
  if (writer.has(2)) {
    const Dtype zero = writer.in(2).dtype;
    if (named != 0 && type != zero)
      return writer.error(kAttribute, "the zero point has another type than the output", type,
                          zero);
    type = zero;
  }
  const bool is_fp8 = is_float(type) && bits_of(type) == 8;
  if (is_fp8 || is_small_integer(type)) return type;
  return type_error(writer, "i8, u8, i16, u16, e4m3 or e5m2", type);
}

bool is_number_to_scale(Dtype dtype) {
  return dtype == Dtype::i32 || is_wide_float(dtype);
}
}  // namespace

// x / scale, rounded, plus a zero point.
Result<Outputs> quantize_linear(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Dtype type, quantized_type(writer));
  for (const size_t i : {0, 1})
    if (!is_number_to_scale(writer.in(i).dtype))
      return type_error(writer, "f64, f32, bf16, f16 or i32", writer.in(i).dtype);
  if (writer.has(2) && writer.in(2).shape != writer.in(1).shape)
    return writer.error(kShape, "zero points lie as scales do", writer.in(1).shape,
                        writer.in(2).shape);
  WARPLOOM_TRY(const Shape shape, scale_shape(writer));
  const Shape whole = writer.in(0).shape;
  const Blocks blocks = blocks_of(whole, shape);
  if (!blocks.fit)
    return writer.error(kShape, "scales do not divide what they are for into blocks", whole, shape);
  const bool is_f64 = writer.in(0).dtype == Dtype::f64 || writer.in(1).dtype == Dtype::f64;
  const Dtype wide = is_f64 ? Dtype::f64 : Dtype::f32;
  const Id apart = writer.reshape(writer.cast(writer.raw(0), wide, "wide"), blocks.of_x, "apart");
  const Id scale = as_stored(writer, writer.cast(writer.raw(1), wide, "wide_scale"), "own_scale");
  const Id divisor = writer.reshape(scale, blocks.of_scale, "scales");
  const Id ratio = writer.make(OpKind::Div, {apart, divisor}, "ratio");
  Id zero = kAbsent;
  if (writer.has(2)) zero = writer.reshape(writer.raw(2), blocks.of_scale, "zeros");
  const Id y = quantized(writer, ratio, zero, type, "quantized");
  return Outputs{writer.reshape(y, whole, "y")};
}

// To u8 by a scale and a zero point that x's own ends make: Y, scale, zero point.
Result<Outputs> dynamic_quantize(PrimitiveWriter& writer) {
  if (writer.in(0).dtype != Dtype::f32) return type_error(writer, "f32", writer.in(0).dtype);
  if (element_count(writer.in(0).shape) == 0)
    return writer.error(kShape, "the ends of nothing", "1 element or more", writer.in(0).shape);
  const Id x = writer.raw(0);
  const List all = span(0, writer.rank(x));
  const Id zero = writer.scalar(0, x, "zero");
  const auto end = [&](OpKind reduce, OpKind choose, std::string_view what) {
    const Id own = writer.reduce(reduce, x, all, what, 0);
    return writer.make(choose, {own, zero}, what);
  };
  const Id most = end(OpKind::ReduceMax, OpKind::Max, "most");
  const Id least = end(OpKind::ReduceMin, OpKind::Min, "least");
  const Id length = as_stored(writer, writer.sub(most, least, "ends_apart"), "length");
  const Id nothing = writer.make(OpKind::Equal, {length, zero}, "nothing");
  const Id one = writer.scalar(1, x, "one");
  const Id steps = writer.scalar(255, x, "steps");
  const Id kept = writer.where(nothing, one, length, "kept");
  const Id step = writer.make(OpKind::Div, {kept, steps}, "step");
  const Id scale = as_stored(writer, step, "scale");
  const Id lowest = as_stored(writer, writer.make(OpKind::Div, {least, scale}, "ratio"), "lowest");
  const Id place =
      quantized(writer, writer.sub(zero, lowest, "place"), kAbsent, Dtype::u8, "point");
  const Id ratio = writer.make(OpKind::Div, {x, scale}, "ratio");
  return Outputs{quantized(writer, ratio, place, Dtype::u8, "y"), scale, place};
}

namespace {
// A zero point, or a scale, of a matrix's rows or columns, so that it stretches to the matrix: a
// vector has one for each row of the left operand, for each column of the right.
Result<Id> along_matrix(PrimitiveWriter& writer, size_t i, Id of, bool left) {
  if (!writer.has(i)) return kAbsent;
  const Shape given = writer.in(i).shape;
  const Shape matrix = writer.shape(of);
  if (element_count(given) == 1) return writer.reshape(writer.raw(i), {}, "one");
  const size_t rank = matrix.size();
  if (rank == 0)
    return writer.error(kShape, fmt::format("input {} is of a scalar's lines", i), "one element",
                        given);
  const size_t axis = rank - (left && rank > 1 ? 2 : 1);
  if (given == Shape{matrix[axis]}) {
    const Shape column = left && rank > 1 ? Shape{given[0], 1} : given;
    return writer.reshape(writer.raw(i), column, "by_line");
  }
  WARPLOOM_TRY(const Shape both, broadcast(matrix, given, writer.place));
  if (both == matrix) return writer.raw(i);
  return writer.error(kShape, fmt::format("input {} does not stretch to its matrix", i), matrix,
                      given);
}

// The product of inputs `a` and `b` less their zero points, in i32.
Result<Id> whole_product(PrimitiveWriter& writer, size_t a, size_t a_zero, size_t b,
                         size_t b_zero) {
  WARPLOOM_CHECK(check_small_integer(writer, a));
  WARPLOOM_CHECK(check_small_integer(writer, b));
  for (const auto& [zero, of] : {std::pair(a_zero, a), std::pair(b_zero, b)})
    if (writer.has(zero) && writer.in(zero).dtype != writer.in(of).dtype)
      return type_error(writer, writer.in(of).dtype, writer.in(zero).dtype);
  WARPLOOM_TRY(const Id left_zero, along_matrix(writer, a_zero, writer.raw(a), true));
  WARPLOOM_TRY(const Id right_zero, along_matrix(writer, b_zero, writer.raw(b), false));
  const Id left = around_zero(writer, writer.raw(a), left_zero, "left");
  const Id right = around_zero(writer, writer.raw(b), right_zero, "right");
  return writer.make(OpKind::MatMul, {left, right}, "product");
}

// A scale of the product: one, or one for each row or column.
Result<Id> product_scale(PrimitiveWriter& writer, size_t i, Id product, bool left) {
  if (!is_wide_float(writer.in(i).dtype))
    return type_error(writer, "scales that are floats", writer.in(i).dtype);
  WARPLOOM_TRY(const Id scale, along_matrix(writer, i, product, left));
  return bits_of(writer.dtype(scale)) == 16 ? writer.cast(scale, Dtype::f32, "scale") : scale;
}

// The type of the output of a quantized operator: that of its zero point.
Dtype output_type(const PrimitiveWriter& writer, size_t zero) {
  return writer.has(zero) ? writer.in(zero).dtype : writer.in(0).dtype;
}
}  // namespace

// A, B, zero points of both.
Result<Outputs> integer_matmul(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Id y, whole_product(writer, 0, 2, 1, 3));
  return Outputs{y};
}

// A, its scale and zero point, B likewise, the scale and zero point of Y.
Result<Outputs> quantized_matmul(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Id whole, whole_product(writer, 0, 2, 3, 5));
  WARPLOOM_TRY(const Id a, product_scale(writer, 1, whole, true));
  WARPLOOM_TRY(const Id b, product_scale(writer, 4, whole, false));
  WARPLOOM_TRY(const Id y_scale, product_scale(writer, 6, whole, true));
  WARPLOOM_TRY(const Id zero, along_matrix(writer, 7, whole, true));
  const Id both = writer.mul(a, b, "both");
  const Id scale = writer.make(OpKind::Div, {both, y_scale}, "scale");
  const Id real = writer.mul(writer.cast(whole, writer.dtype(scale), "real"), scale, "scaled");
  return Outputs{quantized(writer, real, zero, output_type(writer, 7), "y")};
}

namespace {
// A vector with an entry for each channel of the output, or a scalar, of weights or of an output of
// `rank` axes.
Result<Id> by_channel(PrimitiveWriter& writer, size_t i, int64_t channels, size_t rank,
                      size_t axis) {
  if (!writer.has(i)) return kAbsent;
  const Shape given = writer.in(i).shape;
  if (element_count(given) == 1) return writer.reshape(writer.raw(i), {}, "one");
  if (given != Shape{channels})
    return writer.error(kShape, fmt::format("input {} does not fit the channels", i),
                        Shape{channels}, given);
  const Shape apart = with(Shape(rank, 1), axis, channels);
  return writer.reshape(writer.raw(i), apart, "by_channel");
}

// The convolution of input 0 with input `w`, less their zero points, in i32.
Result<Id> whole_conv(PrimitiveWriter& writer, size_t x_zero, size_t w, size_t w_zero) {
  WARPLOOM_CHECK(check_small_integer(writer, 0));
  WARPLOOM_CHECK(check_small_integer(writer, w));
  const Shape weights = writer.in(w).shape;
  if (weights.size() < 3)
    return writer.error(kShape, "the weights have no spatial axes", "3 axes or more", weights);
  Id zero = kAbsent;
  if (writer.has(x_zero)) {
    WARPLOOM_TRY(zero, scalar_input(writer, x_zero, "x_zero"));
  }
  WARPLOOM_TRY(const Id own, by_channel(writer, w_zero, weights[0], weights.size(), 0));
  const Id x = around_zero(writer, writer.raw(0), zero, "x");
  const Id kernel = around_zero(writer, writer.raw(w), own, "weights");
  return writer.make(OpKind::Conv, {x, kernel}, "conv", window_attributes(writer.node));
}
}  // namespace

// X, W, zero points of both.
Result<Outputs> integer_conv(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Id y, whole_conv(writer, 2, 1, 3));
  return Outputs{y};
}

// X, its scale and zero point, W likewise, the scale and zero point of Y, a bias of i32.
Result<Outputs> quantized_conv(PrimitiveWriter& writer) {
  WARPLOOM_TRY(Id whole, whole_conv(writer, 2, 3, 5));
  const Shape weights = writer.in(3).shape;
  const size_t rank = weights.size();
  if (writer.has(8)) {
    if (writer.in(8).dtype != Dtype::i32)
      return type_error(writer, "a bias of i32", writer.in(8).dtype);
    WARPLOOM_TRY(const Id bias, by_channel(writer, 8, weights[0], rank, 1));
    whole = writer.add(whole, bias, "biased");
  }
  WARPLOOM_TRY(const Id x_scale, scalar_input(writer, 1, "x_scale"));
  WARPLOOM_TRY(Id w_scale, by_channel(writer, 4, weights[0], rank, 1));
  WARPLOOM_TRY(const Id y_scale, scalar_input(writer, 6, "y_scale"));
  Id zero = kAbsent;
  if (writer.has(7)) {
    WARPLOOM_TRY(zero, scalar_input(writer, 7, "y_zero"));
  }
  w_scale = writer.cast(w_scale, writer.dtype(x_scale), "w_scale");
  const Id both = writer.mul(x_scale, w_scale, "both");
  const Id scale = writer.make(OpKind::Div, {both, y_scale}, "scale");
  const Id real = writer.mul(writer.cast(whole, writer.dtype(scale), "real"), scale, "scaled");
  return Outputs{quantized(writer, real, zero, output_type(writer, 7), "y")};
}
}  // namespace rewrites
}  // namespace warploom::graph
