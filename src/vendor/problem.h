// What references are asked for: a graph written as calls that vendors' libraries know.
//
//   y = maxpool(relu(conv(x, w) + b))
//
//   steps  0 convolution {src x, weights w, dst t}  after: add b, relu
//          1 pooling     {src t, dst y, max, kernel 2 2}
//
// A step is of one kind (a struct below), reads and writes tensors of the
// graph as places (a buffer seen through a shape and strides, so that transposes, slices and
// reshapes cost nothing), and may apply elementwise operations to what it writes. What it writes is
// a tensor of the graph, by its name: where no library serves the step, a plain kernel is made of
// the nodes behind that tensor. A step of kind `unmatched` says from the start that none does.
//
// Everything here is data and travels as JSON (to_json, from_json): the evaluator makes references
// in a process of its own.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/track.h"

namespace warploom::vendor {
using graph::Shape;

// A tensor as a call sees it: element i of the buffer is at offset + Σ i[d] · strides[d]. A stride
// is 0 only along an axis of size 1.
struct Place {
  std::string buffer;  // an input, output or constant of the graph, or what steps pass on
  Dtype dtype = Dtype::f32;
  Shape shape;
  Shape strides;
  int64_t offset = 0;
};

// Elementwise functions that libraries have, with up to two numbers (functions.def).
enum class Function : uint8_t {
#define WARPLOOM_FUNCTION(name, ...) name,
#include "vendor/functions.def"
};

struct FunctionRow {
  std::string_view name;
  int dnnl = 0;       // dnnl_alg_kind_t
  int cudnn = -1;     // cudnnActivationMode_t, -1: none
  int cublaslt = -1;  // cublasLtEpilogue_t, -1: none
  double (*value)(double x, double alpha, double beta) = nullptr;
};

std::span<const FunctionRow> functions();  // by their numbers
const FunctionRow& row_of(Function function);

enum class Combine : uint8_t { add, sub, mul, div, max, min };

// One elementwise operation: a function of the value, or the value combined with another tensor
// that stretches to it.
struct After {
  Function function = Function::linear;
  double alpha = 0;
  double beta = 0;
  std::optional<Place> other;  // then `combine`, and no function
  Combine combine = Combine::add;
};

// Windows over the spatial axes, one entry each.
struct Window {
  Shape kernel;
  Shape strides;
  Shape dilations;
  Shape begins;
  Shape ends;
};

// The kinds. `src` is read, `dst` written.
struct Convolution {  // src [N, C, ..], weights [O, C / groups, ..], dst [N, O, ..]
  Place src;
  Place weights;
  Place dst;
  Window window;
  int64_t groups = 1;
};

struct Deconvolution {  // src [N, C, ..], weights [C, O / groups, ..], dst [N, O, ..]
  Place src;
  Place weights;
  Place dst;
  Window window;
  int64_t groups = 1;
};

enum class PoolKind : uint8_t { max, mean_of_window, mean_of_inside };

struct Pooling {  // src [N, C, ..]
  Place src;
  Place dst;
  Window window;
  PoolKind how = PoolKind::max;
};

struct Matmul {  // dst [.., m, n] = a [.., m, k] · b [.., k, n]; leading sizes of 1 stretch
  Place a;
  Place b;
  Place dst;
  bool tf32 = false;  // operands of f32 may be rounded to tf32
};

struct Softmax {
  Place src;
  Place dst;
  int64_t axis = 0;
  bool log = false;
};

struct BatchNorm {  // of given statistics, one an index of axis 1
  Place src;
  Place dst;
  Place scale;
  Place shift;
  Place mean;
  Place variance;
  double epsilon = 0;
};

struct LayerNorm {  // src and dst packed: so many rows of `size` elements
  Place src;
  Place dst;
  // [size]
  std::optional<Place> scale;
  std::optional<Place> shift;
  int64_t size = 1;
  double epsilon = 0;
};

enum class Reduce : uint8_t { sum, mean, max, min, product, norm1, norm2, squares };

struct Reduction {  // dst has size 1 where src is reduced
  Place src;
  Place dst;
  Reduce how = Reduce::sum;
};

struct Lrn {  // x / (bias + alpha / size · Σ x² of `size` channels)^beta
  Place src;
  Place dst;
  int64_t size = 1;
  double alpha = 0;
  double beta = 0;
  double bias = 0;
};

struct Copy {  // to another order, into a part of another tensor, or to another type
  Place src;
  Place dst;
};

struct Elementwise {  // all it does stands in Step::after
  Place src;
  Place dst;
};

struct Unmatched {
  // tensors
  std::vector<std::string> reads;
  std::vector<std::string> writes;
};

using Operation = std::variant<Convolution, Deconvolution, Pooling, Matmul, Softmax, BatchNorm,
                               LayerNorm, Reduction, Lrn, Copy, Elementwise, Unmatched>;

struct Step {
  Operation operation;
  std::vector<After> after;  // on what is written, in this order
};

std::string_view name_of(const Operation& operation);  // "convolution"
const Place* destination(const Operation& operation);  // null of what is unmatched
Place* destination(Operation& operation);
std::vector<const Place*> sources(const Step& step);  // with those of `after`
std::string words_of(const Step& step);               // "convolution + add + relu"
// "convolution + relu ×12, pooling, plain": equal ones counted, in the order of their first.
std::string words_of(const std::vector<Step>& steps);

// A graph and the steps that compute it. Tensors that are neither inputs, outputs nor constants of
// the graph are what steps pass on to each other.
struct VendorProblem {
  graph::Graph graph;
  std::vector<Step> steps;
  std::string chosen;  // which way of making it was the fastest before (make.h); empty: unknown
  // Of the graph's inputs, those that hold the same in every call: a library lays them out once.
  // Not part of the record: who times the reference says it.
  std::set<std::string> constants = {};
};

void to_json(nlohmann::json& json, const VendorProblem& problem);
void from_json(const nlohmann::json& json, VendorProblem& problem);
}  // namespace warploom::vendor
