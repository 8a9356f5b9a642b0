// The rewriting of composites that compute; composite_moves.cpp has those that move. The rules
// follow ONNX's definitions.
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
struct Normalized {
  Id y;
  Id mean;
  Id inverse;
};

Normalized normalized(Writer& w, Id x, const List& axes) {
  const Id mean = w.mean(x, axes, "mean");
  const Id centered = w.sub(x, mean, "centered");
  const Id variance = w.mean(w.mul(centered, centered, "square"), axes, "variance");
  const Id inverse = w.inverse_root(variance, w.node.real("epsilon"));
  return {w.mul(centered, inverse, "normalized"), mean, inverse};
}

Id scaled(Writer& w, Id y, Id scale, Id bias) {
  if (scale != kAbsent) y = w.mul(y, scale, "scaled");
  return bias != kAbsent ? w.add(y, bias, "y") : y;
}

Status check_power(const NodeContext& q) {
  const int64_t p = q.node.integer("p", 2);
  const int64_t most = q.node.op == OpKind::LpNormalization ? 2 : 64;
  if (p >= 1 && p <= most) return ok();
  return q.error(kAttribute, "the norm's p is not supported", most == 2 ? "1 or 2" : "1 to 64", p);
}

Status check_channels(const NodeContext& q) {
  if (q.in(0).shape.size() >= 2) return ok();
  return q.error(kShape, "an input lacks its channels", "2 axes or more", q.in(0).shape);
}

// Layers: statistics over the axes from the attribute's on.
Result<List> normalized_axes(const NodeContext& q) {
  WARPLOOM_CHECK(same_type(q, true));
  WARPLOOM_TRY(const size_t axis, checked_axis(q));
  const Shape line = entries(q.in(0).shape, axis);
  for (size_t i : {1u, 2u})
    if (q.has(i)) {
      WARPLOOM_TRY(const Shape stretched, broadcast(line, q.in(i).shape, q.place));
      if (stretched != line)
        return q.error(kShape, "scale or bias does not stretch to what is normalised", line,
                       q.in(i).shape);
    }
  return span(axis, axis + line.size());
}

// Batches, instances and groups: scale, bias and statistics by channel, or by group.
Status check_channel_norm(const NodeContext& q, int64_t groups = 0) {
  WARPLOOM_CHECK(check_channels(q));
  const int64_t size = groups > 0 ? groups : q.in(0).shape[1];
  for (size_t i = 0; i < q.node.inputs.size(); ++i) {
    if (!is_wide_float(q.in(i).dtype)) return type_error(q, "f64, f32, bf16 or f16", q.in(i).dtype);
    if ((q.in(i).dtype == Dtype::f64) != (q.in(0).dtype == Dtype::f64))
      return type_error(q, "f64 everywhere or nowhere", "both");
    if (i > 0) WARPLOOM_CHECK(check_vector(q, i, size));
  }
  return ok();
}

// x times scales of as many axes: each is of a block, as many elements along every axis as there
// are to a scale.
//   x [4,256], scale [4,2]: x as [4,2,128], the scale as [4,2,1]
Result<Id> dequantized(Writer& w, Id x, Id scale, Id zero = kAbsent) {
  Shape apart;
  Shape blocks;
  const Shape whole = w.shape(x);
  const Shape of = w.shape(scale);
  bool fits = of.size() == whole.size();
  for (size_t d = 0; fits && d < of.size(); ++d) {
    fits = of[d] > 0 ? whole[d] % of[d] == 0 && (of[d] == 1 || whole[d] > 0) : whole[d] == 0;
    const bool split = of[d] > 1 && of[d] < whole[d];
    apart.push_back(split ? of[d] : whole[d]);
    blocks.push_back(of[d]);
    if (fits && split) {
      apart.push_back(whole[d] / of[d]);
      blocks.push_back(1);
    }
  }
  if (!fits)
    return w.error(kShape, "scales do not divide what they are for into blocks", whole, of);
  std::vector<Id> inputs = {w.reshape(x, apart, "apart"), w.reshape(scale, blocks, "scales")};
  if (zero != kAbsent) inputs.push_back(w.reshape(zero, blocks, "zeros"));
  return w.reshape(w.make(OpKind::Dequantize, std::move(inputs), "scaled"), whole, "whole");
}

// The p-th root of the sum over windows, or over all, of |x|^p.
template <class Sum> Id rooted(Writer& w, Id x, const Sum& sum) {
  const auto p = static_cast<double>(w.node.integer("p"));
  const Id size = w.make(OpKind::Abs, {x}, "abs");
  if (p == 1) return sum(size);
  return w.make(
      OpKind::Pow,
      {sum(w.make(OpKind::Pow, {size, w.scalar(p, x, "p")}, "power")), w.scalar(1 / p, x, "root")},
      "y");
}

// The primitive with all its attributes.
Id windowed(Writer& w, OpKind op, std::vector<Id> inputs, const WindowSpec& spec) {
  std::map<std::string, Attribute> attributes = {{"kernel_shape", spec.kernel},
                                                 {"strides", spec.strides},
                                                 {"dilations", spec.dilations},
                                                 {"pads", chained(spec.before, spec.after)}};
  if (op == OpKind::Conv) attributes["group"] = w.node.integer("group", 1);
  return w.make(op, std::move(inputs), "windows", std::move(attributes));
}

// Exporters write zeros of another shape for no bias. Zeros of a bias's own shape are added: the
// kernels may be given other weights, in which they are not 0.
Id biased(Writer& w, Id y) {
  if (!w.has(2)) return y;
  const bool is_none = is_zero(w.graph.tensor(w.raw(2))) && w.in(2).shape != Shape{w.shape(y)[1]};
  if (is_none) return y;
  return w.add(y, w.along_channels(w.raw(2), w.rank(y), "bias"), "y");
}

// 1 over how many elements each window counts: a scalar where all count the same, else of the
// output's spatial shape.
Id shares(Writer& w, Id like, const WindowSpec& spec, bool with_pads) {
  std::vector<std::vector<double>> counts(w.dry() ? 0 : spec.kernel.size());  // along each axis
  bool alike = true;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t low = with_pads ? -spec.before[i] : 0;
    const int64_t high = w.shape(like)[i + 2] + (with_pads ? spec.counted[i] : 0);
    for (int64_t place = 0; place < spec.size[i]; ++place) {
      // Taps t with low <= first + t·dilation < high.
      const int64_t first = place * spec.strides[i] - spec.before[i];
      const int64_t step = spec.dilations[i];
      const int64_t from = std::max<int64_t>(0, (low - first + step - 1) / step);
      const int64_t to = std::min(spec.kernel[i], (high - first + step - 1) / step);
      counts[i].push_back(static_cast<double>(std::max<int64_t>(to - from, 0)));
      alike = alike && counts[i].back() == counts[i].front();
    }
  }
  return w.table(w.dtype(like), alike ? Shape{} : chained({1, 1}, spec.size),
                 alike ? "share" : "shares", [&](int64_t flat) {
                   double count = 1;
                   for (size_t i = counts.size(); i-- > 0; flat /= spec.size[i])
                     count *= counts[i][flat % spec.size[i]];
                   return 1 / std::max(count, 1.0);
                 });
}

Id softmax_along(Writer& w, Id x, size_t at, bool logarithm) {
  const List axis = span(at, at + 1);
  const Id shifted = w.sub(x, w.reduce(OpKind::ReduceMax, x, axis, "max"), "shifted");
  const Id powers = w.make(OpKind::Exp, {shifted}, "exp");
  const Id sum = w.reduce(OpKind::ReduceSum, powers, axis, "sum");
  if (logarithm) return w.sub(shifted, w.make(OpKind::Log, {sum}, "log"), "y");
  return w.mul(powers, w.make(OpKind::Reciprocal, {sum}, "inverse"), "y");
}
}  // namespace

Result<Outputs> none(Writer& w) {
  return w.error(ErrorCode::kInternal, "a primitive is to be rewritten");
}

Result<Outputs> gemm(Writer& w) {
  if (w.in(0).shape.size() != 2 || w.in(1).shape.size() != 2)
    return w.error(kShape, "Gemm of tensors that are no matrices", "2 axes each",
                   to_text(w.in(0).shape) + " and " + to_text(w.in(1).shape));
  const auto turned = [&](size_t i, std::string_view flag) {
    return w.node.integer(flag) != 0 ? w.make(OpKind::Transpose, {w.raw(i)}, flag) : w.raw(i);
  };
  const auto times = [&](Id x, std::string_view factor) {
    const double by = w.node.real(factor);
    return by == 1 ? x : w.mul(x, w.scalar(by, x, fmt::format("{}_value", factor)), factor);
  };
  const Id product = w.make(OpKind::MatMul, {turned(0, "transA"), turned(1, "transB")}, "product");
  const Id y = times(product, "alpha");
  if (!w.has(2) || w.node.real("beta") == 0) return Outputs{y};
  const Id sum = w.add(y, times(w.raw(2), "beta"), "y");
  if (w.shape(sum) != w.shape(y))
    return w.error(kShape, "C does not stretch to the product's shape", w.shape(y),
                   w.shape(w.raw(2)));
  return Outputs{sum};
}

Result<Outputs> dequantize_linear(Writer& w) {
  const Shape& scale = w.in(1).shape;
  const Shape& in = w.in(0).shape;
  const int64_t block = w.node.integer("block_size");
  const int64_t type = w.node.integer("output_dtype");
  if (type != 0 && type != onnx_type_of(w.in(1).dtype))
    return w.error(kAttribute, "the output has another type than the scale",
                   onnx_type_of(w.in(1).dtype), type);
  const bool one = element_count(scale) == 1 && w.has(2) && element_count(w.in(2).shape) == 1;
  if (w.has(2) && !one && w.in(2).shape != scale)
    return w.error(kShape, "zero points lie as scales do", scale, w.in(2).shape);
  if (block < 0)
    return w.error(kAttribute, "a block has elements", "block_size of 0, for none, or more", block);
  Shape blocks = Shape(in.size(), 1);
  if (block != 0 || element_count(scale) != 1) {
    WARPLOOM_TRY(const size_t axis, checked_axis(w));
    if (block == 0) WARPLOOM_CHECK(check_vector(w, 1, in[axis]));
    blocks[axis] = in[axis];
    if (block != 0) {
      blocks = in;
      blocks[axis] = ceil_div(in[axis], block);
    }
    if (block != 0 && scale != blocks)
      return w.error(kShape,
                     fmt::format("scales are not of blocks of {} along axis {}", block, axis),
                     blocks, scale);
    if (block != 0 && in[axis] % block != 0)
      return w.error(kShape, "the last block is of fewer elements, which is not supported",
                     fmt::format("a multiple of {}", block), in[axis],
                     "pad the tensor to whole blocks");
  }
  const Id zero = w.has(2) ? w.reshape(w.raw(2), blocks, "zero_points") : kAbsent;
  WARPLOOM_TRY(const Id y, dequantized(w, w.raw(0), w.reshape(w.raw(1), blocks, "blocks"), zero));
  return Outputs{y};
}

// (a · scale_a) · (b · scale_b), a [M,K], b [K,N] of 8 bits, scales f32 with as many axes.
Result<Outputs> scaled_matmul(Writer& w) {
  WARPLOOM_TRY(const Dtype to, checked_dtype(w.node.integer("output_dtype"),
                                             "ScaledMatMul's output type", w.place));
  if (!is_wide_float(to))
    return w.error(kAttribute, "sums of products are floats", "output_dtype f32, bf16 or f16", to);
  for (size_t i = 0; i < 4; ++i) {
    const Dtype of = w.in(i).dtype;
    if (i < 2 && of != Dtype::i8 && !(is_float(of) && bits_of(of) == 8))
      return type_error(w, "operands e4m3, e5m2 or i8", of);
    if (i >= 2 && of != Dtype::f32) return type_error(w, "scales f32", of);
    if (w.in(i).shape.size() != 2)
      return w.error(kShape, "operands and scales are matrices", "2 axes", w.in(i).shape);
  }
  WARPLOOM_TRY(const Id a, dequantized(w, w.raw(0), w.raw(2)));
  WARPLOOM_TRY(const Id b, dequantized(w, w.raw(1), w.raw(3)));
  return Outputs{w.cast(w.make(OpKind::MatMul, {a, b}, "product"), to, "y")};
}

Result<Outputs> softmax(Writer& w) {
  WARPLOOM_CHECK(same_type(w, true));
  WARPLOOM_TRY(const size_t at, checked_axis(w));
  return Outputs{softmax_along(w, w.wide(0), at, w.node.op == OpKind::LogSoftmax)};
}

// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss: of logarithms [N,C,..] those of the classes
// [N,..], negative and weighted. What a class picks is found by comparing, which reads the scores
// once.
Result<Outputs> class_loss(Writer& w) {
  const Shape scores = w.in(0).shape;
  const Shape classes = w.in(1).shape;
  if (!is_wide_float(w.in(0).dtype) || (w.has(2) && w.in(2).dtype != w.in(0).dtype))
    return type_error(w, "scores and weights f64, f32, bf16 or f16, alike",
                      w.in(w.has(2) ? 2 : 0).dtype);
  WARPLOOM_CHECK(check_indices(w));
  if (scores.size() < 2 || classes != chained({scores[0]}, entries(scores, 2)))
    return w.error(kShape, "classes do not fit the scores", "[N,C,..] and [N,..]",
                   to_text(scores) + " and " + to_text(classes));
  WARPLOOM_CHECK(check_vector(w, 2, scores[1]));
  const std::string reduction = w.node.text("reduction");
  const Id x = w.wide(0);
  const Id zero = w.scalar(0, x, "zero");
  const Id one = w.scalar(1, x, "one");
  const bool soft = w.node.op == OpKind::SoftmaxCrossEntropyLoss;
  const Id logs = soft ? softmax_along(w, x, 1, true) : x;
  const Id label = w.reshape(w.cast(w.raw(1), Dtype::i64, "label"),
                             chained({scores[0], 1}, entries(scores, 2)), "labels");
  const Shape line = with(Shape(scores.size() - 1, 1), 0, scores[1]);
  const Id hit =
      w.make(OpKind::Equal,
             {label, w.table(Dtype::i64, line, "class", [](int64_t i) { return i; })}, "hit");
  const auto picked = [&](Id of, std::string_view what) {
    return w.reduce(OpKind::ReduceSum, w.make(OpKind::Where, {hit, of, zero}, what), {1}, what, 0);
  };
  Id loss = w.make(OpKind::Neg, {picked(logs, "picked")}, "loss");
  Id weight = kAbsent;
  if (w.has(2)) weight = picked(w.along_channels(w.wide(2), scores.size(), "weights"), "weight");
  if (weight != kAbsent) loss = w.mul(loss, weight, "weighted");
  if (w.node.attributes.contains("ignore_index")) {
    const Id which = w.reshape(label, classes, "which");
    const Id nobody =
        w.scalar(static_cast<double>(w.node.integer("ignore_index")), which, "nobody");
    const Id ignored = w.make(OpKind::Equal, {which, nobody}, "ignored");
    loss = w.make(OpKind::Where, {ignored, zero, loss}, "kept");
    weight = w.make(OpKind::Where, {ignored, zero, weight == kAbsent ? one : weight}, "counted");
  }
  const List all = span(0, classes.size());
  if (reduction == "mean" && weight == kAbsent)
    loss = w.mean(loss, all, "y", 0);
  else if (reduction != "none")
    loss = w.reduce(OpKind::ReduceSum, loss, all, "sum", 0);
  if (reduction == "mean" && weight != kAbsent)
    loss = w.make(OpKind::Div, {loss, w.reduce(OpKind::ReduceSum, weight, all, "share", 0)}, "y");
  return soft ? Outputs{loss, w.cast(logs, w.in(0).dtype, "log_prob")} : Outputs{loss};
}

Result<Outputs> layer_norm(Writer& w) {
  WARPLOOM_TRY(const List axes, normalized_axes(w));
  const Normalized n = normalized(w, w.wide(0), axes);
  return Outputs{scaled(w, n.y, w.wide(1), w.wide(2)), n.mean, n.inverse};
}

Result<Outputs> rms_norm(Writer& w) {
  WARPLOOM_TRY(const List axes, normalized_axes(w));
  const Id x = w.wide(0);
  const Id square = w.mean(w.mul(x, x, "square"), axes, "mean");
  return Outputs{scaled(w, w.mul(x, w.inverse_root(square, w.node.real("epsilon")), "normalized"),
                        w.wide(1), kAbsent)};
}

// x·a + b: with constant statistics a and b are constants.
Result<Outputs> batch_norm(Writer& w) {
  if (w.node.integer("training_mode") != 0)
    return w.error(kAttribute, "BatchNormalization in training mode is not supported",
                   "training_mode 0", "1", "export for inference");
  WARPLOOM_CHECK(check_channel_norm(w));
  const Id x = w.wide(0);
  const Id scale = w.wide(1);
  const Id bias = w.wide(2);
  const Id mean = w.wide(3);
  const Id variance = w.wide(4);
  const Id a = w.mul(scale, w.inverse_root(variance, w.node.real("epsilon")), "a");
  const Id b = w.sub(bias, w.mul(mean, a, "mean_a"), "b");
  const size_t rank = w.rank(x);
  return Outputs{scaled(w, x, w.along_channels(a, rank, "a_channels"),
                        w.along_channels(b, rank, "b_channels"))};
}

// By groups of channels; an instance's are of one channel each.
Result<Outputs> group_norm(Writer& w) {
  WARPLOOM_CHECK(check_channels(w));
  const Shape shape = w.in(0).shape;
  const bool instance = w.node.op == OpKind::InstanceNormalization;
  const int64_t groups = instance ? shape[1] : w.node.integer("num_groups");
  if (!instance && (groups < 1 || shape[1] % groups != 0))
    return w.error(kAttribute, "num_groups does not divide the channels",
                   fmt::format("a divisor of {}", shape[1]), groups);
  const bool by_group = w.in(1).shape == Shape{groups};  // opset 18 scales whole groups
  WARPLOOM_CHECK(check_channel_norm(w, by_group ? groups : 0));
  const int64_t lines = shape[0] * groups;
  Id y = w.wide(0);
  if (groups != shape[1])
    y = w.reshape(y, {shape[0], groups, lines == 0 ? 0 : element_count(shape) / lines}, "groups");
  y = normalized(w, y, span(2, w.rank(y))).y;
  if (!by_group) y = w.reshape(y, shape, "channels");
  y = scaled(w, y, w.along_channels(w.wide(1), w.rank(y), "scale"),
             w.along_channels(w.wide(2), w.rank(y), "bias"));
  return Outputs{w.reshape(y, shape, "y")};
}

Result<Outputs> mean_variance(
    Writer& w) {  // the standard deviation, not the variance, is kept from 0
  WARPLOOM_CHECK(same_type(w, true));
  WARPLOOM_TRY(const List over, axes(w, w.node.integers("axes"), w.rank(w.raw(0))));
  const Id x = w.wide(0);
  const Id centered = w.sub(x, w.mean(x, over, "mean"), "centered");
  const Id deviation = w.make(
      OpKind::Sqrt, {w.mean(w.mul(centered, centered, "square"), over, "variance")}, "deviation");
  return Outputs{
      w.make(OpKind::Div, {centered, w.add(deviation, w.scalar(1e-9, x, "epsilon"), "kept")}, "y")};
}

Result<Outputs> reduce(Writer& w) {
  WARPLOOM_TRY(const List axes, reduced_axes(w));
  return Outputs{w.reduce(w.node.op, w.raw(0), axes, "y", w.keepdims())};
}

// Reductions of a function, and functions of reductions.
Result<Outputs> reduce_through(Writer& w) {
  Id x = w.wide(0);
  Id top = kAbsent;
  WARPLOOM_TRY(const List axes, reduced_axes(w));
  const OpKind op = w.node.op;
  const bool by_powers = op == OpKind::ReduceLogSumExp;
  const bool mean = op == OpKind::ReduceMean;
  if (mean && !is_float(w.dtype(x))) return type_error(w, "f64, f32, bf16 or f16", w.dtype(x));
  if (mean) return Outputs{w.mean(x, axes, "y", w.keepdims())};
  if (op == OpKind::ReduceL1) x = w.make(OpKind::Abs, {x}, "abs");
  if (op == OpKind::ReduceL2 || op == OpKind::ReduceSumSquare) x = w.mul(x, x, "square");
  if (by_powers) {  // infinities stay what they are: the largest is only subtracted where it is
                    // finite
    const double finite = w.dtype(x) == Dtype::f64
                              ? std::numeric_limits<double>::max()
                              : static_cast<double>(std::numeric_limits<float>::max());
    top = w.reduce(OpKind::ReduceMax, x, axes, "max");
    top = w.make(OpKind::Clip, {top, w.scalar(-finite, x, "least"), w.scalar(finite, x, "most")},
                 "finite");
    x = w.make(OpKind::Exp, {w.sub(x, top, "shifted")}, "exp");
  }
  Id y = w.reduce(OpKind::ReduceSum, x, axes, "sum", w.keepdims());
  if (op == OpKind::ReduceL2) y = w.make(OpKind::Sqrt, {y}, "root");
  if (op == OpKind::ReduceLogSum || by_powers) y = w.make(OpKind::Log, {y}, "log");
  return Outputs{by_powers ? w.add(y, w.reshape(top, w.shape(y), "top"), "y") : y};
}

// The first, or last, place where the input is its largest; a NaN counts as larger, and smaller,
// than all else.
Result<Outputs> arg_extreme(Writer& w) {
  const Id x = w.raw(0);
  WARPLOOM_TRY(const List axis, reduced_axes(w));
  const Shape line = entries(w.shape(x), axis[0]);
  if (line[0] == 0)
    return w.error(kShape, "the largest of nothing", "1 element or more along the axis",
                   w.shape(x));
  const Id best = w.reduce(w.node.op == OpKind::ArgMax ? OpKind::ReduceMax : OpKind::ReduceMin, x,
                           axis, "best");
  Id found = w.make(OpKind::Equal, {x, best}, "equal");
  if (is_float(w.dtype(x)))
    found = w.make(OpKind::Or, {found, w.make(OpKind::IsNaN, {x}, "nan")}, "found");
  const bool last = w.node.integer("select_last_index") != 0;
  const Id place = w.table(Dtype::i64, with(Shape(line.size(), 1), 0, line[0]), "places",
                           [](int64_t i) { return i; });
  const Id none = w.constant(Dtype::i64, {}, {last ? -1 : static_cast<double>(line[0])}, "none");
  const Id where = w.make(OpKind::Where, {found, place, none}, "where");
  return Outputs{
      w.reduce(last ? OpKind::ReduceMax : OpKind::ReduceMin, where, axis, "y", w.keepdims())};
}

// Pools and convolutions.
Result<Outputs> windows(Writer& w) {
  WARPLOOM_CHECK(check_power(w));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(w));
  if (w.node.op == OpKind::Conv)
    return Outputs{biased(w, windowed(w, OpKind::Conv, {w.raw(0), w.raw(1)}, spec))};
  if (w.node.op == OpKind::MaxPool) return Outputs{windowed(w, OpKind::MaxPool, {w.raw(0)}, spec)};
  const Id x = w.wide(0);
  const auto sum = [&](Id of) { return windowed(w, OpKind::SumPool, {of}, spec); };
  if (w.node.op == OpKind::LpPool) return Outputs{rooted(w, x, sum)};
  return Outputs{w.mul(sum(x), shares(w, x, spec, w.node.integer("count_include_pad") != 0), "y")};
}

Result<Outputs> global_pool(Writer& w) {
  WARPLOOM_CHECK(same_type(w, true));
  WARPLOOM_CHECK(check_channels(w));
  WARPLOOM_CHECK(check_power(w));
  const Id x = w.wide(0);
  const List axes = span(2, w.rank(x));
  if (w.node.op == OpKind::GlobalAveragePool) return Outputs{w.mean(x, axes, "y")};
  if (w.node.op == OpKind::GlobalMaxPool) return Outputs{w.reduce(OpKind::ReduceMax, x, axes, "y")};
  return Outputs{
      rooted(w, x, [&](Id power) { return w.reduce(OpKind::ReduceSum, power, axes, "sum"); })};
}

// x / (bias + alpha/size · sum of the squares of `size` channels around its own)^beta
Result<Outputs> lrn(Writer& w) {
  WARPLOOM_CHECK(same_type(w, true));
  WARPLOOM_CHECK(check_channels(w));
  const int64_t size = w.node.integer("size");
  if (size < 1) return w.error(kAttribute, "LRN lacks its size", "1 or more", size);
  const Id x = w.wide(0);
  const Shape whole = w.shape(x);
  const Shape lines = {whole[0], 1, whole[1], element_count(entries(whole, 2))};
  WindowSpec spec{{size, 1}, {1, 1}, {1, 1}, {(size - 1) / 2, 0}, {size / 2, 0}, {}, {}};
  const Id sum =
      windowed(w, OpKind::SumPool, {w.reshape(w.mul(x, x, "square"), lines, "lines")}, spec);
  const Id base =
      w.add(w.mul(w.reshape(sum, whole, "sum"),
                  w.scalar(w.node.real("alpha") / static_cast<double>(size), x, "alpha"), "share"),
            w.scalar(w.node.real("bias"), x, "bias"), "base");
  return Outputs{w.make(
      OpKind::Div,
      {x, w.make(OpKind::Pow, {base, w.scalar(w.node.real("beta"), x, "beta")}, "power")}, "y")};
}

Result<Outputs> lp_norm(Writer& w) {
  WARPLOOM_CHECK(same_type(w, true));
  WARPLOOM_CHECK(check_power(w));
  WARPLOOM_TRY(const size_t at, checked_axis(w));
  const Id x = w.wide(0);
  const Id norm = rooted(
      w, x, [&](Id power) { return w.reduce(OpKind::ReduceSum, power, span(at, at + 1), "sum"); });
  const Id none =
      w.make(OpKind::Equal, {norm, w.scalar(0, x, "zero")}, "none");  // nothing stays nothing
  return Outputs{w.make(OpKind::Div,
                        {x, w.make(OpKind::Where, {none, w.scalar(1, x, "one"), norm}, "divisor")},
                        "y")};
}

// Outputs whose places are the same modulo the stride s, a phase, see every s-th weight alone. One
// convolution with turned weights makes all phases as channels, which are then laid between one
// another:
//
//   y[s q + r] = sum over t of x[q - t] w[s t + r]        w in zeros up to a whole number of
//   strides
Result<Outputs> conv_transpose(Writer& w) {
  WARPLOOM_CHECK(check_weights(w));
  WARPLOOM_TRY(WindowSpec spec, transposed_spec(w));
  const size_t count = spec.kernel.size();
  const Shape in = w.shape(w.raw(0));
  const Shape given = w.shape(w.raw(1));
  const Shape strides = std::exchange(spec.strides, Shape(count, 1));
  const int64_t groups = w.node.integer("group", 1);
  const Id zero = w.scalar(0, w.raw(0), "zero");
  Shape apart = {given[0], given[1]};
  Shape dilated = apart;
  Shape phased = {groups, given[0] / groups, given[1]};
  Shape turned = {groups * given[1], phased[1]};
  Shape stacked = {in[0], turned[0]};
  Shape laid = stacked;
  List between(2, 0);
  List lead(2, 0);
  List behind(2, 0);
  List order = {0, 2};
  List exchanged = {0, 1};
  List crop(2, 0);
  List cropped(2, 0);
  List first(2, 0);
  List last(2, 0);
  int64_t phases = 1;
  for (size_t i = 0; i < count; ++i) {
    const int64_t s = strides[i];
    const int64_t size = spec.kernel[i];
    const int64_t d = s > 1 ? std::exchange(spec.dilations[i], 1) : 1;
    int64_t& taps = spec.kernel[i];
    int64_t& before = spec.before[i];
    int64_t& after = spec.after[i];
    int64_t cut = (size - 1) * d - before;
    int64_t places = spec.size[i];  // what the whole output has before this one
    apart.insert(apart.end(), {size, 1});
    between.insert(between.end(), {0, d - 1});
    dilated.push_back(size * d);
    taps = ceil_div((size - 1) * d + 1, s);
    // With zeros before them, where there is room, no phase of the first place is cut.
    lead.push_back(round_up(cut, s) - cut);
    if ((size - 1) * d + 1 + lead.back() > taps * s) lead.back() = 0;
    if (s > 1) {
      cut += lead.back();
      places = ceil_div(cut + spec.size[i], s) - cut / s;
      before = taps - 1 - cut / s;
      after = places + taps - 1 - before - in[i + 2];
    }
    phases *= s;
    behind.push_back(taps * s - size * d - lead.back());
    phased.insert(phased.end(), {taps, s});
    order.push_back(static_cast<int64_t>(4 + 2 * i));
    stacked.push_back(s);
    laid.push_back(places * s);
    first.push_back(s > 1 ? -(cut % s) : 0);
    last.push_back(spec.size[i] - laid.back() - first.back());
    crop.push_back(std::min<int64_t>(before, 0));
    cropped.push_back(std::min<int64_t>(after, 0));
    before -= crop.back();
    after -= cropped.back();
  }
  order.push_back(1);
  for (size_t i = 0; i < count; ++i) {
    order.push_back(static_cast<int64_t>(3 + 2 * i));
    stacked.push_back(laid[i + 2] / strides[i]);
    exchanged.insert(exchanged.end(),
                     {static_cast<int64_t>(2 + count + i), static_cast<int64_t>(2 + i)});
  }
  Id weights = w.raw(1);
  if (dilated != given)
    weights =
        w.pad(w.reshape(weights, apart, "apart"), List(apart.size(), 0), between, zero, "spread");
  weights = w.pad(w.reshape(weights, dilated, "dilated"), lead, behind, zero, "whole");
  weights =
      w.make(OpKind::Transpose, {w.reshape(weights, phased, "taps")}, "phases", {{"perm", order}});
  turned[0] *= phases;
  const List back(count, -1);
  const List beyond(count, std::numeric_limits<int64_t>::min());
  weights =
      w.make(OpKind::Slice,
             {w.reshape(weights, chained(turned, spec.kernel), "turned"), w.list(back, "starts"),
              w.list(beyond, "ends"), w.list(span(2, 2 + count), "axes"), w.list(back, "steps")},
             "backwards");
  Id y =
      windowed(w, OpKind::Conv, {w.pad(w.raw(0), crop, cropped, zero, "cropped"), weights}, spec);
  if (phases > 1) {
    y = w.make(OpKind::Transpose, {w.reshape(y, stacked, "stacked")}, "exchanged",
               {{"perm", exchanged}});
    y = w.pad(w.reshape(y, laid, "laid"), first, last, zero, "whole");
  }
  return Outputs{biased(w, y)};
}
}  // namespace warploom::graph::rewrites
