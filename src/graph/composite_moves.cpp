// The rewriting of operators that move elements, know them from constants, look them up where data
// say, or only change types.
#include "graph/rules.h"

namespace warploom::graph::rewrites {
Result<Outputs> split(Writer& w) {
  const Id x = w.raw(0);
  WARPLOOM_TRY(const size_t axis, checked_axis(w));
  const int64_t size = w.shape(x)[axis];
  const int64_t count = std::ssize(w.node.outputs);
  const int64_t part = ceil_div(size, count);
  if (w.node.integer("num_outputs", count) != count)
    return w.error(kAttribute, "num_outputs differs from the outputs", count,
                   w.node.integer("num_outputs"));
  List parts(w.node.outputs.size(), part);
  parts.back() = size - part * (count - 1);  // the last may be smaller
  if (w.has(1)) {
    WARPLOOM_TRY(parts, list(w, 1, "the list of parts", std::numeric_limits<int>::max()));
  }
  const bool fit = std::ranges::all_of(parts, [&](int64_t p) { return p >= 0 && p <= size; });
  if (!fit || std::ssize(parts) != count ||
      std::accumulate(parts.begin(), parts.end(), int64_t{0}) != size)
    return w.error(kShape, "the parts of a Split do not make up the axis",
                   fmt::format("{} parts of {}", count, size), parts);
  Outputs made;
  int64_t end = 0;
  for (const int64_t of : parts) {
    const Id from = w.list({end}, "start");
    const Id to = w.list({end += of}, "end");
    const Id on = w.list(span(axis, axis + 1), "axis");
    made.push_back(w.make(OpKind::Slice, {x, from, to, on}, "part"));
  }
  return made;
}

// [a,b] repeated r, s times: [1,a,1,b] expanded to [r,a,s,b].
Result<Outputs> tile(Writer& w) {
  const Id x = w.raw(0);
  WARPLOOM_TRY(const List repeats, list(w, 1, "the list of repeats"));
  Shape apart, repeated, whole = w.shape(x);
  if (repeats.size() != whole.size() ||
      std::ranges::any_of(repeats, [](int64_t r) { return r < 0; }))
    return w.error(kShape, "the repeats do not fit the axes",
                   fmt::format("{} entries of 0 or more", whole.size()), repeats);
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] != 1) {
      apart.push_back(1);
      repeated.push_back(repeats[i]);
    }
    apart.push_back(whole[i]);
    repeated.push_back(whole[i]);
    if (whole[i] > 0 && repeats[i] > kMaxElements / whole[i])
      return w.error(ErrorCode::kOnnxTooLarge, "a tensor has too many elements",
                     fmt::format("at most {}", kMaxElements), repeats);
    whole[i] *= repeats[i];
  }
  const Id expanded = w.make(
      OpKind::Expand, {w.reshape(x, apart, "apart"), w.list(repeated, "repeats")}, "repeated");
  return Outputs{w.reshape(expanded, whole, "y")};
}

Result<Outputs> blocks(Writer& w) {  // DepthToSpace, SpaceToDepth
  constexpr int64_t kMostBlock = 1 << 15;
  const Id x = w.raw(0);
  const Shape in = w.shape(x);
  const int64_t b = w.node.integer("blocksize");
  const std::string mode = w.node.attribute<std::string>("mode", "DCR");
  if (b < 1 || b > kMostBlock)
    return w.error(kAttribute, "blocksize has an unfit value", "1 or more", b);
  const bool spread = w.node.op == OpKind::DepthToSpace;
  if (in.size() != 4 || (spread ? in[1] % (b * b) != 0 : in[2] % b != 0 || in[3] % b != 0))
    return w.error(kShape, "blocks do not fit the input",
                   fmt::format("4 axes, with blocks of {}", b), in);
  const int64_t depth = in[1] / (b * b);
  Shape apart = {in[0], in[1], in[2] / b, b, in[3] / b, b};
  Shape to = {in[0], in[1] * b * b, in[2] / b, in[3] / b};
  List order = {0, 3, 5, 1, 2, 4};
  if (spread) {
    apart = mode == "DCR" ? Shape{in[0], b, b, depth, in[2], in[3]}
                          : Shape{in[0], depth, b, b, in[2], in[3]};
    order = mode == "DCR" ? List{0, 3, 4, 1, 5, 2} : List{0, 1, 4, 2, 5, 3};
    to = {in[0], depth, in[2] * b, in[3] * b};
  }
  return Outputs{w.reshape(
      w.make(OpKind::Transpose, {w.reshape(x, apart, "apart")}, "turned", {{"perm", order}}), to,
      "y")};
}

Result<Outputs> trilu(Writer& w) {
  const Id x = w.raw(0);
  if (w.rank(x) < 2)
    return w.error(kShape, "a triangle of no matrix", "2 axes or more", w.shape(x));
  List diagonal = {0};
  if (w.has(1)) {
    WARPLOOM_TRY(diagonal, list(w, 1, "the diagonal"));
  }
  if (diagonal.size() != 1)
    return w.error(kShape, "the diagonal is no scalar", "[]", w.in(1).shape);
  const Shape matrix(w.shape(x).end() - 2, w.shape(x).end());
  // By comparing places: no mask is stored.
  const Id row =
      w.table(Dtype::i64, {matrix[0], 1}, "row", [&](int64_t i) { return i + diagonal[0]; });
  const Id column = w.table(Dtype::i64, {matrix[1]}, "column", [](int64_t i) { return i; });
  const bool upper = w.node.integer("upper") != 0;
  const Id mask =
      w.make(upper ? OpKind::GreaterOrEqual : OpKind::LessOrEqual, {column, row}, "mask");
  return Outputs{w.make(OpKind::Where, {mask, x, w.scalar(0, x, "zero")}, "y")};
}

Result<Outputs> range(Writer& w) {
  WARPLOOM_CHECK(same_type(w, false));
  std::array<double, 3> bounds{};  // begin, end, step
  for (size_t i = 0; i < 3; ++i) {
    const auto value = constant_scalar(w.graph, w.raw(i));
    if (!value)
      return w.error(ErrorCode::kOnnxDynamicShape, "a bound of a Range is not known from the model",
                     "a constant scalar", w.in(i), "export the model with fixed shapes");
    bounds[i] = *value;
  }
  const double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (std::isnan(count) || count > static_cast<double>(kMaxElements))
    return w.error(kShape, "a Range has no end", "bounds and a step of a finite list",
                   fmt::format("{}", fmt::join(bounds, ", ")));
  const Shape shape = {static_cast<int64_t>(std::max(count, 0.0))};
  return Outputs{w.table(w.in(0).dtype, shape, "y", [&](int64_t i) {
    return bounds[0] + static_cast<double>(i) * bounds[2];
  })};
}

// Exclusive: prefixes of the elements moved on by one, a 0 before the first.
Result<Outputs> cum_sum(Writer& w) {
  WARPLOOM_TRY(const Answer answer, operator_of(w.node.op).rule(w));
  const int64_t reverse = w.node.integer("reverse");
  const int64_t by = reverse != 0 ? -1 : 1;
  const size_t axis = whole_axis(*answer.reads[0]);
  const Id x = w.raw(0);
  const List none(w.rank(x));
  const Id moved =
      w.pad(x, with(none, axis, by), with(none, axis, -by), w.scalar(0, x, "zero"), "moved");
  return Outputs{w.make(OpKind::CumSum, {moved, w.raw(1)}, "y", {{"reverse", reverse}})};
}

// Pads and value given, for every axis.
Result<Outputs> pad(Writer& w) {
  WARPLOOM_TRY(const Answer answer, operator_of(w.node.op).rule(w));
  const Id x = w.raw(0);
  const Id value = w.has(2) ? w.reshape(w.raw(2), {}, "value") : w.scalar(0, x, "value");
  List before;
  List after;
  for (size_t i = 0; i < answer.shape.size(); ++i) {
    before.push_back(-(*answer.reads[0])[i].begin);
    after.push_back(answer.shape[i] - w.shape(x)[i] - before.back());
  }
  const std::string mode = w.node.attribute<std::string>("mode", "constant");
  if (mode == "constant")
    return Outputs{w.make(OpKind::Pad, {x, w.list(chained(before, after), "pads"), value}, "y")};
  Id y = x;  // of elements of its own, found along one axis after another
  for (size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    const int64_t size = w.shape(x)[axis];
    const int64_t turn = mode == "wrap" ? size : std::max<int64_t>(1, 2 * size - 2);
    const auto from = [&](int64_t to) {
      const int64_t at = to - before[axis];
      const int64_t within = (at % turn + turn) % turn;
      return mode == "edge"  ? std::clamp<int64_t>(at, 0, size - 1)
             : within < size ? within
                             : turn - within;
    };
    const Id places = w.table(Dtype::i64, {answer.shape[axis]}, "from", from);
    y = w.make(OpKind::Gather, {y, places}, "padded", {{"axis", static_cast<int64_t>(axis)}});
  }
  return Outputs{y};
}

Result<Outputs> dropout(Writer& w) {  // nothing is dropped
  const Id x = w.raw(0);
  WARPLOOM_CHECK(check_number(w, 0, true));
  if (w.has(2)) {
    const auto training = constant_integers(w.graph, w.raw(2));
    if (!training || training->size() != 1 || training->front() != 0)
      return w.error(kAttribute, "Dropout in training mode is random and not supported",
                     "training_mode false", training ? "true" : "a value not known from the model",
                     "export for inference");
  }
  const Id kept = w.constant(Dtype::boolean, {}, {1}, "kept");
  return Outputs{x, w.make(OpKind::Expand, {kept, w.list(w.shape(x), "shape")}, "mask")};
}

Result<Outputs> shape_of(Writer& w) {
  const Shape& shape = w.shape(w.raw(0));
  if (w.node.op == OpKind::Size)
    return Outputs{w.constant(Dtype::i64, {}, {static_cast<double>(element_count(shape))}, "y")};
  const auto clamped = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + std::ssize(shape) : axis, 0, std::ssize(shape));
  };
  const int64_t begin = clamped(w.node.integer("start"));
  const int64_t end = clamped(w.node.integer("end", std::ssize(shape)));
  return Outputs{w.list(List(shape.begin() + begin, shape.begin() + std::max(begin, end)), "y")};
}

Result<Outputs> cast_like(Writer& w) {
  const int64_t to = onnx_type_of(w.dtype(w.raw(1)));
  const int64_t saturate = w.node.integer("saturate", 1);
  return Outputs{w.make(OpKind::Cast, {w.raw(0)}, "y", {{"to", to}, {"saturate", saturate}})};
}

namespace {
// Flat places among the first `axes` of x's axes, the others of which are lines. They are computed
// in f32 where it holds them all: kernels have no arithmetic of i64.
struct Places {
  Writer& w;
  Id x;
  size_t axes;
  Shape shape;  // of the places
  int64_t count = element_count(entries(w.shape(x), 0, axes));
  Dtype type = count <= 1 << 24 ? Dtype::f32 : Dtype::i64;
  Id flat = kAbsent;

  // Along axis d of x: its coordinates along the same axis of the places, or what `index` says,
  // those below 0 counted from the end.
  void add(size_t d, Id index = kAbsent) {
    const int64_t size = w.shape(x)[d];
    const int64_t stride = element_count(entries(w.shape(x), d + 1, axes));
    if (index == kAbsent) {
      index = w.table(type, with(Shape(shape.size(), 1), d, shape[d]), "coordinate",
                      [](int64_t i) { return i; });
    } else {
      const Id below = w.make(OpKind::Less, {index, w.scalar(0, index, "zero")}, "below");
      const Id counted =
          w.add(index, w.scalar(static_cast<double>(size), index, "size"), "counted");
      index = w.make(OpKind::Where, {below, counted, index}, "front", {{"index_size", size}});
    }
    if (stride != 1)
      index = w.mul(index, w.scalar(static_cast<double>(stride), index, "stride"), "step");
    flat = flat == kAbsent ? index : w.add(flat, index, "flat");
  }

  Id taken() {
    if (flat == kAbsent) flat = w.table(type, {}, "first", [](int64_t) { return 0; });
    const Id lines = w.reshape(x, chained({count}, entries(w.shape(x), axes)), "lines");
    flat =
        w.make(OpKind::Expand, {w.cast(flat, Dtype::i64, "places"), w.list(shape, "shape")}, "all");
    return w.make(OpKind::Gather, {lines, flat}, "y", {{"axis", int64_t{0}}});
  }
};
}  // namespace

// y[i, j] = x[i, index[i, j]] along the last of two axes.
Result<Outputs> gather_elements(Writer& w) {
  WARPLOOM_CHECK(check_indices(w));
  WARPLOOM_TRY(const size_t axis, checked_axis(w));
  const Shape x = w.in(0).shape;
  const Shape to = w.in(1).shape;
  bool fits = x.size() == to.size();
  for (size_t d = 0; fits && d < x.size(); ++d) fits = d == axis || to[d] <= x[d];
  if (!fits) return w.error(kShape, "indices lie beyond what they are taken from", x, to);
  Places places{w, w.raw(0), x.size(), to};
  for (size_t d = 0; d < x.size(); ++d)
    places.add(d, d == axis ? w.cast(w.raw(1), places.type, "index") : kAbsent);
  return Outputs{places.taken()};
}

// y[b, i] = x[b, index[b, i, 0], index[b, i, 1], ..]: as many axes of x as the last axis of the
// indices is long.
Result<Outputs> gather_nd(Writer& w) {
  WARPLOOM_CHECK(check_indices(w));
  const Shape x = w.in(0).shape;
  const Shape given = w.in(1).shape;
  const int64_t batches = w.node.integer("batch_dims");
  if (given.empty() || batches < 0 || batches >= std::ssize(given) ||
      batches + given.back() > std::ssize(x) ||
      !std::equal(x.begin(), x.begin() + batches, given.begin()))
    return w.error(kShape, "indices do not fit what they are taken from", x, given);
  const Shape to(given.begin(), given.end() - 1);
  const size_t first = static_cast<size_t>(batches);
  const size_t axes = first + static_cast<size_t>(given.back());
  Places places{w, w.raw(0), axes, to};
  const Id all = w.cast(w.raw(1), places.type, "indices");
  const List on = span(to.size(), to.size() + 1);
  for (size_t d = 0; d < axes; ++d) {
    const auto j = static_cast<int64_t>(d) - batches;
    if (j < 0)
      places.add(d);
    else
      places.add(
          d, w.reshape(w.make(OpKind::Slice,
                              {all, w.list({j}, "from"), w.list({j + 1}, "to"), w.list(on, "axis")},
                              "part"),
                       to, "index"));
  }
  return Outputs{places.taken()};
}
}  // namespace warploom::graph::rewrites
