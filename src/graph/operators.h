// The registry: one row an operator (ops.def), with what each part of the room needs to know of it.
// An operator that comes later is a row there and a rule: a composite's writes its primitives, a
// primitive's says types, shapes and what is read where, and then it has arithmetic in
// pointwise.cpp or evaluator.cpp.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include "graph/graph.h"

namespace warploom::graph {
// What an error expected, or found, as text.
struct ErrorDetail : std::string {
  using std::string::string;

  ErrorDetail(std::string text) : std::string(std::move(text)) {}

  ErrorDetail(Dtype dtype) : std::string(name_of(dtype)) {}

  ErrorDetail(const Shape& shape) : std::string(to_text(shape)) {}

  ErrorDetail(const TensorInfo& tensor) : std::string(to_text(tensor)) {}

  ErrorDetail(int64_t number) : std::string(std::to_string(number)) {}
};

// Entries [begin, end) of a shape, as far as it has them.
inline Shape entries(const Shape& of, size_t begin, size_t end = kMaxRank) {
  const auto first = static_cast<ptrdiff_t>(std::min(of.size(), begin));
  const auto last = static_cast<ptrdiff_t>(std::min(of.size(), end));
  return {of.begin() + first, of.begin() + last};
}

// A node with its inputs already inferred and its attributes complete.
struct NodeContext {
  const Graph& graph;
  const Node& node;
  std::string place = {};

  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i] != kAbsent; }

  const Tensor& in(size_t i) const { return graph.tensor(node.inputs[i]); }

  const Shape& out() const { return graph.tensor(node.outputs[0]).shape; }

  size_t axis(size_t rank) const;  // the attribute, known to be in range, counted from the front
  tl::unexpected<Error> error(ErrorCode code, std::string message, ErrorDetail expected = {},
                              ErrorDetail found = {}, std::string remedy = {}) const;
};

// Which element of an input an element of the output comes from, for one axis of the input: index
// begin + step · (the output's index along `axis`); outside the input: this element comes from
// elsewhere (Concat). kWhole: from any or all along that axis, which is also what stretches an axis
// of size 1.
//   x[5:1:-2, :] of x [6,8]   →   {axis 0, begin 5, step -2}, {axis 1}
//   a sum over axis 1         →   {axis 0}, {kWhole}
// A window reads `taps` elements, `dilation` apart; what is outside the input counts as nothing.
struct AxisSource {
  static constexpr int kWhole = -1;
  int axis = kWhole;
  int64_t begin = 0;
  int64_t step = 1;
  int64_t taps = 1;
  int64_t dilation = 1;
};

using AxisSources = std::vector<AxisSource>;  // one an axis of the input

inline size_t whole_axis(const AxisSources& sources) {  // the first that is
  const auto whole = std::ranges::find(sources, AxisSource::kWhole, &AxisSource::axis);
  return static_cast<size_t>(whole - sources.begin());
}

// What a primitive makes of its inputs' types and shapes: its output's, and where each input is
// read; nothing where no element of it is read, or (views) where the order is that of the flat
// index.
struct InferredOutput {
  Dtype dtype;
  Shape shape;
  std::vector<std::optional<AxisSources>> reads = {};
};

using InferenceRule = Result<InferredOutput>(const NodeContext&);
std::optional<AxisSources> axis_sources(const Graph& graph, const Node& node,
                                        size_t input);  // of a node that infer() knows

// Writes a composite's primitives: the tensors that are its outputs, one each, or what is wrong
// with its inputs.
class PrimitiveWriter;
using Outputs = std::vector<TensorId>;
using Rewrite = Result<Outputs>(PrimitiveWriter&);

inline constexpr int kVariadic = std::numeric_limits<int>::max();
inline constexpr int64_t kInternal = 1000;  // since, of an operator that only decompose() makes

struct Operator {
  std::string_view name;  // as ONNX spells it
  int64_t since;
  int min_inputs;
  int max_inputs;
  OpClass op_class;
  InferenceRule* rule;  // of a primitive
  Rewrite* rewrite;     // of a composite, and of a primitive that has forms beside the one that
                        // graph.h names
};

const Operator& operator_of(OpKind op);
std::span<const Operator> operators();      // all, in the order of OpKind
std::vector<std::string> operator_names();  // "Abs", "Add", …: those that models may have, sorted

enum class AttributeKind : uint8_t {
  integer,
  real,
  text,
  integers,
  reals,
  texts
};  // as the alternatives of Attribute

struct AttributeRow {
  std::string_view name;
  AttributeKind kind;
  int64_t since;
  std::optional<Attribute> otherwise;
  std::vector<Attribute> among = {};  // the values that are supported; none named: all
};

std::vector<const AttributeRow*> attributes_of(OpKind op);
const AttributeRow* attribute_named(OpKind op,
                                    std::string_view name);  // null: it has none of that name

// Windows over the spatial axes (those from the third on), all choices made: index i of an output's
// axis looks at i·strides - before + t·dilations for t below kernel. `after` is what the last
// window needs (ceil_mode); `counted` what the model said.
struct WindowSpec {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  std::vector<int64_t> counted;
  std::vector<int64_t> size;
};

Result<WindowSpec> window_spec(const NodeContext& context);
// Of ConvTranspose, as a convolution of the input with strides-1 zeros between its elements; less
// than 0 crops.
Result<WindowSpec> transposed_spec(const NodeContext& context);

// The axes a reduction goes over, ascending: from its attribute or its second input; none for a
// reduction that does nothing.
Result<std::vector<int64_t>> reduced_axes(const NodeContext& context);

bool is_zero(const Tensor& tensor);  // a constant of nothing but zeros

// Completes a node's attributes and fills in its outputs' types and shapes; `folds`: and their
// elements where they are known.
Status infer_node(Graph& graph, Node& node, bool folds = true);
}  // namespace warploom::graph
