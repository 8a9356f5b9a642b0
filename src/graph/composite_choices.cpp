// Composites that compare places: of the largest element, of a class, of a diagonal.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// 0, 1, … along an axis of a tensor of `rank` axes.
Id places_along(PrimitiveWriter& writer, size_t axis, size_t rank, int64_t size) {
  return writer.places(with(Shape(rank, 1), axis, size), "places");
}
}  // namespace

namespace rewrites {
// 1 at the first of the largest along the axis, 0 elsewhere.
Result<Outputs> hardmax(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  const Id x = writer.raw(0);
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const int64_t size = writer.shape(x)[axis];
  const List axes = {as_int64(axis)};
  const Id best = writer.reduce(OpKind::ReduceMax, x, axes, "best");
  const Id nan = writer.make(OpKind::IsNaN, {x}, "nan");
  const Id equal = writer.make(OpKind::Equal, {x, best}, "equal");
  const Id found = writer.make(OpKind::Or, {equal, nan}, "found");
  const Id places = places_along(writer, axis, writer.rank(x), size);
  const auto behind_all = as_double(size);
  const Id none = writer.constant(Dtype::i64, {}, {behind_all}, "none");
  const Id candidates = writer.where(found, places, none, "candidates");
  const Id first = writer.reduce(OpKind::ReduceMin, candidates, axes, "first");
  const Id chosen = writer.make(OpKind::Equal, {places, first}, "chosen");
  return Outputs{writer.cast(chosen, writer.dtype(x), "y")};
}

// The second value where the class is the place along the new axis, the first one elsewhere;
// classes below 0 count from the end.
Result<Outputs> one_hot(PrimitiveWriter& writer) {
  const auto depth = constant_scalar(writer.graph, writer.raw(1));
  if (!depth) {
    const std::string message = "the depth of a OneHot is not known from the model";
    return writer.error(ErrorCode::kOnnxDynamicShape, message, "a constant scalar", writer.in(1),
                        "export the model with a fixed depth");
  }
  const auto size = as_int64(*depth);
  const Shape& values_shape = writer.shape(writer.raw(2));
  if (size < 0 || element_count(values_shape) != 2) {
    const std::string message = "a OneHot has a depth and two values";
    return writer.error(kShape, message, "0 or more, and [2]", values_shape);
  }
  const size_t rank = writer.rank(writer.raw(0)) + 1;
  WARPLOOM_TRY(const int axis, normalized_axis(writer.node.integer("axis"), rank, writer.place));
  Shape shape = writer.shape(writer.raw(0));
  shape.insert(shape.begin() + axis, 1);
  const Id whole = writer.cast(writer.raw(0), Dtype::i64, "whole");
  const Id given = writer.reshape(whole, shape, "given");
  const Id zero = writer.constant(Dtype::i64, {}, {0}, "zero");
  const Id length = writer.constant(Dtype::i64, {}, {*depth}, "depth");
  const Id from_end = writer.add(given, length, "from_end");
  const Id negative = writer.make(OpKind::Less, {given, zero}, "negative");
  const Id place = writer.where(negative, from_end, given, "place");
  const Id places = places_along(writer, as_size(axis), rank, size);
  const auto value = [&](double which, std::string_view name) {
    const std::string index_name = fmt::format("{}_index", name);
    const std::string values_name = fmt::format("{}_of", name);
    const Id index = writer.constant(Dtype::i64, {}, {which}, index_name);
    const Id values = writer.reshape(writer.raw(2), {2}, values_name);
    const int64_t first_axis = 0;
    return writer.make(OpKind::Gather, {values, index}, name, {{"axis", first_axis}});
  };
  const Id on = value(1, "on");
  const Id off = value(0, "off");
  const Id chosen = writer.make(OpKind::Equal, {place, places}, "chosen");
  return Outputs{writer.where(chosen, on, off, "y")};
}

// 1 on a diagonal of a matrix of the input's shape.
Result<Outputs> eye_like(PrimitiveWriter& writer) {
  const Shape& shape = writer.shape(writer.raw(0));
  if (shape.size() != 2)
    return writer.error(kShape, "EyeLike of what is no matrix", "[N,M]", shape);
  Dtype dtype = writer.dtype(writer.raw(0));
  if (writer.node.attributes.contains("dtype")) {
    WARPLOOM_TRY(dtype,
                 checked_dtype(writer.node.integer("dtype"), "EyeLike's type", writer.place));
  }
  const int64_t k = writer.node.integer("k");
  const int64_t columns = std::max<int64_t>(shape[1], 1);
  const auto element = [&](int64_t i) { return i % columns == i / columns + k ? 1 : 0; };
  return Outputs{writer.table(dtype, shape, "y", element)};
}
}  // namespace rewrites
}  // namespace warploom::graph
