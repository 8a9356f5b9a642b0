// decompose(): every node that is no primitive by the rule of its operator. The rules follow ONNX's definitions of the operators.
#include <cmath>
#include <set>
#include "graph/operators.h"
namespace warploom::graph::composites {
namespace {
using Id = TensorId;
using List = std::vector<std::int64_t>;
using Outputs = std::vector<Id>;

// Writes the primitives of one node. Every tensor gets the type and shape of its rule at once, and is folded where it is known.
class Writer {
 public:
  Writer(Graph& of, Node on, std::set<std::string>& names)
      : node(std::move(on)), graph_(of), prefix_(node.name.empty() ? name(node.outputs[0]) : node.name), names_(names) {}

  Node node;
  std::vector<Node> made;

  bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kAbsent; }
  bool wants(std::size_t i) const { return i < node.outputs.size() && node.outputs[i] != kAbsent; }
  const Shape& shape(Id id) const { return graph_.tensor(id).shape; }
  std::size_t rank(Id id) const { return shape(id).size(); }
  Dtype dtype(Id id) const { return graph_.tensor(id).dtype; }
  const Graph& graph() const { return graph_; }
  Question question() const { return {graph_, node}; }

  Id raw(std::size_t i) const { return has(i) ? node.inputs[i] : kAbsent; }
  // An input in the type that it is computed in: f32 for 16 bits.
  Id in(std::size_t i) {
    const Id id = raw(i);
    if (id == kAbsent || !is_float(dtype(id)) || bits_of(dtype(id)) != 16) return id;
    return cast(id, Dtype::f32, i == 0 ? "wide" : fmt::format("wide{}", i));
  }
  Id make(OpKind op, std::vector<Id> inputs, std::string_view what, std::map<std::string, Attribute> attributes = {}) {
    Node next{op, fresh(what), std::move(inputs), {}, std::move(attributes)};
    next.outputs = {graph_.add_tensor({{next.name, Dtype::f32, {}}, std::nullopt})};
    if (status) status = infer_node(graph_, next);
    if (!status) return next.inputs[0];
    const Id out = next.outputs[0];
    if (!graph_.tensor(out).constant) made.push_back(std::move(next));
    return out;
  }
  Id constant(Dtype type, Shape shape, const std::vector<double>& values, std::string_view what) {
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(bytes_of(type)));
    for (std::size_t i = 0; i < values.size(); ++i) store_from_double(type, bytes.data(), i, values[i]);
    return graph_.add_tensor({{fresh(what), type, std::move(shape)}, std::move(bytes)});
  }
  Id scalar(double value, Id like, std::string_view what) { return constant(dtype(like), {}, {value}, what); }
  Id list(const List& values, std::string_view what) {
    return constant(Dtype::i64, {static_cast<std::int64_t>(values.size())}, {values.begin(), values.end()}, what);
  }

  Id cast(Id x, Dtype to, std::string_view what) {
    if (dtype(x) == to) return x;
    return make(OpKind::Cast, {x}, what, {{"to", std::int64_t{onnx_type_of(to)}}});
  }
  Id reshape(Id x, const Shape& to, std::string_view what) {
    if (shape(x) == to) return x;
    return make(OpKind::Reshape, {x, list(to, fmt::format("{}_shape", what))}, what, {{"allowzero", std::int64_t{1}}});
  }
  Id reduce(OpKind op, Id x, const List& axes, std::string_view what, std::int64_t keepdims = 1) {
    return axes.empty() ? x : make(op, {x}, what, {{"axes", axes}, {"keepdims", keepdims}});
  }
  std::int64_t keepdims() const { return node.integer("keepdims", 1); }
  Id add(Id a, Id b, std::string_view what) { return make(OpKind::Add, {a, b}, what); }
  Id sub(Id a, Id b, std::string_view what) { return make(OpKind::Sub, {a, b}, what); }
  Id mul(Id a, Id b, std::string_view what) { return make(OpKind::Mul, {a, b}, what); }

  // Over `axes`, which stay as 1 or go.
  Id mean(Id x, const List& axes, std::string_view what, std::int64_t keepdims = 1) {
    double count = 1;
    for (std::int64_t axis : axes) count *= static_cast<double>(shape(x)[static_cast<std::size_t>(axis)]);
    const Id share = scalar(1 / count, x, fmt::format("{}_share", what));
    return mul(reduce(OpKind::ReduceSum, x, axes, fmt::format("{}_sum", what), keepdims), share, what);
  }
  // [C] as [C,1,..], which broadcasting puts along axis 1 of `rank` axes.
  Id along_channels(Id x, std::size_t of_rank, std::string_view what) {
    Shape to(of_rank - 1, 1);
    to[0] = shape(x)[0];
    return reshape(x, to, what);
  }
  // 1/sqrt(x + epsilon)
  Id inverse_root(Id x, double epsilon) {
    const Id moved = add(x, scalar(epsilon, x, "epsilon"), "moved");
    return make(OpKind::Reciprocal, {make(OpKind::Sqrt, {moved}, "deviation")}, "inverse");
  }

  Status status = ok();

 private:
  const std::string& name(Id id) const { return graph_.tensor(id).name; }
  std::string fresh(std::string_view what) {
    std::string wanted = fmt::format("{}/{}", prefix_, what);
    for (int i = 2; !names_.insert(wanted).second; ++i) wanted = fmt::format("{}/{}.{}", prefix_, what, i);
    return wanted;
  }

  Graph& graph_;
  std::string prefix_;
  std::set<std::string>& names_;  // of all tensors
};

List span(std::size_t begin, std::size_t end) {
  List axes(end - std::min(begin, end));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(begin));
  return axes;
}

List chained(List first, const List& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Outputs softmax(Writer& w) {
  const Id x = w.in(0);
  const List axis = {static_cast<std::int64_t>(w.question().axis(w.rank(x)))};
  const Id shifted = w.sub(x, w.reduce(OpKind::ReduceMax, x, axis, "max"), "shifted");
  const Id powers = w.make(OpKind::Exp, {shifted}, "exp"), sum = w.reduce(OpKind::ReduceSum, powers, axis, "sum");
  if (w.node.op == OpKind::LogSoftmax) return {w.sub(shifted, w.make(OpKind::Log, {sum}, "log"), "y")};
  return {w.mul(powers, w.make(OpKind::Reciprocal, {sum}, "inverse"), "y")};
}

struct Normalized {
  Id y, mean, inverse;
};
Normalized normalized(Writer& w, Id x, const List& axes) {
  const Id mean = w.mean(x, axes, "mean"), centered = w.sub(x, mean, "centered");
  const Id variance = w.mean(w.mul(centered, centered, "square"), axes, "variance");
  const Id inverse = w.inverse_root(variance, w.node.real("epsilon"));
  return {w.mul(centered, inverse, "normalized"), mean, inverse};
}
Id scaled(Writer& w, Id y, Id scale, Id bias) {
  if (scale != kAbsent) y = w.mul(y, scale, "scaled");
  return bias != kAbsent ? w.add(y, bias, "y") : y;
}

Outputs layer_norm(Writer& w) {
  const Id x = w.in(0);
  const Normalized n = normalized(w, x, span(w.question().axis(w.rank(x)), w.rank(x)));
  return {scaled(w, n.y, w.in(1), w.in(2)), n.mean, n.inverse};
}

// x·a + b: with constant statistics a and b are constants.
Outputs batch_norm(Writer& w) {
  const Id x = w.in(0), scale = w.in(1), bias = w.in(2), mean = w.in(3), variance = w.in(4);
  const Id a = w.mul(scale, w.inverse_root(variance, w.node.real("epsilon")), "a");
  const Id b = w.sub(bias, w.mul(mean, a, "mean_a"), "b");
  const std::size_t rank = w.rank(x);
  return {scaled(w, x, w.along_channels(a, rank, "a_channels"), w.along_channels(b, rank, "b_channels"))};
}

Outputs instance_norm(Writer& w) {
  const Id x = w.in(0);
  const std::size_t rank = w.rank(x);
  const Id y = normalized(w, x, span(2, rank)).y;
  return {scaled(w, y, w.along_channels(w.in(1), rank, "scale"), w.along_channels(w.in(2), rank, "bias"))};
}

Outputs group_norm(Writer& w) {
  const Id x = w.in(0);
  const Shape shape = w.shape(x);
  const std::int64_t groups = w.node.integer("num_groups"), lines = shape[0] * groups;
  const bool by_group = w.shape(w.in(1)) == Shape{groups};
  Id y = normalized(w, w.reshape(x, {shape[0], groups, lines == 0 ? 0 : element_count(shape) / lines}, "groups"), {2}).y;
  if (!by_group) y = w.reshape(y, shape, "channels");
  y = scaled(w, y, w.along_channels(w.in(1), w.rank(y), "scale"), w.along_channels(w.in(2), w.rank(y), "bias"));
  return {w.reshape(y, shape, "y")};
}

Outputs rms_norm(Writer& w) {
  const Id x = w.in(0);
  const Id square = w.mean(w.mul(x, x, "square"), span(w.question().axis(w.rank(x)), w.rank(x)), "mean");
  return {scaled(w, w.mul(x, w.inverse_root(square, w.node.real("epsilon")), "normalized"), w.in(1), kAbsent)};
}

Outputs mean_variance(Writer& w) {  // the standard deviation, not the variance, is kept from 0
  const Id x = w.in(0);
  List axes = w.node.integers("axes");
  for (std::int64_t& axis : axes) axis = *normalized_axis(axis, w.rank(x), "");
  std::sort(axes.begin(), axes.end());
  const Id centered = w.sub(x, w.mean(x, axes, "mean"), "centered");
  const Id deviation = w.make(OpKind::Sqrt, {w.mean(w.mul(centered, centered, "square"), axes, "variance")}, "deviation");
  return {w.make(OpKind::Div, {centered, w.add(deviation, w.scalar(1e-9, x, "epsilon"), "kept")}, "y")};
}

Outputs reduce(Writer& w) { return {w.reduce(w.node.op, w.raw(0), *reduced_axes(w.question()), "y", w.keepdims())}; }
Outputs reduce_mean(Writer& w) { return {w.mean(w.in(0), *reduced_axes(w.question()), "y", w.keepdims())}; }

// Reductions of a function, and functions of reductions.
Outputs reduce_through(Writer& w) {
  Id x = w.in(0), top = kAbsent;
  const List axes = *reduced_axes(w.question());
  const OpKind op = w.node.op;
  const bool by_powers = op == OpKind::ReduceLogSumExp;
  if (op == OpKind::ReduceL1) x = w.make(OpKind::Abs, {x}, "abs");
  if (op == OpKind::ReduceL2 || op == OpKind::ReduceSumSquare) x = w.mul(x, x, "square");
  if (by_powers) {  // infinities stay what they are: the largest is only subtracted where it is finite
    const double finite =
        w.dtype(x) == Dtype::f64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
    top = w.reduce(OpKind::ReduceMax, x, axes, "max");
    top = w.make(OpKind::Clip, {top, w.scalar(-finite, x, "least"), w.scalar(finite, x, "most")}, "finite");
    x = w.make(OpKind::Exp, {w.sub(x, top, "shifted")}, "exp");
  }
  Id y = w.reduce(OpKind::ReduceSum, x, axes, "sum", w.keepdims());
  if (op == OpKind::ReduceL2) y = w.make(OpKind::Sqrt, {y}, "root");
  if (op == OpKind::ReduceLogSum || by_powers) y = w.make(OpKind::Log, {y}, "log");
  return {by_powers ? w.add(y, w.reshape(top, w.shape(y), "top"), "y") : y};
}

// The first, or last, place where the input is its largest; a NaN counts as larger, and smaller, than all else.
Outputs arg_extreme(Writer& w) {
  const Id x = w.raw(0);
  const List axis = *reduced_axes(w.question());
  const auto at = static_cast<std::size_t>(axis[0]);
  const Id best = w.reduce(w.node.op == OpKind::ArgMax ? OpKind::ReduceMax : OpKind::ReduceMin, x, axis, "best");
  Id found = w.make(OpKind::Equal, {x, best}, "equal");
  if (is_float(w.dtype(x))) found = w.make(OpKind::Or, {found, w.make(OpKind::IsNaN, {x}, "nan")}, "found");
  Shape line(w.rank(x) - at, 1);
  line[0] = w.shape(x)[at];
  std::vector<double> places;
  for (std::int64_t i = 0; i < line[0]; ++i) places.push_back(static_cast<double>(i));
  const bool last = w.node.integer("select_last_index") != 0;
  const Id place = w.constant(Dtype::i64, line, places, "places");
  const Id none = w.constant(Dtype::i64, {}, {last ? -1 : static_cast<double>(line[0])}, "none");
  const Id where = w.make(OpKind::Where, {found, place, none}, "where");
  return {w.reduce(last ? OpKind::ReduceMax : OpKind::ReduceMin, where, axis, "y", w.keepdims())};
}

// The primitive with all its attributes.
Id windowed(Writer& w, OpKind op, std::vector<Id> inputs, const WindowSpec& spec) {
  const List pads = chained(spec.before, spec.after);
  std::map<std::string, Attribute> attributes = {
      {"kernel_shape", spec.kernel}, {"strides", spec.strides}, {"dilations", spec.dilations}, {"pads", pads}};
  if (op == OpKind::Conv) attributes["group"] = w.node.integer("group", 1);
  return w.make(op, std::move(inputs), "windows", std::move(attributes));
}
Id biased(Writer& w, Id y) {
  if (!w.has(2) || is_zero(w.graph().tensor(w.raw(2)))) return y;
  return w.add(y, w.along_channels(w.raw(2), w.rank(y), "bias"), "y");
}
Outputs max_pool(Writer& w) { return {windowed(w, OpKind::MaxPool, {w.raw(0)}, *window_spec(w.question()))}; }
Outputs conv(Writer& w) { return {biased(w, windowed(w, OpKind::Conv, {w.raw(0), w.raw(1)}, *window_spec(w.question())))}; }

// 1 over how many elements each window counts: a scalar where all count the same, else of the output's spatial shape.
Id shares(Writer& w, Id like, const WindowSpec& spec, bool with_pads) {
  const Shape in = w.shape(like);
  std::vector<double> counts = {1};
  for (std::size_t i = 0; i < spec.kernel.size(); ++i) {
    const std::int64_t low = with_pads ? -spec.before[i] : 0, high = in[i + 2] + (with_pads ? spec.counted[i] : 0);
    std::vector<double> next;
    for (double outer : counts)
      for (std::int64_t place = 0; place < spec.size[i]; ++place) {
        // Taps t with low <= first + t·dilation < high.
        const std::int64_t first = place * spec.strides[i] - spec.before[i], step = spec.dilations[i];
        const std::int64_t from = std::max<std::int64_t>(0, (low - first + step - 1) / step);
        const std::int64_t to = std::min(spec.kernel[i], (high - first + step - 1) / step);
        next.push_back(outer * static_cast<double>(std::max<std::int64_t>(to - from, 0)));
      }
    counts = std::move(next);
  }
  for (double& count : counts) count = 1 / std::max(count, 1.0);
  if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end())
    return w.scalar(counts.empty() ? 1 : counts[0], like, "share");
  return w.constant(w.dtype(like), chained({1, 1}, spec.size), counts, "shares");
}
Outputs average_pool(Writer& w) {
  const Id x = w.in(0);
  const WindowSpec spec = *window_spec(w.question());
  const Id sum = windowed(w, OpKind::SumPool, {x}, spec);
  return {w.mul(sum, shares(w, x, spec, w.node.integer("count_include_pad") != 0), "y")};
}
// The p-th root of the sum over windows, or over all, of |x|^p.
template <class Sum>
Id rooted(Writer& w, Id x, const Sum& sum) {
  const auto p = static_cast<double>(w.node.integer("p"));
  const Id size = w.make(OpKind::Abs, {x}, "abs");
  if (p == 1) return sum(size);
  return w.make(OpKind::Pow, {sum(w.make(OpKind::Pow, {size, w.scalar(p, x, "p")}, "power")), w.scalar(1 / p, x, "root")}, "y");
}
Outputs lp_pool(Writer& w) {
  return {rooted(w, w.in(0), [&](Id x) { return windowed(w, OpKind::SumPool, {x}, *window_spec(w.question())); })};
}
Outputs global_pool(Writer& w) {
  const Id x = w.in(0);
  const List axes = span(2, w.rank(x));
  if (w.node.op == OpKind::GlobalAveragePool) return {w.mean(x, axes, "y")};
  if (w.node.op == OpKind::GlobalMaxPool) return {w.reduce(OpKind::ReduceMax, x, axes, "y")};
  return {rooted(w, x, [&](Id power) { return w.reduce(OpKind::ReduceSum, power, axes, "sum"); })};
}
Outputs lp_norm(Writer& w) {
  const Id x = w.in(0);
  const List axis = {static_cast<std::int64_t>(w.question().axis(w.rank(x)))};
  const Id norm = rooted(w, x, [&](Id power) { return w.reduce(OpKind::ReduceSum, power, axis, "sum"); });
  const Id none = w.make(OpKind::Equal, {norm, w.scalar(0, x, "zero")}, "none");  // nothing stays nothing
  return {w.make(OpKind::Div, {x, w.make(OpKind::Where, {none, w.scalar(1, x, "one"), norm}, "divisor")}, "y")};
}

// With zeros between the input's elements, a convolution with the turned weights. Pads less than 0 crop.
Outputs conv_transpose(Writer& w) {
  Id x = w.raw(0), weights = w.raw(1);
  WindowSpec spec = *transposed_spec(w.question());
  const std::size_t count = spec.kernel.size();
  const Shape in = w.shape(x), given = w.shape(weights);
  Shape apart = {in[0], in[1]}, joined = apart;
  List zeros(4 + 4 * count, 0), crop(4 + 2 * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    apart.insert(apart.end(), {in[i + 2], 1});
    joined.push_back(in[i + 2] * spec.strides[i]);
    zeros[2 + 2 * count + 3 + 2 * i] = spec.strides[i] - 1;  // after each element; those after the last are cropped again
    spec.after[i] -= std::exchange(spec.strides[i], 1) - 1;
    crop[2 + i] = std::min<std::int64_t>(spec.before[i], 0);
    crop[4 + count + i] = std::min<std::int64_t>(spec.after[i], 0);
    spec.before[i] -= crop[2 + i];
    spec.after[i] -= crop[4 + count + i];
  }
  const Id zero = w.scalar(0, x, "zero");
  if (joined != in) {
    x = w.make(OpKind::Pad, {w.reshape(x, apart, "apart"), w.list(zeros, "zeros"), zero}, "spread");
    x = w.reshape(x, joined, "joined");
  }
  if (std::any_of(crop.begin(), crop.end(), [](std::int64_t p) { return p != 0; }))
    x = w.make(OpKind::Pad, {x, w.list(crop, "crop"), zero}, "cropped");
  // [C, M/g, ..] → [M, C/g, ..], and every spatial axis backwards.
  const std::int64_t groups = w.node.integer("group", 1);
  const Shape places(given.begin() + 2, given.end());
  const Shape parted = chained({groups, given[0] / groups, given[1]}, places);
  const Shape turned = chained({groups * given[1], given[0] / groups}, places);
  List order = span(0, parted.size());
  std::swap(order[1], order[2]);
  weights = w.make(OpKind::Transpose, {w.reshape(weights, parted, "groups")}, "exchanged", {{"perm", order}});
  const List last(count, -1), beyond(count, std::numeric_limits<std::int64_t>::min());
  weights = w.make(OpKind::Slice,
                   {w.reshape(weights, turned, "turned"), w.list(last, "starts"), w.list(beyond, "ends"),
                    w.list(span(2, 2 + count), "axes"), w.list(last, "steps")},
                   "backwards");
  return {biased(w, windowed(w, OpKind::Conv, {x, weights}, spec))};
}

Outputs sum(Writer& w) {
  Id total = w.in(0);
  for (std::size_t i = 1; i < w.node.inputs.size(); ++i) total = w.add(total, w.in(i), "sum");
  const double share = 1 / static_cast<double>(w.node.inputs.size());
  return {w.node.op == OpKind::Mean && share < 1 ? w.mul(total, w.scalar(share, total, "share"), "y") : total};
}

Outputs split(Writer& w) {
  const Id x = w.raw(0);
  const std::size_t axis = w.question().axis(w.rank(x));
  Outputs parts;
  std::int64_t begin = 0;
  for (const Id out : w.node.outputs) {
    const std::int64_t end = begin + (out == kAbsent ? 0 : w.shape(out)[axis]);
    const Id on = w.list({static_cast<std::int64_t>(axis)}, "axis");
    parts.push_back(w.make(OpKind::Slice, {x, w.list({begin}, "start"), w.list({end}, "end"), on}, "part"));
    begin = end;
  }
  return parts;
}

// [a,b] repeated r, s times: [1,a,1,b] expanded to [r,a,s,b].
Outputs tile(Writer& w) {
  const Id x = w.raw(0);
  const List repeats = *constant_integers(w.graph(), w.raw(1));
  Shape apart, repeated, whole = w.shape(x);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] != 1) apart.push_back(1), repeated.push_back(repeats[i]);
    apart.push_back(whole[i]), repeated.push_back(whole[i]);
    whole[i] *= repeats[i];
  }
  const Id expanded = w.make(OpKind::Expand, {w.reshape(x, apart, "apart"), w.list(repeated, "repeats")}, "repeated");
  return {w.reshape(expanded, whole, "y")};
}

Outputs blocks(Writer& w) {
  const Id x = w.raw(0), out = w.node.outputs[0];
  const Shape in = w.shape(x), to = w.shape(out);
  const std::int64_t b = w.node.integer("blocksize");
  Shape apart = {in[0], in[1], in[2] / b, b, in[3] / b, b};
  List order = {0, 3, 5, 1, 2, 4};
  if (w.node.op == OpKind::DepthToSpace) {
    const bool depth_first = w.node.text("mode") == "DCR";
    apart = depth_first ? Shape{in[0], b, b, to[1], in[2], in[3]} : Shape{in[0], to[1], b, b, in[2], in[3]};
    order = depth_first ? List{0, 3, 4, 1, 5, 2} : List{0, 1, 4, 2, 5, 3};
  }
  return {w.reshape(w.make(OpKind::Transpose, {w.reshape(x, apart, "apart")}, "turned", {{"perm", order}}), to, "y")};
}

Outputs trilu(Writer& w) {
  const Id x = w.raw(0);
  const Shape matrix(w.shape(x).end() - 2, w.shape(x).end());
  const std::int64_t diagonal = w.has(1) ? constant_integers(w.graph(), w.raw(1))->front() : 0;
  const bool upper = w.node.integer("upper") != 0;
  std::vector<double> kept;
  for (std::int64_t row = 0; row < matrix[0]; ++row)
    for (std::int64_t column = 0; column < matrix[1]; ++column)
      kept.push_back((upper ? column - row >= diagonal : column - row <= diagonal) ? 1 : 0);
  return {w.make(OpKind::Where, {w.constant(Dtype::boolean, matrix, kept, "mask"), x, w.scalar(0, x, "zero")}, "y")};
}

Outputs range(Writer& w) {
  const RangeSpec spec = *range_spec(w.question());
  std::vector<double> values;
  for (std::int64_t i = 0; i < spec.count; ++i) values.push_back(spec.begin + static_cast<double>(i) * spec.step);
  return {w.constant(w.dtype(w.raw(0)), {spec.count}, values, "y")};
}

// Pads and value given, for every axis.
Outputs pad(Writer& w) {
  const PadSpec spec = *pad_spec(w.question());
  const List pads = chained(spec.before, spec.after);
  const Id x = w.raw(0), value = w.has(2) ? w.reshape(w.raw(2), {}, "value") : w.scalar(0, x, "value");
  return {w.make(OpKind::Pad, {x, w.list(pads, "pads"), value}, "y")};
}

// What the node's outputs are, one each; they may be of a wider type.
struct Row {
  OpKind op;
  Outputs (*rule)(Writer&);
};
const Row kRules[] = {
    {OpKind::Conv, conv},        {OpKind::MaxPool, max_pool},  {OpKind::ReduceSum, reduce}, {OpKind::ReduceMax, reduce},
    {OpKind::ReduceMin, reduce}, {OpKind::ReduceProd, reduce}, {OpKind::Pad, pad},
#define WARPLOOM_OP(...)
#define WARPLOOM_COMPOSITE(name, since, least, most, shape_rule, rule) {OpKind::name, rule},
#include "graph/ops.def"
};
}  // namespace
}  // namespace warploom::graph::composites
namespace warploom::graph {
namespace {
// In the one form that primitives have.
bool is_primitive(const Node& node) {
  const auto has = [&](std::string_view key) { return node.attributes.contains(std::string(key)); };
  switch (class_of(node.op)) {
    case OpClass::composite: return false;
    case OpClass::reduction: {
      const auto axes = node.integers("axes");
      const bool resolved = !axes.empty() && axes[0] >= 0 && std::is_sorted(axes.begin(), axes.end());
      return resolved && node.inputs.size() == 1 && !has("noop_with_empty_axes");
    }
    case OpClass::convolution:
    case OpClass::window:
      return has("kernel_shape") && has("strides") && has("dilations") && has("pads") && !has("auto_pad") && !has("ceil_mode") &&
             !has("storage_order") && node.inputs.size() < 3;
    default: return node.op != OpKind::Pad || (node.inputs.size() == 3 && !has("mode"));
  }
}

// The node's primitives in its place; its outputs keep their tensors.
Status rewrite(Graph& graph, const Node& node, std::set<std::string>& names) {
  composites::Writer w(graph, node, names);
  const std::vector<TensorId> outputs = std::ranges::find(composites::kRules, node.op, &composites::Row::op)->rule(w);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!w.wants(i)) continue;
    const TensorId wanted = node.outputs[i];
    const TensorId found = w.cast(outputs[i], graph.tensor(wanted).dtype, "narrow");
    if (!w.status) break;
    if (graph.tensor(found).shape != graph.tensor(wanted).shape || graph.tensor(found).dtype != graph.tensor(wanted).dtype)
      return fail({ErrorCode::kInternal, "a composite was rewritten wrongly", place_of(node), to_text(graph.tensor(wanted)),
                   to_text(graph.tensor(found))});
    // simplify() lets whatever made the result make the output itself.
    if (graph.tensor(found).constant) graph.tensor(wanted).constant = graph.tensor(found).constant;
    else w.made.push_back({OpKind::Identity, node.name, {found}, {wanted}, {}});
  }
  if (!w.status) {
    Error error = w.status.error();
    error.place = place_of(node);
    return fail(std::move(error));
  }
  graph.nodes.insert(graph.nodes.end(), std::make_move_iterator(w.made.begin()), std::make_move_iterator(w.made.end()));
  return ok();
}
}  // namespace
bool is_primitive(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return is_primitive(node); });
}

Result<Graph> decompose(Graph graph) {
  if (is_primitive(graph)) return graph;
  std::vector<Node> given = std::move(graph.nodes);
  graph.nodes.clear();
  std::set<std::string> names;
  for (const Tensor& tensor : graph.tensors) names.insert(tensor.name);
  for (const Node& node : given)
    if (is_primitive(node)) graph.nodes.push_back(node);
    else WARPLOOM_CHECK(rewrite(graph, node, names));
  return simplify(std::move(graph));
}
}  // namespace warploom::graph
