// Composites that compare places: of the largest element, of a class, of a diagonal.
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// 0, 1, … along an axis of a tensor of `rank` axes.
Id places_along(Writer& w, size_t axis, size_t rank, int64_t size) {
  return w.table(Dtype::i64, with(Shape(rank, 1), axis, size), "places",
                 [](int64_t i) { return i; });
}
}  // namespace

namespace rewrites {
// 1 at the first of the largest along the axis, 0 elsewhere.
Result<Outputs> hardmax(Writer& w) {
  WARPLOOM_CHECK(check_number(w, 0, true));
  const Id x = w.raw(0);
  WARPLOOM_TRY(const size_t axis, checked_axis(w));
  const int64_t size = w.shape(x)[axis];
  const List axes = {static_cast<int64_t>(axis)};
  const Id best = w.reduce(OpKind::ReduceMax, x, axes, "best");
  const Id nan = w.make(OpKind::IsNaN, {x}, "nan");
  const Id found = w.make(OpKind::Or, {w.make(OpKind::Equal, {x, best}, "equal"), nan}, "found");
  const Id places = places_along(w, axis, w.rank(x), size);
  const Id none = w.constant(Dtype::i64, {}, {static_cast<double>(size)}, "none");
  const Id candidates = w.make(OpKind::Where, {found, places, none}, "candidates");
  const Id first = w.reduce(OpKind::ReduceMin, candidates, axes, "first");
  return Outputs{w.cast(w.make(OpKind::Equal, {places, first}, "chosen"), w.dtype(x), "y")};
}

// The second value where the class is the place along the new axis, the first one elsewhere;
// classes below 0 count from the end.
Result<Outputs> one_hot(Writer& w) {
  const auto depth = constant_scalar(w.graph, w.raw(1));
  if (!depth)
    return w.error(ErrorCode::kOnnxDynamicShape,
                   "the depth of a OneHot is not known from the model", "a constant scalar",
                   w.in(1), "export the model with a fixed depth");
  const auto size = static_cast<int64_t>(*depth);
  if (size < 0 || element_count(w.shape(w.raw(2))) != 2)
    return w.error(kShape, "a OneHot has a depth and two values", "0 or more, and [2]",
                   w.shape(w.raw(2)));
  const size_t rank = w.rank(w.raw(0)) + 1;
  WARPLOOM_TRY(const int axis, normalized_axis(w.node.integer("axis"), rank, w.place));
  Shape shape = w.shape(w.raw(0));
  shape.insert(shape.begin() + axis, 1);
  const Id given = w.reshape(w.cast(w.raw(0), Dtype::i64, "whole"), shape, "given");
  const Id zero = w.constant(Dtype::i64, {}, {0}, "zero");
  const Id from_end = w.add(given, w.constant(Dtype::i64, {}, {*depth}, "depth"), "from_end");
  const Id negative = w.make(OpKind::Less, {given, zero}, "negative");
  const Id place = w.make(OpKind::Where, {negative, from_end, given}, "place");
  const Id places = places_along(w, static_cast<size_t>(axis), rank, size);
  const auto value = [&](double which, std::string_view name) {
    const Id index = w.constant(Dtype::i64, {}, {which}, fmt::format("{}_index", name));
    const Id values = w.reshape(w.raw(2), {2}, fmt::format("{}_of", name));
    return w.make(OpKind::Gather, {values, index}, name, {{"axis", int64_t{0}}});
  };
  const Id on = value(1, "on");
  const Id off = value(0, "off");
  return Outputs{
      w.make(OpKind::Where, {w.make(OpKind::Equal, {place, places}, "chosen"), on, off}, "y")};
}

// 1 on a diagonal of a matrix of the input's shape.
Result<Outputs> eye_like(Writer& w) {
  const Shape& shape = w.shape(w.raw(0));
  if (shape.size() != 2) return w.error(kShape, "EyeLike of what is no matrix", "[N,M]", shape);
  Dtype dtype = w.dtype(w.raw(0));
  if (w.node.attributes.contains("dtype")) {
    WARPLOOM_TRY(dtype, checked_dtype(w.node.integer("dtype"), "EyeLike's type", w.place));
  }
  const int64_t k = w.node.integer("k");
  const int64_t columns = std::max<int64_t>(shape[1], 1);
  return Outputs{w.table(dtype, shape, "y", [k, columns](int64_t i) {
    return i % columns == i / columns + k ? 1 : 0;
  })};
}
}  // namespace rewrites
}  // namespace warploom::graph
