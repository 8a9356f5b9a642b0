// What the operators' rules and rewrites share. Private to the room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/fresh_names.h"
#include "graph/operators.h"

namespace warploom::graph {
using Id = TensorId;
using List = std::vector<int64_t>;
inline constexpr ErrorCode kType = ErrorCode::kOnnxType;
inline constexpr ErrorCode kShape = ErrorCode::kOnnxShape;
inline constexpr ErrorCode kAttribute = ErrorCode::kOnnxAttribute;

inline auto type_error(const NodeContext& context, ErrorDetail expected, ErrorDetail found) {
  return context.error(kType, "an input's element type does not fit the operator",
                       std::move(expected), std::move(found));
}

inline bool is_wide_float(Dtype dtype) {
  return is_float(dtype) && bits_of(dtype) >= 16;
}

// An input to calculate with: of 16 bits or more if floating-point; booleans only where `booleans`.
Status check_number(const NodeContext& context, size_t i, bool floats_only = false,
                    bool booleans = false);
// Every input of one such type.
Status same_type(const NodeContext& context, bool floats_only, bool booleans = false);

// How an input of shape `in` is read that broadcasting aligns at the last axes of an output of
// `rank` axes.
AxisSources aligned(const Shape& in, size_t rank);
// Axis i of the input is axis i of the output.
AxisSources same_axes(size_t rank);

// An input that must be a constant list of integers, because the output's shape depends on it.
Result<List> list(const NodeContext& context, size_t i, std::string_view what,
                  size_t most = kMaxRank);

// The attribute axis, counted from the front.
inline Result<size_t> checked_axis(const NodeContext& context) {
  WARPLOOM_TRY(const int axis, normalized_axis(context.node.integer("axis"),
                                               context.in(0).shape.size(), context.place));
  return static_cast<size_t>(axis);
}

// Distinct normalised axes, ascending.
Result<List> axes(const NodeContext& context, const List& wanted, size_t rank);
Status check_vector(const NodeContext& context, size_t i,
                    int64_t size);                 // an input of so many elements, if it is there
Status check_indices(const NodeContext& context);  // the second input, of whole numbers
Status check_weights(const NodeContext& context);  // a convolution's, and its bias

// Writes the primitives of one node. Every tensor gets the type and shape of its rule at once, and
// is folded where it is known. A rule reads the shapes of what it has written, so nothing of it
// runs behind a node that is refused: written_by() has the reason.
class PrimitiveWriter : public NodeContext {
 public:
  // `dry`: for the types and shapes of the outputs alone. Nothing is folded and tables stay empty.
  PrimitiveWriter(Graph& of, const Node& on, FreshNames& names, bool dry)
      : NodeContext{of, on},
        graph_(of),
        prefix_(on.name.empty() ? of.tensor(on.outputs[0]).name : on.name),
        names_(names),
        dry_(dry) {}

  std::vector<Node> made;

  // The node's outputs, one each; the first in its first input's type again if that was widened.
  Result<Outputs> run();
  // What a rule writes, or why a node of it is refused.
  Result<Outputs> written_by(const std::function<Rewrite>& rule);

  const Shape& shape(Id id) const { return graph_.tensor(id).shape; }

  size_t rank(Id id) const { return shape(id).size(); }

  Dtype dtype(Id id) const { return graph_.tensor(id).dtype; }

  bool dry() const { return dry_; }

  const Status& status() const { return status_; }

  Id raw(size_t i) const { return has(i) ? node.inputs[i] : kAbsent; }

  // An input in the type that it is computed in: f32 for 16 bits.
  Id wide(size_t i);
  Id make(OpKind op, std::vector<Id> inputs, std::string_view what,
          std::map<std::string, Attribute> attributes = {});

  Id constant(Dtype type, Shape shape, const std::vector<double>& values, std::string_view what);

  Id scalar(double value, Id like, std::string_view what) {
    return constant(dtype(like), {}, {value}, what);
  }

  Id list(const List& values, std::string_view what) {
    const std::vector<double> numbers(values.begin(), values.end());
    return constant(Dtype::i64, {std::ssize(values)}, numbers, what);
  }

  // The constant whose element of flat index i is element(i).
  template <class Element>
  Id table(Dtype type, const Shape& shape, std::string_view what, const Element& element) {
    check_table(shape);
    if (dry_ || !status_) return graph_.add_tensor({{fresh(what), type, shape}, std::nullopt});
    std::vector<double> values(element_count(shape));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(element(static_cast<int64_t>(i)));
    return constant(type, shape, values, what);
  }

  // 0, 1, … in row-major order.
  Id places(const Shape& shape, std::string_view what) {
    return table(Dtype::i64, shape, what, [](int64_t i) { return i; });
  }

  Id cast(Id x, Dtype to, std::string_view what);
  Id reshape(Id x, const Shape& to, std::string_view what);
  // By so much before and behind each axis, less than 0 crops; `zero` is what is put there.
  Id pad(Id x, const List& before, const List& after, Id zero, std::string_view what);

  Id reduce(OpKind op, Id x, const List& axes, std::string_view what, int64_t keepdims = 1) {
    if (axes.empty()) return x;
    return make(op, {x}, what, {{"axes", axes}, {"keepdims", keepdims}});
  }

  int64_t keepdims() const { return node.integer("keepdims", 1); }

  Id where(Id condition, Id yes, Id no, std::string_view what) {
    return make(OpKind::Where, {condition, yes, no}, what);
  }

  Id add(Id a, Id b, std::string_view what) { return make(OpKind::Add, {a, b}, what); }

  Id sub(Id a, Id b, std::string_view what) { return make(OpKind::Sub, {a, b}, what); }

  Id mul(Id a, Id b, std::string_view what) { return make(OpKind::Mul, {a, b}, what); }

  // Over `axes`, which stay as 1 or go.
  Id mean(Id x, const List& axes, std::string_view what, int64_t keepdims = 1);
  // [C] as [C,1,..], which broadcasting puts along axis 1 of `rank` axes.
  Id along_channels(Id x, size_t of_rank, std::string_view what);
  // 1/sqrt(x + epsilon)
  Id inverse_root(Id x, double epsilon);

 private:
  struct Stopped {};  // thrown where a node is refused, caught by written_by()

  std::string fresh(std::string_view what);
  void check_table(const Shape& shape);
  void refuse(Error error);

  Graph& graph_;
  std::string prefix_;
  FreshNames& names_;  // of all tensors
  bool dry_;
  bool widened_ = false;
  bool stops_ = false;  // a rule is running
  Status status_ = ok();
};

// What stands in the place of a node: the outputs of what was written.
using Replacement = std::function<Rewrite>;
// The graph with `rule` applied to every node that does not stay, simplified.
Result<Graph> rewritten(Graph graph, const std::function<bool(const Graph&, const Node&)>& stays,
                        const Replacement& rule);

inline List span(size_t begin, size_t end) {
  List axes(end - std::min(begin, end));
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(begin));
  return axes;
}

inline List with(List list, size_t at, int64_t value) {
  list[at] = value;
  return list;
}

inline List chained(List first, const List& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
}  // namespace warploom::graph
