// The rewriting of operators that move elements, know them from constants, look them up where data
// say, or only change types.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
Result<Outputs> split(PrimitiveWriter& writer) {
  const Id x = writer.raw(0);
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const int64_t size = writer.shape(x)[axis];
  const int64_t count = std::ssize(writer.node.outputs);
  const int64_t part = ceil_div(size, count);
  if (writer.node.integer("num_outputs", count) != count)
    return writer.error(kAttribute, "num_outputs differs from the outputs", count,
                        writer.node.integer("num_outputs"));
  List parts(writer.node.outputs.size(), part);
  parts.back() = size - part * (count - 1);  // the last may be smaller
  if (writer.has(1)) {
    WARPLOOM_TRY(parts, list(writer, 1, "the list of parts", std::numeric_limits<int>::max()));
  }
  const bool fit = std::ranges::all_of(parts, [&](int64_t p) { return p >= 0 && p <= size; });
  const int64_t sum = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  if (!fit || std::ssize(parts) != count || sum != size) {
    const std::string expected = fmt::format("{} parts of {}", count, size);
    return writer.error(kShape, "the parts of a Split do not make up the axis", expected, parts);
  }
  Outputs made;
  int64_t end = 0;
  for (const int64_t of : parts) {
    const Id from = writer.list({end}, "start");
    end += of;
    const Id to = writer.list({end}, "end");
    const Id on = writer.list(span(axis, axis + 1), "axis");
    made.push_back(writer.make(OpKind::Slice, {x, from, to, on}, "part"));
  }
  return made;
}

// [a,b] repeated r, s times: [1,a,1,b] expanded to [r,a,s,b].
Result<Outputs> tile(PrimitiveWriter& writer) {
  const Id x = writer.raw(0);
  WARPLOOM_TRY(const List repeats, list(writer, 1, "the list of repeats"));
  Shape apart;
  Shape repeated;
  Shape whole = writer.shape(x);
  const auto is_negative = [](int64_t repeat) { return repeat < 0; };
  if (repeats.size() != whole.size() || std::ranges::any_of(repeats, is_negative)) {
    const std::string expected = fmt::format("{} entries of 0 or more", whole.size());
    return writer.error(kShape, "the repeats do not fit the axes", expected, repeats);
  }
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] != 1) {
      apart.push_back(1);
      repeated.push_back(repeats[i]);
    }
    apart.push_back(whole[i]);
    repeated.push_back(whole[i]);
    if (whole[i] > 0 && repeats[i] > kMaxElements / whole[i]) {
      const std::string expected = fmt::format("at most {}", kMaxElements);
      return writer.error(ErrorCode::kOnnxTooLarge, "a tensor has too many elements", expected,
                          repeats);
    }
    whole[i] *= repeats[i];
  }
  const Id in_parts = writer.reshape(x, apart, "apart");
  const Id shape = writer.list(repeated, "repeats");
  const Id expanded = writer.make(OpKind::Expand, {in_parts, shape}, "repeated");
  return Outputs{writer.reshape(expanded, whole, "y")};
}

// DepthToSpace, SpaceToDepth.
Result<Outputs> blocks(PrimitiveWriter& writer) {
  constexpr int64_t kMostBlock = 1 << 15;
  const Id x = writer.raw(0);
  const Shape in = writer.shape(x);
  const int64_t b = writer.node.integer("blocksize");
  const std::string mode = writer.node.attribute<std::string>("mode", "DCR");
  if (b < 1 || b > kMostBlock)
    return writer.error(kAttribute, "blocksize has an unfit value", "1 or more", b);
  const bool spread = writer.node.op == OpKind::DepthToSpace;
  const auto fits = [&] {
    if (in.size() != 4) return false;
    return spread ? in[1] % (b * b) == 0 : in[2] % b == 0 && in[3] % b == 0;
  };
  if (!fits()) {
    const std::string expected = fmt::format("4 axes, with blocks of {}", b);
    return writer.error(kShape, "blocks do not fit the input", expected, in);
  }
  const int64_t depth = in[1] / (b * b);
  Shape apart = {in[0], in[1], in[2] / b, b, in[3] / b, b};
  Shape to = {in[0], in[1] * b * b, in[2] / b, in[3] / b};
  List order = {0, 3, 5, 1, 2, 4};
  if (mode == "CRD") order = {0, 1, 3, 5, 2, 4};
  if (spread) {
    to = {in[0], depth, in[2] * b, in[3] * b};
    if (mode == "DCR") {
      apart = {in[0], b, b, depth, in[2], in[3]};
      order = {0, 3, 4, 1, 5, 2};
    } else {
      apart = {in[0], depth, b, b, in[2], in[3]};
      order = {0, 1, 4, 2, 5, 3};
    }
  }
  const Id in_parts = writer.reshape(x, apart, "apart");
  const Id turned = writer.make(OpKind::Transpose, {in_parts}, "turned", {{"perm", order}});
  return Outputs{writer.reshape(turned, to, "y")};
}

Result<Outputs> trilu(PrimitiveWriter& writer) {
  const Id x = writer.raw(0);
  if (writer.rank(x) < 2)
    return writer.error(kShape, "a triangle of no matrix", "2 axes or more", writer.shape(x));
  List diagonal = {0};
  if (writer.has(1)) {
    WARPLOOM_TRY(diagonal, list(writer, 1, "the diagonal"));
  }
  if (diagonal.size() != 1)
    return writer.error(kShape, "the diagonal is no scalar", "[]", writer.in(1).shape);
  const Shape matrix(writer.shape(x).end() - 2, writer.shape(x).end());
  // By comparing places: no mask is stored.
  const auto on_diagonal = [&](int64_t i) { return i + diagonal[0]; };
  const Id row = writer.table(Dtype::i64, {matrix[0], 1}, "row", on_diagonal);
  const Id column = writer.places({matrix[1]}, "column");
  const bool upper = writer.node.integer("upper") != 0;
  const OpKind compare = upper ? OpKind::GreaterOrEqual : OpKind::LessOrEqual;
  const Id mask = writer.make(compare, {column, row}, "mask");
  const Id zero = writer.scalar(0, x, "zero");
  return Outputs{writer.where(mask, x, zero, "y")};
}

Result<Outputs> range(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, false));
  std::array<double, 3> bounds{};  // begin, end, step
  for (size_t i = 0; i < 3; ++i) {
    const auto value = constant_scalar(writer.graph, writer.raw(i));
    if (!value) {
      const std::string message = "a bound of a Range is not known from the model";
      return writer.error(ErrorCode::kOnnxDynamicShape, message, "a constant scalar", writer.in(i),
                          "export the model with fixed shapes");
    }
    bounds[i] = *value;
  }
  const double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (std::isnan(count) || count > as_double(kMaxElements)) {
    const std::string found = fmt::format("{}", fmt::join(bounds, ", "));
    return writer.error(kShape, "a Range has no end", "bounds and a step of a finite list", found);
  }
  const Shape shape = {as_int64(std::max(count, 0.0))};
  const auto element = [&](int64_t i) { return bounds[0] + as_double(i) * bounds[2]; };
  return Outputs{writer.table(writer.in(0).dtype, shape, "y", element)};
}

// Exclusive: prefixes of the elements moved on by one, a 0 before the first.
Result<Outputs> cum_sum(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const InferredOutput output, operator_of(writer.node.op).rule(writer));
  const int64_t reverse = writer.node.integer("reverse");
  const int64_t by = reverse != 0 ? -1 : 1;
  const size_t axis = whole_axis(*output.reads[0]);
  const Id x = writer.raw(0);
  const List none(writer.rank(x));
  const Id zero = writer.scalar(0, x, "zero");
  const List before = with(none, axis, by);
  const List after = with(none, axis, -by);
  const Id moved = writer.pad(x, before, after, zero, "moved");
  const Id on = writer.raw(1);
  const Id y = writer.make(OpKind::CumSum, {moved, on}, "y", {{"reverse", reverse}});
  return Outputs{y};
}

namespace {
// The place on an axis of `size` elements that a Pad reads for place `at`, which may lie outside.
int64_t padded_from(const std::string& mode, int64_t at, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  const int64_t period = mode == "wrap" ? size : std::max<int64_t>(1, 2 * size - 2);
  const int64_t within = (at % period + period) % period;
  return within < size ? within : period - within;
}
}  // namespace

// Pads and value given, for every axis.
Result<Outputs> pad(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const InferredOutput output, operator_of(writer.node.op).rule(writer));
  const Id x = writer.raw(0);
  const bool has_value = writer.has(2);
  Id value = kAbsent;
  if (has_value)
    value = writer.reshape(writer.raw(2), {}, "value");
  else
    value = writer.scalar(0, x, "value");
  List before;
  List after;
  for (size_t i = 0; i < output.shape.size(); ++i) {
    const AxisSource& source = (*output.reads[0])[i];
    const int64_t added = output.shape[i] - writer.shape(x)[i];
    before.push_back(-source.begin);
    after.push_back(added - before.back());
  }
  const std::string mode = writer.node.attribute<std::string>("mode", "constant");
  if (mode == "constant") {
    const Id pads = writer.list(chained(before, after), "pads");
    return Outputs{writer.make(OpKind::Pad, {x, pads, value}, "y")};
  }
  Id y = x;  // of elements of its own, found along one axis after another
  for (size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    const int64_t size = writer.shape(x)[axis];
    const auto from = [&](int64_t to) { return padded_from(mode, to - before[axis], size); };
    const Id places = writer.table(Dtype::i64, {output.shape[axis]}, "from", from);
    const auto along = as_int64(axis);
    y = writer.make(OpKind::Gather, {y, places}, "padded", {{"axis", along}});
  }
  return Outputs{y};
}

Result<Outputs> dropout(PrimitiveWriter& writer) {  // nothing is dropped
  const Id x = writer.raw(0);
  WARPLOOM_CHECK(check_number(writer, 0, true));
  const bool never = writer.has(1) && constant_scalar(writer.graph, writer.raw(1)) == 0.0;
  if (writer.has(2) && !never) {
    const auto training = constant_integers(writer.graph, writer.raw(2));
    const bool infers = training && training->size() == 1 && training->front() == 0;
    if (!infers) {
      const std::string message = "Dropout in training mode is random and not supported";
      const std::string found = training ? "true" : "a value not known from the model";
      return writer.error(kAttribute, message, "training_mode false", found,
                          "export for inference");
    }
  }
  const Id kept = writer.constant(Dtype::boolean, {}, {1}, "kept");
  const Id shape = writer.list(writer.shape(x), "shape");
  return Outputs{x, writer.make(OpKind::Expand, {kept, shape}, "mask")};
}

Result<Outputs> shape_of(PrimitiveWriter& writer) {
  const Shape& shape = writer.shape(writer.raw(0));
  const int64_t rank = std::ssize(shape);
  if (writer.node.op == OpKind::Size) {
    const auto elements = as_double(element_count(shape));
    return Outputs{writer.constant(Dtype::i64, {}, {elements}, "y")};
  }
  const auto clamped = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const int64_t begin = clamped(writer.node.integer("start"));
  const int64_t end = std::max(begin, clamped(writer.node.integer("end", rank)));
  const List sizes(shape.begin() + begin, shape.begin() + end);
  return Outputs{writer.list(sizes, "y")};
}

Result<Outputs> cast_like(PrimitiveWriter& writer) {
  const int64_t to = onnx_type_of(writer.dtype(writer.raw(1)));
  const int64_t saturate = writer.node.integer("saturate", 1);
  const std::map<std::string, Attribute> attributes = {{"to", to}, {"saturate", saturate}};
  return Outputs{writer.make(OpKind::Cast, {writer.raw(0)}, "y", attributes)};
}
}  // namespace warploom::graph::rewrites
