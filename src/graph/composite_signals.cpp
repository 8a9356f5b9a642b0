// The rewriting of Fourier transforms, which are products with matrices that the lengths give, and
// of what goes with them.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
constexpr int64_t kMostOfMatrix = int64_t{1} << 24;  // elements

// One axis of a transform: numbers of one part or two, a real and an imaginary one.
struct Transform {
  int64_t length = 0;  // N
  int64_t inputs = 0;  // of the axis, from the first on; further ones count as 0
  int64_t outputs = 0;
  int64_t parts = 1;  // of an input
  int64_t made = 2;   // of an output
  bool inverse = false;
  bool halves = false;  // the inputs are half of a spectrum whose other half mirrors them

  // What part `from` of input t gives to part `to` of output k.
  double entry(int64_t t, int64_t from, int64_t k, int64_t to) const {
    const double turn = as_double(t * k % length) / as_double(length);
    const double angle = 2 * std::numbers::pi * turn * (inverse ? 1 : -1);
    // (a + bi)(cos + i sin): the real part of a real input, and so on.
    double value = from == to ? std::cos(angle) : std::sin(angle);
    if (from == 1 && to == 0) value = -value;
    if (inverse) value /= as_double(length);
    const bool mirrored = halves && t != 0 && 2 * t != length;
    return mirrored ? 2 * value : value;
  }
};

// x [.., n, parts] along its axis before the last: [.., outputs, made].
Result<Id> transformed(PrimitiveWriter& writer, Id x, const Transform& of) {
  const size_t rank = writer.rank(x);
  const int64_t rows = of.inputs * of.parts;
  const int64_t columns = of.outputs * of.made;
  if (rows * columns > kMostOfMatrix)
    return writer.error(ErrorCode::kOnnxTooLarge, "a transform is too long",
                        fmt::format("matrices of at most {} elements", kMostOfMatrix),
                        fmt::format("{} x {}", rows, columns),
                        "split it into shorter ones outside the operator");
  const Id used = part_of(writer, x, rank - 2, 0, of.inputs, "used");
  Shape shape = entries(writer.shape(used), 0, rank - 2);
  const Id lines = writer.reshape(used, chained(shape, {rows}), "lines");
  const auto element = [&](int64_t i) {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    return of.entry(row / of.parts, row % of.parts, column / of.made, column % of.made);
  };
  const Id matrix = writer.table(writer.dtype(x), {rows, columns}, "turns", element);
  const Id product = writer.make(OpKind::MatMul, {lines, matrix}, "transformed");
  return writer.reshape(product, chained(shape, {of.outputs, of.made}), "parts");
}

// A whole number of one element that the model knows.
Result<int64_t> known_number(const NodeContext& context, size_t i, std::string_view what) {
  const auto value = constant_scalar(context.graph, context.node.inputs[i]);
  if (value) return as_int64(*value);
  return context.error(ErrorCode::kOnnxDynamicShape,
                       fmt::format("{} is not known from the model", what), "a constant scalar",
                       context.in(i), "export the model with fixed shapes");
}

Status check_signal(const NodeContext& context, size_t least) {
  WARPLOOM_CHECK(check_number(context, 0, true));
  const Shape& x = context.in(0).shape;
  const bool fits = x.size() >= least && (x.back() == 1 || x.back() == 2);
  if (fits) return ok();
  return context.error(kShape, "a signal has parts along its last axis", "[..,1] or [..,2]", x);
}

// The axis before the last one exchanged with another.
Id exchanged(PrimitiveWriter& writer, Id x, size_t axis, std::string_view what) {
  const size_t rank = writer.rank(x);
  if (axis == rank - 2) return x;
  List order = span(0, rank);
  std::swap(order[axis], order[rank - 2]);
  return writer.make(OpKind::Transpose, {x}, what, {{"perm", order}});
}
}  // namespace

// x [.., n, .., parts] along one axis, whole or the half that tells all.
Result<Outputs> dft(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_signal(writer, 2));
  const Shape x = writer.in(0).shape;
  int64_t named = writer.node.integer("axis", -2);
  if (writer.has(2)) {
    WARPLOOM_TRY(named, known_number(writer, 2, "the axis"));
  }
  WARPLOOM_TRY(const int at, normalized_axis(named, x.size(), writer.place));
  const auto axis = as_size(at);
  if (axis == x.size() - 1)
    return writer.error(kAttribute, "a transform along the parts", "another axis", named);
  Transform of;
  const bool onesided = writer.node.integer("onesided") != 0;
  of.inverse = writer.node.integer("inverse") != 0;
  of.halves = of.inverse && onesided;
  of.parts = x.back();
  of.length = of.halves ? 2 * (x[axis] - 1) : x[axis];
  if (writer.has(1)) {
    WARPLOOM_TRY(of.length, known_number(writer, 1, "dft_length"));
  }
  if (of.length < 1)
    return writer.error(kShape, "a transform of nothing", "a length of 1 or more", of.length);
  if (onesided && !of.inverse && of.parts == 2)
    return writer.error(kAttribute, "half of the spectrum of complex numbers does not tell all",
                        "onesided 0, or numbers of one part", "onesided 1");
  const int64_t half = of.length / 2 + 1;
  of.inputs = std::min(x[axis], of.halves ? half : of.length);
  of.outputs = onesided && !of.inverse ? half : of.length;
  of.made = of.halves ? 1 : 2;
  const Id lines = exchanged(writer, writer.wide(0), axis, "lines");
  WARPLOOM_TRY(const Id y, transformed(writer, lines, of));
  return Outputs{exchanged(writer, y, axis, "y")};
}

// Transforms of frames that overlap: signal [B,L,parts], step, window, frame length.
Result<Outputs> stft(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_signal(writer, 3));
  const Shape x = writer.in(0).shape;
  if (x.size() != 3) return writer.error(kShape, "a signal has other axes", "[B,L,parts]", x);
  WARPLOOM_TRY(const int64_t step, known_number(writer, 1, "frame_step"));
  Transform of;
  of.length = x[1];
  int64_t window = 0;
  if (writer.has(2)) {
    if (writer.in(2).dtype != writer.in(0).dtype || writer.in(2).shape.size() != 1)
      return type_error(writer, "a window that is a list of the signal's type", writer.in(2));
    window = writer.in(2).shape[0];
    of.length = window;
  }
  if (writer.has(3)) {
    WARPLOOM_TRY(of.length, known_number(writer, 3, "frame_length"));
  }
  if (window == 0) window = of.length;
  if (step < 1 || of.length < 1 || window > x[1] || window > of.length)
    return writer.error(kShape, "frames do not fit the signal",
                        fmt::format("1 to {} elements, a step of 1 or more", x[1]),
                        fmt::format("{} of {} by {}", window, of.length, step));
  const int64_t frames = 1 + (x[1] - of.length) / step;
  of.parts = x[2];
  of.inputs = window;
  const bool onesided = writer.node.integer("onesided") != 0 && of.parts == 1;
  of.outputs = onesided ? of.length / 2 + 1 : of.length;
  const auto from = [&](int64_t i) { return i / window * step + i % window; };
  const Id places = writer.table(Dtype::i64, {frames, window}, "from", from);
  const int64_t along = 1;
  Id all = writer.make(OpKind::Gather, {writer.wide(0), places}, "frames", {{"axis", along}});
  if (writer.has(2)) {
    const Id weights = writer.reshape(writer.wide(2), {window, 1}, "window");
    all = writer.mul(all, weights, "weighted");
  }
  WARPLOOM_TRY(const Id y, transformed(writer, all, of));
  return Outputs{y};
}

namespace {
Result<Dtype> window_type(const NodeContext& context) {
  const auto known =
      checked_dtype(context.node.integer("output_datatype", 1), "a window's type", context.place);
  WARPLOOM_TRY(const Dtype type, known);
  if (is_wide_float(type)) return type;
  return type_error(context, "f64, f32, bf16 or f16", type);
}
}  // namespace

// HannWindow, HammingWindow, BlackmanWindow: sums of cosines.
Result<Outputs> cosine_window(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Dtype type, window_type(writer));
  WARPLOOM_TRY(const int64_t size, known_number(writer, 0, "a window's size"));
  if (size < 1 || size > kMostOfMatrix)
    return writer.error(kShape, "a window cannot be so long", "1 or more", size);
  std::array<double, 3> weights = {0.5, -0.5, 0};
  if (writer.node.op == OpKind::HammingWindow) weights = {25.0 / 46, -21.0 / 46, 0};
  if (writer.node.op == OpKind::BlackmanWindow) weights = {0.42, -0.5, 0.08};
  const int64_t period =
      writer.node.integer("periodic") != 0 ? size : std::max<int64_t>(size - 1, 1);
  const auto element = [&](int64_t i) {
    const double turn = 2 * std::numbers::pi * as_double(i) / as_double(period);
    return weights[0] + weights[1] * std::cos(turn) + weights[2] * std::cos(2 * turn);
  };
  return Outputs{writer.table(type, {size}, "window", element)};
}

namespace {
double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}

// Bins of a spectrum at which the triangles of mel bins begin, peak and end.
List mel_edges(int64_t bins, int64_t length, double rate, double low, double high) {
  const double step = (mel_of(high) - mel_of(low)) / as_double(bins + 2);
  List edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double mel = as_double(i) * step + mel_of(low);
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    edges.push_back(as_int64(std::floor(as_double(length + 1) * hertz / rate)));
  }
  return edges;
}

double mel_weight(const List& edges, int64_t bin, int64_t at) {
  const int64_t low = edges[bin];
  const int64_t peak = edges[bin + 1];
  const int64_t high = edges[bin + 2];
  if (at >= peak && at < high) return as_double(high - at) / as_double(high - peak);
  if (at == peak) return 1;
  if (at < low || at > peak) return 0;
  return as_double(at - low) / as_double(peak - low);
}
}  // namespace

// Triangles of mel bins over a spectrum's: [length / 2 + 1, bins].
Result<Outputs> mel_weights(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Dtype type, window_type(writer));
  std::array<double, 5> given{};
  for (size_t i = 0; i < given.size(); ++i) {
    const auto value = constant_scalar(writer.graph, writer.raw(i));
    if (!value)
      return writer.error(ErrorCode::kOnnxDynamicShape,
                          "a number of a MelWeightMatrix is not known from the model",
                          "a constant scalar", writer.in(i), "export the model with fixed numbers");
    given[i] = *value;
  }
  const int64_t bins = as_int64(given[0]);
  const int64_t length = as_int64(given[1]);
  const bool fits =
      bins >= 1 && length >= 1 && given[2] > 0 && given[3] >= 0 && given[4] > given[3];
  const int64_t rows = length / 2 + 1;
  if (!fits || rows > kMostOfMatrix / bins)
    return writer.error(kShape, "mel bins cannot be laid so",
                        "numbers of 1 or more, edges in ascending order",
                        fmt::format("{} bins, length {}, rate {}, {} to {}", bins, length, given[2],
                                    given[3], given[4]));
  const List edges = mel_edges(bins, length, given[2], given[3], given[4]);
  const auto element = [&](int64_t i) { return mel_weight(edges, i % bins, i / bins); };
  return Outputs{writer.table(type, {rows, bins}, "weights", element)};
}
}  // namespace warploom::graph::rewrites
