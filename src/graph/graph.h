// Operator graphs: the form of a model between its file and loop nests, with every shape known.
//
// Idea. A Graph is a list of tensors and a list of nodes. A node applies one operator of ONNX to
// tensors that stand before it; nodes are in an order in which they can run. `inputs` and `outputs`
// say what goes in and comes out. A tensor is constant if its bytes are in the graph: an
// initializer, or a result that simplify() has computed.
//
// Worked example, y = gelu(x·w + b) with x [512, 1024], w [1024, 768], b [768]:
//
//   tensors   0 x f32 [512,1024]    1 w f32 [1024,768]    2 b f32 [768]
//             3 mm f32 [512,768]    4 s f32 [512,768]     5 y f32 [512,768]
//   nodes     MatMul(0,1)→3    Add(3,2)→4    Gelu(4)→5 {approximate: "none"}
//   inputs    0 1 2
//   outputs   5
//
// Shapes and units. Tensors are packed and row-major: the last axis is contiguous. Sizes, strides
// and counts are in elements, byte_count() in bytes. No tensor has more than 2^40 elements or 16
// axes (kMaxElements, kMaxRank), so products of sizes fit in 64 bits.
//
// The passes, each a function from graph to graph:
//
//   infer()      checks every node and fills in the type and shape of its outputs
//   simplify()   folds what depends on constants alone, so that shape arithmetic disappears;
//                bypasses Identity and Dropout; drops nodes that no output needs
//   decompose()  rewrites composite operators into primitives, of which loop nests and the FP64
//                reference are made
//
// load_onnx() returns a graph after infer() and simplify(): the second input of Reshape, Expand,
// Unsqueeze, Squeeze and Slice is constant then.
//
// Primitives leave none of the choices that ONNX allows:
//
//   convolution  Conv(x, w). Attributes kernel_shape, strides and dilations, one entry a spatial
//                axis; pads, all begins before all ends; group. A bias is an Add of [1,M,1,..].
//   window       MaxPool(x), SumPool(x): the same attributes without group. Elements outside count
//                as -inf and as 0.
//   reduction    ReduceSum, ReduceMax, ReduceMin, ReduceProd (x). Attributes axes, ascending and
//                not negative, and keepdims.
//   scan         CumSum(x, axis): the sum of each element and all before it; with `reverse`, of
//                it and all behind it. Not exclusive.
//   Pad          Pad(x, pads, value), constant mode; pads of every axis, all begins before all
//                ends. Negative pads crop.
//
// A composite with 16-bit inputs casts them to f32 and its output back. Tensors that it makes are
// named after its node: "norm/mean" is a tensor of the node "norm".
//
// Errors: onnx-type, onnx-shape, onnx-attribute, onnx-name, onnx-cyclic, onnx-too-large. Their
// place is the node: "node 'mm' (MatMul)".
#pragma once
#include <map>
#include <optional>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"

namespace warploom::graph {
enum class OpKind : uint8_t {
#define WARPLOOM_OP(name, ...) name,
#include "graph/ops.def"
};

enum class OpClass {
  contraction,
  convolution,
  window,
  reduction,
  scan,
  pointwise,
  view,
  movement,
  constant,
  composite
};

constexpr bool multiplies(OpClass kind) {
  return kind == OpClass::contraction || kind == OpClass::convolution;
}

constexpr bool only_moves(OpClass kind) {
  return kind == OpClass::view || kind == OpClass::movement;
}

std::string_view name_of(OpKind op);  // "MatMul", as ONNX spells it
std::optional<OpKind> op_named(std::string_view name);
OpClass class_of(OpKind op);

constexpr bool is_scaling(OpKind op) {  // of what is stored narrow
  return op == OpKind::DequantizeLinear || op == OpKind::Dequantize || op == OpKind::ScaledMatMul;
}

std::string supported_operators();  // "Abs, Add, ...": for messages

using TensorId = int;
inline constexpr TensorId kAbsent = -1;  // an optional input or output that is not there
using Shape = std::vector<int64_t>;

// No tensor has more elements than this, nor more axes; checked arithmetic up to it needs no
// further thought of overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
inline constexpr size_t kMaxRank = 16;

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;  // empty: a scalar
};

struct Tensor : TensorInfo {
  std::optional<std::vector<std::byte>>
      constant;  // packed elements of an initializer or a folded result
};

// An attribute's value. Cast's `to` and its like hold ONNX's number of the type (dtype_of_onnx
// turns it back).
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

struct Node {
  OpKind op = OpKind::Identity;
  std::string name;
  std::vector<TensorId> inputs;                      // kAbsent for an optional one left out
  std::vector<TensorId> outputs;                     // kAbsent likewise
  std::map<std::string, Attribute> attributes = {};  // defaults filled in (operators.cpp)

  // The attribute's value, or `otherwise` if it is absent or of another type.
  template <class T> T attribute(std::string_view key, const T& otherwise = {}) const {
    const auto found = attributes.find(std::string(key));
    if (found == attributes.end()) return otherwise;
    const T* const value = std::get_if<T>(&found->second);
    return value ? *value : otherwise;
  }

  int64_t integer(std::string_view key, int64_t otherwise = 0) const {
    return attribute(key, otherwise);
  }

  double real(std::string_view key, double otherwise = 0) const {
    return attribute(key, otherwise);
  }

  std::string text(std::string_view key) const { return attribute<std::string>(key); }

  std::vector<int64_t> integers(std::string_view key) const {
    return attribute<std::vector<int64_t>>(key);
  }
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // in an order in which they can run
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  const Tensor& tensor(TensorId id) const { return tensors[id]; }

  Tensor& tensor(TensorId id) { return tensors[id]; }

  std::optional<TensorId> tensor_named(std::string_view wanted) const;
  int producer(TensorId id) const;                // index into nodes, -1 for inputs and constants
  std::vector<int> consumers(TensorId id) const;  // indices into nodes, ascending, each once
  TensorId add_tensor(Tensor added);
};

int64_t element_count(const Shape& shape);  // 1 for a scalar
int64_t byte_count(const TensorInfo& tensor);
std::vector<int64_t> strides_of(const Shape& shape);  // packed row-major, in elements
std::string to_text(const Shape& shape);              // "[512,1024]"
std::string to_text(const TensorInfo& tensor);        // "x f32 [512,1024]"
std::string to_text(const Attribute& value);
std::string to_text(const Graph& graph);  // one line a node, for people and tests
std::string place_of(const Node& node);   // "node 'mm' (MatMul)"

// Element count with the limits above: onnx-too-large or onnx-dynamic-shape (a negative dimension)
// otherwise.
Result<int64_t> checked_element_count(const Shape& shape, std::string_view place);
// The element type with ONNX's number; onnx-type where there is none. `what` begins the message: "a
// tensor's element type".
Result<Dtype> checked_dtype(int64_t onnx_type, std::string_view what, std::string_view place);
// Shapes aligned at their last axes, a size of 1 stretching to the other's.
Result<Shape> broadcast(const Shape& a, const Shape& b, std::string_view place);
// The elements of an integer constant, or nothing if the tensor is none.
std::optional<std::vector<int64_t>> constant_integers(const Graph& graph, TensorId id);
// The value of a constant with one element, of any type.
std::optional<double> constant_scalar(const Graph& graph, TensorId id);
// Negative axes counted from the end; onnx-attribute when outside the rank.
Result<int> normalized_axis(int64_t axis, size_t rank, std::string_view place);

// Primitives whose scans over fewer lines than would keep so many num_sms busy are written as
// scans over more lines. Only of floats.
Result<Graph> split_scans(Graph graph, int64_t num_sms);
// Primitives whose convolutions make rows of whole sectors of 32 bytes for the pools that alone
// read them.
Result<Graph> pad_rows_to_sectors(Graph graph);

// Checks every node and fills in the types and shapes of everything made by one; inputs and
// constants must be sound. Tensors that already have a name keep it. Nodes may come in any order;
// they leave in one that can run.
Result<Graph> infer(Graph graph);
// Fold, bypass, drop; the same function of the same inputs. Expects an inferred graph.
Result<Graph> simplify(Graph graph);
// Primitives only, of the same inputs and outputs. Expects an inferred graph; a primitive one comes
// back as it is.
Result<Graph> decompose(Graph graph);
bool is_primitive(const Graph& graph);

// Elements that the node sums, or otherwise reduces, for one of its output: a product's k, a
// window's taps; 1 where there is one.
int64_t terms_of(const Graph& graph, const Node& node);

// What an input is for, as far as numbers drawn without regard to it make no sense of a network.
struct InputRole {
  int64_t terms = 1;  // of a network's weights: how many a product sums; else layers grow or vanish
  bool variance = false;  // the square root is taken of it and a constant: negative numbers make
                          // NaN of all that follows
};

std::vector<InputRole> input_roles(const Graph& graph);  // one an input
}  // namespace warploom::graph
