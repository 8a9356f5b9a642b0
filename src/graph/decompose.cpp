// decompose(): composites as primitives, one small function each.
#include <cmath>
#include "graph/operators.h"
namespace warploom::graph {
namespace {
using Id = TensorId;
using List = std::vector<std::int64_t>;

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
  Id reduce(OpKind op, Id x, const List& axes, std::string_view what) {
    return make(op, {x}, what, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  }
  Id add(Id a, Id b, std::string_view what) { return make(OpKind::Add, {a, b}, what); }
  Id sub(Id a, Id b, std::string_view what) { return make(OpKind::Sub, {a, b}, what); }
  Id mul(Id a, Id b, std::string_view what) { return make(OpKind::Mul, {a, b}, what); }

  // Over `axes`, which stay as 1.
  Id mean(Id x, const List& axes, std::string_view what) {
    double count = 1;
    for (std::int64_t axis : axes) count *= static_cast<double>(shape(x)[static_cast<std::size_t>(axis)]);
    const Id share = scalar(1 / count, x, fmt::format("{}_share", what));
    return mul(reduce(OpKind::ReduceSum, x, axes, fmt::format("{}_sum", what)), share, what);
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
using Outputs = std::vector<Id>;

List range(std::size_t begin, std::size_t end) {
  List axes(end - std::min(begin, end));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(begin));
  return axes;
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
  const Normalized n = normalized(w, x, range(w.question().axis(w.rank(x)), w.rank(x)));
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

// The reduction's axes as the primitive says them; without keepdims where the node says so.
std::map<std::string, Attribute> reduced(Writer& w, const List& axes) {
  return {{"axes", axes}, {"keepdims", w.node.integer("keepdims", 1)}};
}
Outputs reduce(Writer& w) {
  const List axes = *reduced_axes(w.question());
  if (axes.empty()) return {w.raw(0)};  // nothing to do, or a scalar
  return {w.make(w.node.op, {w.raw(0)}, "y", reduced(w, axes))};
}
Outputs reduce_mean(Writer& w) {
  const Id x = w.in(0);
  const List axes = *reduced_axes(w.question());
  if (axes.empty()) return {x};
  double count = 1;
  for (std::int64_t axis : axes) count *= static_cast<double>(w.shape(x)[static_cast<std::size_t>(axis)]);
  return {w.mul(w.make(OpKind::ReduceSum, {x}, "sum", reduced(w, axes)), w.scalar(1 / count, x, "share"), "y")};
}

Id windowed(Writer& w, OpKind op, std::vector<Id> inputs, const WindowSpec& spec) {
  List pads = spec.before;
  pads.insert(pads.end(), spec.after.begin(), spec.after.end());
  std::map<std::string, Attribute> attributes = {
      {"kernel_shape", spec.kernel}, {"strides", spec.strides}, {"dilations", spec.dilations}, {"pads", pads}};
  if (op == OpKind::Conv) attributes["group"] = w.node.integer("group", 1);
  return w.make(op, std::move(inputs), "windows", std::move(attributes));
}
Outputs max_pool(Writer& w) { return {windowed(w, OpKind::MaxPool, {w.raw(0)}, *window_spec(w.question()))}; }
Outputs conv(Writer& w) {
  const Id y = windowed(w, OpKind::Conv, {w.raw(0), w.raw(1)}, *window_spec(w.question()));
  return {w.has(2) ? w.add(y, w.along_channels(w.raw(2), w.rank(y), "bias"), "y") : y};
}

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
  Shape shape = {1, 1};
  shape.insert(shape.end(), spec.size.begin(), spec.size.end());
  return w.constant(w.dtype(like), shape, counts, "shares");
}
Outputs average_pool(Writer& w) {
  const Id x = w.in(0);
  const WindowSpec spec = *window_spec(w.question());
  const Id sum = windowed(w, OpKind::SumPool, {x}, spec);
  return {w.mul(sum, shares(w, x, spec, w.node.integer("count_include_pad") != 0), "y")};
}
Outputs global_average_pool(Writer& w) {
  const Id x = w.in(0);
  return {w.mean(x, range(2, w.rank(x)), "y")};
}

// Pads and value given, for every axis.
Outputs pad(Writer& w) {
  const PadSpec spec = *pad_spec(w.question());
  List pads = spec.before;
  pads.insert(pads.end(), spec.after.begin(), spec.after.end());
  const Id x = w.raw(0), value = w.has(2) ? w.reshape(w.raw(2), {}, "value") : w.scalar(0, x, "value");
  return {w.make(OpKind::Pad, {x, w.list(pads, "pads"), value}, "y")};
}

struct Row {
  OpKind op;
  Outputs (*rule)(Writer&);
};
const Row kRules[] = {
    {OpKind::Softmax, softmax},
    {OpKind::LogSoftmax, softmax},
    {OpKind::LayerNormalization, layer_norm},
    {OpKind::BatchNormalization, batch_norm},
    {OpKind::ReduceSum, reduce},
    {OpKind::ReduceMax, reduce},
    {OpKind::ReduceMin, reduce},
    {OpKind::ReduceProd, reduce},
    {OpKind::ReduceMean, reduce_mean},
    {OpKind::MaxPool, max_pool},
    {OpKind::AveragePool, average_pool},
    {OpKind::GlobalAveragePool, global_average_pool},
    {OpKind::Conv, conv},
    {OpKind::Pad, pad},
};

// In the one form that primitives have.
bool is_primitive(const Node& node) {
  const auto has = [&](std::string_view key) { return node.attributes.contains(std::string(key)); };
  switch (class_of(node.op)) {
    case OpClass::softmax:
    case OpClass::composite: return false;
    case OpClass::reduction: {
      const List axes = node.integers("axes");
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
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Row& row) { return row.op == node.op; });
  if (rule == std::end(kRules)) return fail({ErrorCode::kInternal, "a composite has no rule", place_of(node)});
  Writer w(graph, node, names);
  Outputs outputs = rule->rule(w);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!w.wants(i)) continue;
    const Id wanted = node.outputs[i];
    const Id found = w.cast(outputs[i], graph.tensor(wanted).dtype, "narrow");
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
