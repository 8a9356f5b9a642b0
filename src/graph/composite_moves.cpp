// The rewriting of operators that move elements, know them from constants, or only change their types.
#include "graph/rules.h"
namespace warploom::graph::rewrites {
using Id = TensorId;
using Outputs = std::vector<Id>;

Result<Outputs> split(Writer& w) {
  const Id x = w.raw(0);
  WARPLOOM_TRY(const std::size_t axis, checked_axis(w));
  const std::int64_t size = w.shape(x)[axis], count = std::ssize(w.node.outputs), part = ceil_div(size, count);
  if (w.node.integer("num_outputs", count) != count)
    return w.error(kAttribute, "num_outputs differs from the outputs", count, w.node.integer("num_outputs"));
  List parts(w.node.outputs.size(), part);
  parts.back() = size - part * (count - 1);  // the last may be smaller
  if (w.has(1)) { WARPLOOM_TRY(parts, list(w, 1, "the list of parts", std::numeric_limits<int>::max())); }
  const bool fit = std::ranges::all_of(parts, [&](std::int64_t p) { return p >= 0 && p <= size; });
  if (!fit || std::ssize(parts) != count || std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != size)
    return w.error(kShape, "the parts of a Split do not make up the axis", fmt::format("{} parts of {}", count, size), parts);
  Outputs made;
  std::int64_t end = 0;
  for (const std::int64_t of : parts) {
    const Id from = w.list({end}, "start"), to = w.list({end += of}, "end"), on = w.list(span(axis, axis + 1), "axis");
    made.push_back(w.make(OpKind::Slice, {x, from, to, on}, "part"));
  }
  return made;
}

// [a,b] repeated r, s times: [1,a,1,b] expanded to [r,a,s,b].
Result<Outputs> tile(Writer& w) {
  const Id x = w.raw(0);
  WARPLOOM_TRY(const List repeats, list(w, 1, "the list of repeats"));
  Shape apart, repeated, whole = w.shape(x);
  if (repeats.size() != whole.size() || std::ranges::any_of(repeats, [](std::int64_t r) { return r < 0; }))
    return w.error(kShape, "the repeats do not fit the axes", fmt::format("{} entries of 0 or more", whole.size()), repeats);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] != 1) apart.push_back(1), repeated.push_back(repeats[i]);
    apart.push_back(whole[i]), repeated.push_back(whole[i]);
    if (whole[i] > 0 && repeats[i] > kMaxElements / whole[i])
      return w.error(ErrorCode::kOnnxTooLarge, "a tensor has too many elements", fmt::format("at most {}", kMaxElements),
                     repeats);
    whole[i] *= repeats[i];
  }
  const Id expanded = w.make(OpKind::Expand, {w.reshape(x, apart, "apart"), w.list(repeated, "repeats")}, "repeated");
  return Outputs{w.reshape(expanded, whole, "y")};
}

Result<Outputs> blocks(Writer& w) {  // DepthToSpace, SpaceToDepth
  constexpr std::int64_t kMostBlock = 1 << 15;
  const Id x = w.raw(0);
  const Shape in = w.shape(x);
  const std::int64_t b = w.node.integer("blocksize");
  const std::string mode = w.node.attribute<std::string>("mode", "DCR");
  if (b < 1 || b > kMostBlock) return w.error(kAttribute, "blocksize has an unfit value", "1 or more", b);
  const bool spread = w.node.op == OpKind::DepthToSpace;
  if (in.size() != 4 || (spread ? in[1] % (b * b) != 0 : in[2] % b != 0 || in[3] % b != 0))
    return w.error(kShape, "blocks do not fit the input", fmt::format("4 axes, with blocks of {}", b), in);
  const std::int64_t depth = in[1] / (b * b);
  Shape apart = {in[0], in[1], in[2] / b, b, in[3] / b, b}, to = {in[0], in[1] * b * b, in[2] / b, in[3] / b};
  List order = {0, 3, 5, 1, 2, 4};
  if (spread) {
    apart = mode == "DCR" ? Shape{in[0], b, b, depth, in[2], in[3]} : Shape{in[0], depth, b, b, in[2], in[3]};
    order = mode == "DCR" ? List{0, 3, 4, 1, 5, 2} : List{0, 1, 4, 2, 5, 3};
    to = {in[0], depth, in[2] * b, in[3] * b};
  }
  return Outputs{w.reshape(w.make(OpKind::Transpose, {w.reshape(x, apart, "apart")}, "turned", {{"perm", order}}), to, "y")};
}

Result<Outputs> trilu(Writer& w) {
  const Id x = w.raw(0);
  if (w.rank(x) < 2) return w.error(kShape, "a triangle of no matrix", "2 axes or more", w.shape(x));
  List diagonal = {0};
  if (w.has(1)) { WARPLOOM_TRY(diagonal, list(w, 1, "the diagonal")); }
  if (diagonal.size() != 1) return w.error(kShape, "the diagonal is no scalar", "[]", w.in(1).shape);
  const Shape matrix(w.shape(x).end() - 2, w.shape(x).end());
  // By comparing places: no mask is stored.
  const Id row = w.table(Dtype::i64, {matrix[0], 1}, "row", [&](std::int64_t i) { return i + diagonal[0]; });
  const Id column = w.table(Dtype::i64, {matrix[1]}, "column", [](std::int64_t i) { return i; });
  const bool upper = w.node.integer("upper") != 0;
  const Id mask = w.make(upper ? OpKind::GreaterOrEqual : OpKind::LessOrEqual, {column, row}, "mask");
  return Outputs{w.make(OpKind::Where, {mask, x, w.scalar(0, x, "zero")}, "y")};
}

Result<Outputs> range(Writer& w) {
  WARPLOOM_CHECK(same_type(w, false));
  std::array<double, 3> bounds{};  // begin, end, step
  for (std::size_t i = 0; i < 3; ++i) {
    const auto value = constant_scalar(w.graph, w.raw(i));
    if (!value)
      return w.error(ErrorCode::kOnnxDynamicShape, "a bound of a Range is not known from the model", "a constant scalar", w.in(i),
                     "export the model with fixed shapes");
    bounds[i] = *value;
  }
  const double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (std::isnan(count) || count > static_cast<double>(kMaxElements))
    return w.error(kShape, "a Range has no end", "bounds and a step of a finite list",
                   fmt::format("{}", fmt::join(bounds, ", ")));
  const Shape shape = {static_cast<std::int64_t>(std::max(count, 0.0))};
  return Outputs{
      w.table(w.in(0).dtype, shape, "y", [&](std::int64_t i) { return bounds[0] + static_cast<double>(i) * bounds[2]; })};
}

// Exclusive: prefixes of the elements moved on by one, a 0 before the first.
Result<Outputs> cum_sum(Writer& w) {
  WARPLOOM_TRY(const Answer answer, operator_of(w.node.op).rule(w));
  const Access& access = *answer.reads[0];
  List before(access.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    if (access[i].axis == AxisSource::kWhole) before[i] = w.node.integer("reverse") != 0 ? -1 : 1;
  List after = before;
  for (std::int64_t& pad : after) pad = -pad;
  const Id x = w.raw(0),
           moved = w.make(OpKind::Pad, {x, w.list(chained(before, after), "pads"), w.scalar(0, x, "zero")}, "moved");
  return Outputs{w.make(OpKind::CumSum, {moved, w.raw(1)}, "y", {{"reverse", w.node.integer("reverse")}})};
}

// Pads and value given, for every axis.
Result<Outputs> pad(Writer& w) {
  WARPLOOM_TRY(const Answer answer, operator_of(w.node.op).rule(w));
  const Id x = w.raw(0), value = w.has(2) ? w.reshape(w.raw(2), {}, "value") : w.scalar(0, x, "value");
  List before, after;
  for (std::size_t i = 0; i < answer.shape.size(); ++i) {
    before.push_back(-(*answer.reads[0])[i].begin);
    after.push_back(answer.shape[i] - w.shape(x)[i] - before.back());
  }
  const std::string mode = w.node.attribute<std::string>("mode", "constant");
  if (mode == "constant") return Outputs{w.make(OpKind::Pad, {x, w.list(chained(before, after), "pads"), value}, "y")};
  Id y = x;  // of elements of its own, found along one axis after another
  for (std::size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    const std::int64_t size = w.shape(x)[axis], turn = mode == "wrap" ? size : std::max<std::int64_t>(1, 2 * size - 2);
    const auto from = [&](std::int64_t to) {
      const std::int64_t at = to - before[axis], within = (at % turn + turn) % turn;
      return mode == "edge" ? std::clamp<std::int64_t>(at, 0, size - 1) : within < size ? within : turn - within;
    };
    const Id places = w.table(Dtype::i64, {answer.shape[axis]}, "from", from);
    y = w.make(OpKind::Gather, {y, places}, "padded", {{"axis", static_cast<std::int64_t>(axis)}});
  }
  return Outputs{y};
}

Result<Outputs> dropout(Writer& w) {  // nothing is dropped
  const Id x = w.raw(0);
  WARPLOOM_CHECK(check_number(w, 0, true));
  if (w.has(2)) {
    const auto training = constant_integers(w.graph, w.raw(2));
    if (!training || training->size() != 1 || training->front() != 0)
      return w.error(kAttribute, "Dropout in training mode is random and not supported", "training_mode false",
                     training ? "true" : "a value not known from the model", "export for inference");
  }
  const Id kept = w.constant(Dtype::boolean, {}, {1}, "kept");
  return Outputs{x, w.make(OpKind::Expand, {kept, w.list(w.shape(x), "shape")}, "mask")};
}

Result<Outputs> shape_of(Writer& w) {
  const Shape& shape = w.shape(w.raw(0));
  if (w.node.op == OpKind::Size) return Outputs{w.constant(Dtype::i64, {}, {static_cast<double>(element_count(shape))}, "y")};
  const auto clamped = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + std::ssize(shape) : axis, 0, std::ssize(shape));
  };
  const std::int64_t begin = clamped(w.node.integer("start")), end = clamped(w.node.integer("end", std::ssize(shape)));
  return Outputs{w.list(List(shape.begin() + begin, shape.begin() + std::max(begin, end)), "y")};
}

Result<Outputs> cast_like(Writer& w) {
  const std::int64_t to = onnx_type_of(w.dtype(w.raw(1))), saturate = w.node.integer("saturate", 1);
  return Outputs{w.make(OpKind::Cast, {w.raw(0)}, "y", {{"to", to}, {"saturate", saturate}})};
}
}  // namespace warploom::graph::rewrites
