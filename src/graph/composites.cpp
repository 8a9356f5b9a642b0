// The rewriting of composites that compute: products, losses, reductions. composite_norms.cpp has
// normalizations, composite_windows.cpp pools and convolutions, composite_moves.cpp what moves
// elements. The rules follow ONNX's definitions.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
Blocks blocks_of(const Shape& x, const Shape& scale) {
  Blocks blocks;
  blocks.fit = scale.size() == x.size();
  for (size_t d = 0; blocks.fit && d < scale.size(); ++d) {
    const int64_t count = scale[d];
    const bool split = count > 1 && count < x[d];
    blocks.of_x.push_back(split ? count : x[d]);
    blocks.of_scale.push_back(count);
    if (count == 0) {
      blocks.fit = x[d] == 0;
      continue;
    }
    blocks.fit = x[d] % count == 0 && (count == 1 || x[d] > 0);
    if (!split || !blocks.fit) continue;
    blocks.of_x.push_back(x[d] / count);
    blocks.of_scale.push_back(1);
  }
  return blocks;
}

Result<Shape> scale_shape(const PrimitiveWriter& writer) {
  const Shape& scale = writer.in(1).shape;
  const Shape& in = writer.in(0).shape;
  const int64_t block = writer.node.integer("block_size");
  Shape shape(in.size(), 1);
  if (block == 0 && element_count(scale) == 1) return shape;
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  if (block == 0) {
    WARPLOOM_CHECK(check_vector(writer, 1, in[axis]));
    shape[axis] = in[axis];
    return shape;
  }
  shape = in;
  shape[axis] = ceil_div(in[axis], block);
  if (scale != shape) {
    const std::string message =
        fmt::format("scales are not of blocks of {} along axis {}", block, axis);
    return writer.error(kShape, message, shape, scale);
  }
  if (in[axis] % block != 0) {
    const std::string message = "the last block is of fewer elements, which is not supported";
    const std::string expected = fmt::format("a multiple of {}", block);
    return writer.error(kShape, message, expected, in[axis], "pad the tensor to whole blocks");
  }
  return shape;
}

namespace rewrites {
namespace {
// x times scales of as many axes, each for a block.
Result<Id> dequantized(PrimitiveWriter& writer, Id x, Id scale, Id zero = kAbsent) {
  const Shape whole = writer.shape(x);
  const Shape scales = writer.shape(scale);
  const Blocks blocks = blocks_of(whole, scales);
  if (!blocks.fit) {
    const std::string message = "scales do not divide what they are for into blocks";
    return writer.error(kShape, message, whole, scales);
  }
  std::vector<Id> inputs = {writer.reshape(x, blocks.of_x, "apart")};
  inputs.push_back(writer.reshape(scale, blocks.of_scale, "scales"));
  if (zero != kAbsent) inputs.push_back(writer.reshape(zero, blocks.of_scale, "zeros"));
  const Id product = writer.make(OpKind::Dequantize, std::move(inputs), "scaled");
  return writer.reshape(product, whole, "whole");
}

Id softmax_along(PrimitiveWriter& writer, Id x, size_t at, bool logarithm) {
  const List axis = span(at, at + 1);
  const Id largest = writer.reduce(OpKind::ReduceMax, x, axis, "max");
  const Id shifted = writer.sub(x, largest, "shifted");
  const Id powers = writer.make(OpKind::Exp, {shifted}, "exp");
  const Id sum = writer.reduce(OpKind::ReduceSum, powers, axis, "sum");
  if (logarithm) return writer.sub(shifted, writer.make(OpKind::Log, {sum}, "log"), "y");
  return writer.mul(powers, writer.make(OpKind::Reciprocal, {sum}, "inverse"), "y");
}
}  // namespace

Result<Outputs> none(PrimitiveWriter& writer) {
  return writer.error(ErrorCode::kInternal, "a primitive is to be rewritten");
}

Result<Outputs> gemm(PrimitiveWriter& writer) {
  const Shape& a_shape = writer.in(0).shape;
  const Shape& b_shape = writer.in(1).shape;
  if (a_shape.size() != 2 || b_shape.size() != 2) {
    const std::string found = to_text(a_shape) + " and " + to_text(b_shape);
    return writer.error(kShape, "Gemm of tensors that are no matrices", "2 axes each", found);
  }
  const auto transposed = [&](size_t i, std::string_view flag) {
    const Id input = writer.raw(i);
    if (writer.node.integer(flag) == 0) return input;
    return writer.make(OpKind::Transpose, {input}, flag);
  };
  const auto times = [&](Id x, std::string_view factor) {
    const double by = writer.node.real(factor);
    if (by == 1) return x;
    const Id value = writer.scalar(by, x, fmt::format("{}_value", factor));
    return writer.mul(x, value, factor);
  };
  const Id a = transposed(0, "transA");
  const Id b = transposed(1, "transB");
  const Id product = writer.make(OpKind::MatMul, {a, b}, "product");
  const Id y = times(product, "alpha");
  if (!writer.has(2) || writer.node.real("beta") == 0) return Outputs{y};
  const Id sum = writer.add(y, times(writer.raw(2), "beta"), "y");
  if (writer.shape(sum) != writer.shape(y)) {
    const std::string message = "C does not stretch to the product's shape";
    const Shape& found = writer.shape(writer.raw(2));
    return writer.error(kShape, message, writer.shape(y), found);
  }
  return Outputs{sum};
}

namespace {
Status check_dequantize(const PrimitiveWriter& writer) {
  const Shape& scale = writer.in(1).shape;
  const int64_t block = writer.node.integer("block_size");
  const int64_t type = writer.node.integer("output_dtype");
  const int64_t scale_type = onnx_type_of(writer.in(1).dtype);
  if (type != 0 && type != scale_type) {
    const std::string message = "the output has another type than the scale";
    return writer.error(kAttribute, message, scale_type, type);
  }
  if (writer.has(2)) {
    const Shape& zero = writer.in(2).shape;
    const bool one = element_count(scale) == 1 && element_count(zero) == 1;
    if (!one && zero != scale)
      return writer.error(kShape, "zero points lie as scales do", scale, zero);
  }
  if (block >= 0) return ok();
  return writer.error(kAttribute, "a block has elements", "block_size of 0, for none, or more",
                      block);
}
}  // namespace

Result<Outputs> dequantize_linear(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_dequantize(writer));
  WARPLOOM_TRY(const Shape shape, scale_shape(writer));
  Id zero = kAbsent;
  if (writer.has(2)) zero = writer.reshape(writer.raw(2), shape, "zero_points");
  const Id scale = writer.reshape(writer.raw(1), shape, "blocks");
  WARPLOOM_TRY(const Id y, dequantized(writer, writer.raw(0), scale, zero));
  return Outputs{y};
}

namespace {
Status check_scaled_operand(const PrimitiveWriter& writer, size_t i) {
  const Dtype dtype = writer.in(i).dtype;
  const bool is_scale = i >= 2;
  const bool is_fp8 = is_float(dtype) && bits_of(dtype) == 8;
  if (!is_scale && dtype != Dtype::i8 && !is_fp8)
    return type_error(writer, "operands e4m3, e5m2 or i8", dtype);
  if (is_scale && dtype != Dtype::f32) return type_error(writer, "scales f32", dtype);
  const Shape& shape = writer.in(i).shape;
  if (shape.size() == 2) return ok();
  return writer.error(kShape, "operands and scales are matrices", "2 axes", shape);
}
}  // namespace

// (a · scale_a) · (b · scale_b), a [M,K], b [K,N] of 8 bits, scales f32 with as many axes.
Result<Outputs> scaled_matmul(PrimitiveWriter& writer) {
  const int64_t type = writer.node.integer("output_dtype");
  const auto known = checked_dtype(type, "ScaledMatMul's output type", writer.place);
  WARPLOOM_TRY(const Dtype to, known);
  if (!is_wide_float(to)) {
    const std::string message = "sums of products are floats";
    return writer.error(kAttribute, message, "output_dtype f32, bf16 or f16", to);
  }
  for (size_t i = 0; i < 4; ++i)
    WARPLOOM_CHECK(check_scaled_operand(writer, i));
  WARPLOOM_TRY(const Id a, dequantized(writer, writer.raw(0), writer.raw(2)));
  WARPLOOM_TRY(const Id b, dequantized(writer, writer.raw(1), writer.raw(3)));
  const Id product = writer.make(OpKind::MatMul, {a, b}, "product");
  return Outputs{writer.cast(product, to, "y")};
}

Result<Outputs> softmax(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_TRY(const size_t at, checked_axis(writer));
  const bool logarithm = writer.node.op == OpKind::LogSoftmax;
  return Outputs{softmax_along(writer, writer.wide(0), at, logarithm)};
}

namespace {
Status check_class_loss(const PrimitiveWriter& writer) {
  const Shape& scores = writer.in(0).shape;
  const Shape& classes = writer.in(1).shape;
  const Dtype dtype = writer.in(0).dtype;
  const bool other_weights = writer.has(2) && writer.in(2).dtype != dtype;
  if (!is_wide_float(dtype) || other_weights) {
    const Dtype found = writer.in(writer.has(2) ? 2 : 0).dtype;
    return type_error(writer, "scores and weights f64, f32, bf16 or f16, alike", found);
  }
  WARPLOOM_CHECK(check_indices(writer));
  const Shape spatial = entries(scores, 2);
  const bool fits = scores.size() >= 2 && classes == chained({scores[0]}, spatial);
  if (!fits) {
    const std::string found = to_text(scores) + " and " + to_text(classes);
    return writer.error(kShape, "classes do not fit the scores", "[N,C,..] and [N,..]", found);
  }
  return check_vector(writer, 2, scores[1]);
}

// The loss of each element, and what it counts; kAbsent: each counts 1.
struct WeightedLoss {
  Id loss = kAbsent;
  Id weight = kAbsent;
};

// The loss and the weight are 0 where the class is `ignore_index`.
void ignore_class(PrimitiveWriter& writer, Id label, Id zero, Id one, WeightedLoss& of) {
  const Id which = writer.reshape(label, writer.in(1).shape, "which");
  const auto index = as_double(writer.node.integer("ignore_index"));
  const Id nobody = writer.scalar(index, which, "nobody");
  const Id ignored = writer.make(OpKind::Equal, {which, nobody}, "ignored");
  of.loss = writer.where(ignored, zero, of.loss, "kept");
  const Id weight = of.weight == kAbsent ? one : of.weight;
  of.weight = writer.where(ignored, zero, weight, "counted");
}

// The mean of the losses, by their weights; their sum; or all of them.
Id reduced_loss(PrimitiveWriter& writer, const WeightedLoss& of, size_t rank) {
  const List all = span(0, rank);
  const std::string reduction = writer.node.text("reduction");
  if (reduction == "none") return of.loss;
  const bool mean = reduction == "mean";
  if (mean && of.weight == kAbsent) return writer.mean(of.loss, all, "y", 0);
  const Id sum = writer.reduce(OpKind::ReduceSum, of.loss, all, "sum", 0);
  if (!mean) return sum;
  const Id share = writer.reduce(OpKind::ReduceSum, of.weight, all, "share", 0);
  return writer.make(OpKind::Div, {sum, share}, "y");
}
}  // namespace

// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss: of logarithms [N,C,..] those of the classes
// [N,..], negative and weighted. What a class picks is found by comparing, which reads the scores
// once.
Result<Outputs> class_loss(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_class_loss(writer));
  const Shape scores = writer.in(0).shape;
  const size_t rank = scores.size();
  const Id x = writer.wide(0);
  const Id zero = writer.scalar(0, x, "zero");
  const Id one = writer.scalar(1, x, "one");
  const bool soft = writer.node.op == OpKind::SoftmaxCrossEntropyLoss;
  const Id logs = soft ? softmax_along(writer, x, 1, true) : x;
  const Shape label_shape = chained({scores[0], 1}, entries(scores, 2));
  const Id whole_label = writer.cast(writer.raw(1), Dtype::i64, "label");
  const Id label = writer.reshape(whole_label, label_shape, "labels");
  const Shape along_classes = with(Shape(rank - 1, 1), 0, scores[1]);
  const Id classes = writer.places(along_classes, "class");
  const Id hit = writer.make(OpKind::Equal, {label, classes}, "hit");
  const auto picked = [&](Id values, std::string_view what) {
    const Id of_class = writer.where(hit, values, zero, what);
    return writer.reduce(OpKind::ReduceSum, of_class, {1}, what, 0);
  };
  WeightedLoss result;
  result.loss = writer.make(OpKind::Neg, {picked(logs, "picked")}, "loss");
  if (writer.has(2)) {
    const Id weights = writer.along_channels(writer.wide(2), rank, "weights");
    result.weight = picked(weights, "weight");
    result.loss = writer.mul(result.loss, result.weight, "weighted");
  }
  if (writer.node.attributes.contains("ignore_index"))
    ignore_class(writer, label, zero, one, result);
  const Id y = reduced_loss(writer, result, rank - 1);
  if (!soft) return Outputs{y};
  return Outputs{y, writer.cast(logs, writer.in(0).dtype, "log_prob")};
}

Result<Outputs> reduce(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const List axes, reduced_axes(writer));
  const int64_t keepdims = writer.keepdims();
  const Id x = writer.raw(0);
  const Id y = writer.reduce(writer.node.op, x, axes, "y", keepdims);
  return Outputs{y};
}

namespace {
double largest_finite(Dtype dtype) {
  if (dtype == Dtype::f64) return std::numeric_limits<double>::max();
  return as_double(std::numeric_limits<float>::max());
}

// The largest along the axes, and finite: infinities stay what they are, because an infinite
// largest element is not subtracted.
Id finite_largest(PrimitiveWriter& writer, Id x, const List& axes) {
  const double finite = largest_finite(writer.dtype(x));
  const Id largest = writer.reduce(OpKind::ReduceMax, x, axes, "max");
  const Id least = writer.scalar(-finite, x, "least");
  const Id most = writer.scalar(finite, x, "most");
  return writer.make(OpKind::Clip, {largest, least, most}, "finite");
}
}  // namespace

// Reductions of a function, and functions of reductions.
Result<Outputs> reduce_through(PrimitiveWriter& writer) {
  Id x = writer.wide(0);
  Id top = kAbsent;
  WARPLOOM_TRY(const List axes, reduced_axes(writer));
  const OpKind op = writer.node.op;
  const bool by_powers = op == OpKind::ReduceLogSumExp;
  const bool mean = op == OpKind::ReduceMean;
  if (mean && !is_float(writer.dtype(x)))
    return type_error(writer, "f64, f32, bf16 or f16", writer.dtype(x));
  if (mean) return Outputs{writer.mean(x, axes, "y", writer.keepdims())};
  if (op == OpKind::ReduceL1) x = writer.make(OpKind::Abs, {x}, "abs");
  if (op == OpKind::ReduceL2 || op == OpKind::ReduceSumSquare) x = writer.mul(x, x, "square");
  if (by_powers) {
    top = finite_largest(writer, x, axes);
    x = writer.make(OpKind::Exp, {writer.sub(x, top, "shifted")}, "exp");
  }
  Id y = writer.reduce(OpKind::ReduceSum, x, axes, "sum", writer.keepdims());
  if (op == OpKind::ReduceL2) y = writer.make(OpKind::Sqrt, {y}, "root");
  if (op == OpKind::ReduceLogSum || by_powers) y = writer.make(OpKind::Log, {y}, "log");
  if (!by_powers) return Outputs{y};
  const Id largest = writer.reshape(top, writer.shape(y), "top");
  return Outputs{writer.add(y, largest, "y")};
}

// The first, or last, place where the input is its largest; a NaN counts as larger, and smaller,
// than all else.
Result<Outputs> arg_extreme(PrimitiveWriter& writer) {
  const Id x = writer.raw(0);
  WARPLOOM_TRY(const List axis, reduced_axes(writer));
  const Shape line = entries(writer.shape(x), axis[0]);
  if (line[0] == 0) {
    const std::string expected = "1 element or more along the axis";
    return writer.error(kShape, "the largest of nothing", expected, writer.shape(x));
  }
  const bool largest = writer.node.op == OpKind::ArgMax;
  const OpKind extreme = largest ? OpKind::ReduceMax : OpKind::ReduceMin;
  const Id best = writer.reduce(extreme, x, axis, "best");
  Id found = writer.make(OpKind::Equal, {x, best}, "equal");
  if (is_float(writer.dtype(x))) {
    const Id nan = writer.make(OpKind::IsNaN, {x}, "nan");
    found = writer.make(OpKind::Or, {found, nan}, "found");
  }
  const bool last = writer.node.integer("select_last_index") != 0;
  const Shape column = with(Shape(line.size(), 1), 0, line[0]);
  const Id place = writer.places(column, "places");
  const double nowhere = last ? -1 : as_double(line[0]);
  const Id none = writer.constant(Dtype::i64, {}, {nowhere}, "none");
  const Id where = writer.where(found, place, none, "where");
  const OpKind choice = last ? OpKind::ReduceMax : OpKind::ReduceMin;
  return Outputs{writer.reduce(choice, where, axis, "y", writer.keepdims())};
}
}  // namespace rewrites
}  // namespace warploom::graph
