// The rewriting of operators that look for places which are data: gathers, losses by class.
#include "graph/rules.h"
namespace warploom::graph::rewrites {
using Id = TensorId;
using Outputs = std::vector<Id>;
namespace {
// Flat places among the first `axes` of x's axes, the others of which are lines. They are computed in f32 where it holds them all: kernels
// have no arithmetic of i64.
struct Places {
  Writer& w;
  Id x;
  std::size_t axes;
  Shape shape;  // of the places
  std::int64_t count = element_count(entries(w.shape(x), 0, axes));
  Dtype type = count <= 1 << 24 ? Dtype::f32 : Dtype::i64;
  Id flat = kAbsent;

  // Along axis d of x: its coordinates along the same axis of the places, or what `index` says, those below 0 counted from the end.
  void add(std::size_t d, Id index = kAbsent) {
    const std::int64_t size = w.shape(x)[d], stride = element_count(entries(w.shape(x), d + 1, axes));
    if (index == kAbsent) {
      Shape along(shape.size(), 1);
      along[d] = shape[d];
      index = w.table(type, along, "coordinate", [](std::int64_t i) { return i; });
    } else {
      const Id below = w.make(OpKind::Less, {index, w.scalar(0, index, "zero")}, "below"),
               counted = w.add(index, w.scalar(static_cast<double>(size), index, "size"), "counted");
      index = w.make(OpKind::Where, {below, counted, index}, "front");
    }
    if (stride != 1) index = w.mul(index, w.scalar(static_cast<double>(stride), index, "stride"), "step");
    flat = flat == kAbsent ? index : w.add(flat, index, "flat");
  }
  Id taken() {
    if (flat == kAbsent) flat = w.table(type, {}, "first", [](std::int64_t) { return 0; });
    const Id lines = w.reshape(x, chained({count}, entries(w.shape(x), axes)), "lines");
    flat = w.make(OpKind::Expand, {w.cast(flat, Dtype::i64, "places"), w.list(shape, "shape")}, "all");
    return w.make(OpKind::Gather, {lines, flat}, "y", {{"axis", std::int64_t{0}}});
  }
};

Result<Id> checked_indices(const Writer& w) {
  const Dtype dtype = w.in(1).dtype;
  if (dtype != Dtype::i64 && dtype != Dtype::i32) return type_error(w, "indices i64 or i32", dtype);
  return w.raw(1);
}
}  // namespace
// y[i, j] = x[i, index[i, j]] along the last of two axes.
Result<Outputs> gather_elements(Writer& w) {
  WARPLOOM_TRY(const Id indices, checked_indices(w));
  WARPLOOM_TRY(const std::size_t axis, checked_axis(w));
  const Shape x = w.in(0).shape, to = w.in(1).shape;
  bool fits = x.size() == to.size();
  for (std::size_t d = 0; fits && d < x.size(); ++d) fits = d == axis || to[d] <= x[d];
  if (!fits) return w.error(kShape, "indices lie beyond what they are taken from", x, to);
  Places places{w, w.raw(0), x.size(), to};
  for (std::size_t d = 0; d < x.size(); ++d) places.add(d, d == axis ? w.cast(indices, places.type, "index") : kAbsent);
  return Outputs{places.taken()};
}

// y[b, i] = x[b, index[b, i, 0], index[b, i, 1], ..]: as many axes of x as the last axis of the indices is long.
Result<Outputs> gather_nd(Writer& w) {
  WARPLOOM_TRY(const Id indices, checked_indices(w));
  const Shape x = w.in(0).shape, given = w.in(1).shape;
  const std::int64_t batches = w.node.integer("batch_dims");
  if (given.empty() || batches < 0 || batches >= std::ssize(given) || batches + given.back() > std::ssize(x) ||
      !std::equal(x.begin(), x.begin() + batches, given.begin()))
    return w.error(kShape, "indices do not fit what they are taken from", x, given);
  const Shape to(given.begin(), given.end() - 1);
  const std::size_t first = static_cast<std::size_t>(batches), axes = first + static_cast<std::size_t>(given.back());
  Places places{w, w.raw(0), axes, to};
  const Id all = w.cast(indices, places.type, "indices");
  const List on = span(to.size(), to.size() + 1);
  for (std::size_t d = 0; d < axes; ++d) {
    const auto j = static_cast<std::int64_t>(d) - batches;
    if (j < 0) places.add(d);
    else
      places.add(
          d, w.reshape(w.make(OpKind::Slice, {all, w.list({j}, "from"), w.list({j + 1}, "to"), w.list(on, "axis")}, "part"), to,
                       "index"));
  }
  return Outputs{places.taken()};
}

// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss: of logarithms [N,C,..] those of the classes [N,..], negative and weighted. What a
// class picks is found by comparing, which reads the scores once.
Result<Outputs> class_loss(Writer& w) {
  const Shape scores = w.in(0).shape, classes = w.in(1).shape;
  if (!is_wide_float(w.in(0).dtype) || (w.has(2) && w.in(2).dtype != w.in(0).dtype))
    return type_error(w, "scores and weights f64, f32, bf16 or f16, alike", w.in(w.has(2) ? 2 : 0).dtype);
  WARPLOOM_TRY(const Id labels, checked_indices(w));
  if (scores.size() < 2 || classes != chained({scores[0]}, entries(scores, 2)))
    return w.error(kShape, "classes do not fit the scores", "[N,C,..] and [N,..]", to_text(scores) + " and " + to_text(classes));
  WARPLOOM_CHECK(check_vector(w, 2, scores[1]));
  const std::string reduction = w.node.text("reduction");
  const Id x = w.wide(0), zero = w.scalar(0, x, "zero"), one = w.scalar(1, x, "one");
  const bool soft = w.node.op == OpKind::SoftmaxCrossEntropyLoss;
  const Id logs = soft ? softmax_along(w, x, 1, true) : x;
  const Id label = w.reshape(w.cast(labels, Dtype::i64, "label"), chained({scores[0], 1}, entries(scores, 2)), "labels");
  Shape line(scores.size() - 1, 1);
  line[0] = scores[1];
  const Id hit = w.make(OpKind::Equal, {label, w.table(Dtype::i64, line, "class", [](std::int64_t i) { return i; })}, "hit");
  const auto picked = [&](Id of, std::string_view what) {
    return w.reduce(OpKind::ReduceSum, w.make(OpKind::Where, {hit, of, zero}, what), {1}, what, 0);
  };
  Id loss = w.make(OpKind::Neg, {picked(logs, "picked")}, "loss"), weight = kAbsent;
  if (w.has(2)) weight = picked(w.along_channels(w.wide(2), scores.size(), "weights"), "weight");
  if (weight != kAbsent) loss = w.mul(loss, weight, "weighted");
  if (w.node.attributes.contains("ignore_index")) {
    const Id which = w.reshape(label, classes, "which"),
             nobody = w.scalar(static_cast<double>(w.node.integer("ignore_index")), which, "nobody");
    const Id ignored = w.make(OpKind::Equal, {which, nobody}, "ignored");
    loss = w.make(OpKind::Where, {ignored, zero, loss}, "kept");
    weight = w.make(OpKind::Where, {ignored, zero, weight == kAbsent ? one : weight}, "counted");
  }
  const List all = span(0, classes.size());
  if (reduction == "mean" && weight == kAbsent) loss = w.mean(loss, all, "y", 0);
  else if (reduction != "none") loss = w.reduce(OpKind::ReduceSum, loss, all, "sum", 0);
  if (reduction == "mean" && weight != kAbsent)
    loss = w.make(OpKind::Div, {loss, w.reduce(OpKind::ReduceSum, weight, all, "share", 0)}, "y");
  return soft ? Outputs{loss, w.cast(logs, w.in(0).dtype, "log_prob")} : Outputs{loss};
}
}  // namespace warploom::graph::rewrites
