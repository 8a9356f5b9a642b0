// The rewriting of Resize: interpolation, one axis after another. An output is a sum of inputs at
// known places, each times a known weight.
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

  int taps() const { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }

  double place(int64_t to) const {  // of an output, in the input
    const auto at = static_cast<double>(to);
    const auto all = static_cast<double>(length);
    if (transformation == "asymmetric") return at / scale;
    if (transformation == "align_corners")
      return length == 1 ? 0 : at * (size - 1) / (size * scale - 1);
    if (transformation == "pytorch_half_pixel" && length == 1) return 0;
    const double middle = (at + 0.5) / scale - 0.5;
    return transformation == "half_pixel_symmetric" ? middle + size / 2 * (1 - all / (size * scale))
                                                    : middle;
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
    for (int other = 0; other < taps(); ++other) all += share(to, other);
    return share(to, t) / all;
  }

 private:
  double share(int64_t to, int t) const {
    const double at = tap(to, t);
    const double off = std::fabs(place(to) - at);
    const double a = cubic;
    if (excludes && (at < 0 || at >= size)) return 0;
    if (taps() == 2) return 1 - off;
    return off <= 1  ? ((a + 2) * off - (a + 3)) * off * off + 1
           : off < 2 ? ((a * off - 5 * a) * off + 8 * a) * off - 4 * a
                     : 0;
  }
};
}  // namespace

Result<Outputs> resize(Writer& w) {
  Along along{w.node.text("mode"), w.node.text("coordinate_transformation_mode"),
              w.node.text("nearest_mode"), w.node.real("cubic_coeff_a"),
              w.node.integer("exclude_outside") != 0};
  Shape shape = w.in(0).shape;
  // In the order of the scales.
  const List on =
      w.node.attributes.contains("axes") ? w.node.integers("axes") : span(0, shape.size());
  WARPLOOM_CHECK(axes(w, on, shape.size()));
  const auto given = [&](size_t i) { return w.has(i) && element_count(w.in(i).shape) > 0; };
  const bool sized = given(3);
  if (given(2) == sized)
    return w.error(kShape, "a Resize by scales or by sizes", "one of the two",
                   sized ? "both" : "none");
  const Tensor by = w.in(sized ? 3 : 2);
  if (!by.constant)
    return w.error(ErrorCode::kOnnxDynamicShape, "a size of a Resize is not known from the model",
                   "constant scales or sizes", by, "export the model with fixed shapes");
  if (by.shape != Shape{std::ssize(on)})
    return w.error(kShape, "scales or sizes do not fit the axes", Shape{std::ssize(on)}, by.shape);
  if (along.taps() > 1 && !is_wide_float(w.in(0).dtype))
    return type_error(w, "f64, f32, bf16 or f16 between places", w.in(0).dtype);
  TensorId x = along.taps() == 1 ? w.raw(0) : w.wide(0);
  for (size_t i = 0; i < on.size(); ++i) {
    const auto axis = static_cast<size_t>(*normalized_axis(on[i], shape.size(), w.place));
    const double value = load_as_double(by.dtype, by.constant->data(), i);
    along.size = static_cast<double>(shape[axis]);
    along.scale = sized ? value / along.size : value;
    const double length = sized ? value : std::floor(along.size * along.scale);
    if (!(length >= 1) || !(along.size > 0) || length > static_cast<double>(kMaxElements))
      return w.error(kShape, "an axis cannot be resized so", "an axis of 1 or more, to 1 or more",
                     fmt::format("{} by {}", along.size, value));
    along.length = static_cast<int64_t>(length);
    if (along.length == shape[axis] && along.scale == 1) continue;
    shape[axis] = along.length;
    const Shape column = with(Shape(shape.size(), 1), axis, along.length);
    TensorId sum = kAbsent;
    for (int t = 0; t < along.taps(); ++t) {
      const TensorId from = w.table(Dtype::i64, {along.length}, "from",
                                    [&](int64_t to) { return along.from(to, t); });
      TensorId part =
          w.make(OpKind::Gather, {x, from}, "taken", {{"axis", static_cast<int64_t>(axis)}});
      if (along.taps() > 1) {
        const auto weight = [&](int64_t to) { return along.weight(to, t); };
        part = w.mul(part, w.table(w.dtype(x), column, "weight", weight), "part");
      }
      sum = sum == kAbsent ? part : w.add(sum, part, "sum");
    }
    x = sum;
  }
  return Outputs{x};
}
}  // namespace warploom::graph::rewrites
