// What the rules of composites write primitives with. Private to the room.
#pragma once
#include <set>
#include "graph/operators.h"
namespace warploom::graph::composites {
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
}  // namespace warploom::graph::composites
