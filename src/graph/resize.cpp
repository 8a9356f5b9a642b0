// The rewriting of Resize: interpolation, one axis after another. An output is a sum of inputs at
// known places, each times a known weight.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
// One axis of `size` elements, resized to `length`.
struct Along {
  std::string mode;
  std::string transformation;
  std::string nearest;
  double cubic = 0;       // the coefficient a of Keys' cubic (IEEE Trans. ASSP 29, 1981)
  bool excludes = false;  // places outside the axis get no weight
  double size = 0;
  double scale = 1;
  int64_t length = 0;

  int taps() const {
    if (mode == "nearest") return 1;
    return mode == "linear" ? 2 : 4;
  }

  double place(int64_t to) const {  // of an output, in the input
    const auto at = as_double(to);
    const auto all = as_double(length);
    if (transformation == "asymmetric") return at / scale;
    if (transformation == "align_corners")
      return length == 1 ? 0 : at * (size - 1) / (size * scale - 1);
    if (transformation == "pytorch_half_pixel" && length == 1) return 0;
    const double middle = (at + 0.5) / scale - 0.5;
    if (transformation != "half_pixel_symmetric") return middle;
    return middle + size / 2 * (1 - all / (size * scale));
  }

  double tap(int64_t to, int t) const {  // its t-th input, which may lie outside
    const double at = place(to);
    const int before = taps() / 2 - 1;
    if (taps() > 1) return std::floor(at) + t - before;
    if (nearest == "floor") return std::floor(at);
    if (nearest == "ceil") return std::ceil(at);
    return nearest == "round_prefer_floor" ? std::ceil(at - 0.5) : std::floor(at + 0.5);
  }

  double from(int64_t to, int t) const { return std::clamp(tap(to, t), 0.0, size - 1); }

  double weight(int64_t to, int t) const {
    double all = 0;
    for (int other = 0; other < taps(); ++other)
      all += share(to, other);
    return share(to, t) / all;
  }

 private:
  double share(int64_t to, int t) const {
    const double at = tap(to, t);
    const double off = std::fabs(place(to) - at);
    const double a = cubic;
    if (excludes && (at < 0 || at >= size)) return 0;
    if (taps() == 2) return 1 - off;
    if (off <= 1) return ((a + 2) * off - (a + 3)) * off * off + 1;
    if (off >= 2) return 0;
    return ((a * off - 5 * a) * off + 8 * a) * off - 4 * a;
  }
};

Along along_of(const Node& node) {
  Along along;
  along.mode = node.text("mode");
  along.transformation = node.text("coordinate_transformation_mode");
  along.nearest = node.text("nearest_mode");
  along.cubic = node.real("cubic_coeff_a");
  along.excludes = node.integer("exclude_outside") != 0;
  return along;
}

// x resized along one axis, of which the result has `along.length` elements.
Id resized(PrimitiveWriter& writer, Id x, const Along& along, size_t axis, size_t rank) {
  std::map<std::string, Attribute> on_axis;
  on_axis["axis"] = as_int64(axis);
  const Shape column = with(Shape(rank, 1), axis, along.length);
  Id sum = kAbsent;
  for (int t = 0; t < along.taps(); ++t) {
    const auto place = [&](int64_t to) { return along.from(to, t); };
    const Id from = writer.table(Dtype::i64, {along.length}, "from", place);
    Id part = writer.make(OpKind::Gather, {x, from}, "taken", on_axis);
    if (along.taps() > 1) {
      const auto weight = [&](int64_t to) { return along.weight(to, t); };
      const Id weights = writer.table(writer.dtype(x), column, "weight", weight);
      part = writer.mul(part, weights, "part");
    }
    sum = sum == kAbsent ? part : writer.add(sum, part, "sum");
  }
  return sum;
}
}  // namespace

Result<Outputs> resize(PrimitiveWriter& writer) {
  Along along = along_of(writer.node);
  Shape shape = writer.in(0).shape;
  // In the order of the scales.
  const bool has_axes = writer.node.attributes.contains("axes");
  const List on = has_axes ? writer.node.integers("axes") : span(0, shape.size());
  WARPLOOM_CHECK(axes(writer, on, shape.size()));
  const auto given = [&](size_t i) {
    return writer.has(i) && element_count(writer.in(i).shape) > 0;
  };
  const bool sized = given(3);
  if (given(2) == sized)
    return writer.error(kShape, "a Resize by scales or by sizes", "one of the two",
                        sized ? "both" : "none");
  const Tensor by = writer.in(sized ? 3 : 2);
  if (!by.constant) {
    const std::string message = "a size of a Resize is not known from the model";
    return writer.error(ErrorCode::kOnnxDynamicShape, message, "constant scales or sizes", by,
                        "export the model with fixed shapes");
  }
  if (by.shape != Shape{std::ssize(on)})
    return writer.error(kShape, "scales or sizes do not fit the axes", Shape{std::ssize(on)},
                        by.shape);
  if (along.taps() > 1 && !is_wide_float(writer.in(0).dtype))
    return type_error(writer, "f64, f32, bf16 or f16 between places", writer.in(0).dtype);
  TensorId x = along.taps() == 1 ? writer.raw(0) : writer.wide(0);
  for (size_t i = 0; i < on.size(); ++i) {
    const auto known_axis = normalized_axis(on[i], shape.size(), writer.place);
    const auto axis = as_size(*known_axis);
    const double value = load_as_double(by.dtype, by.constant->data(), i);
    along.size = as_double(shape[axis]);
    along.scale = sized ? value / along.size : value;
    const double length = sized ? value : std::floor(along.size * along.scale);
    const bool fits = length >= 1 && length <= as_double(kMaxElements);
    if (!fits || !(along.size > 0)) {
      const std::string expected = "an axis of 1 or more, to 1 or more";
      const std::string found = fmt::format("{} by {}", along.size, value);
      return writer.error(kShape, "an axis cannot be resized so", expected, found);
    }
    along.length = as_int64(length);
    if (along.length == shape[axis] && along.scale == 1) continue;
    shape[axis] = along.length;
    x = resized(writer, x, along, axis, shape.size());
  }
  return Outputs{x};
}
}  // namespace warploom::graph::rewrites
