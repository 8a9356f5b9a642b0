// Operators that libraries have calls of their own for.
#include <algorithm>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "vendor/matcher.h"
#include "vendor/places.h"
#include "vendor/problem.h"

namespace warploom::vendor {
namespace {
using graph::kAbsent;
using graph::NodeContext;
using graph::WindowSpec;

constexpr size_t kMostSpatial = 3;

std::optional<Window> window_of(const NodeContext& context) {
  const auto spec = graph::window_spec(context);
  if (!spec || spec->kernel.size() > kMostSpatial) return std::nullopt;
  return Window{spec->kernel, spec->strides, spec->dilations, spec->before, spec->after};
}

bool all_zero(const Shape& pads) {
  return std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; });
}

bool has_input(const Node& node, size_t i) {
  return node.inputs.size() > i && node.inputs[i] != kAbsent;
}

// Of a normalisation with statistics among its outputs.
bool has_more_outputs(const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kAbsent) return true;
  return false;
}

int64_t product(const Shape& shape) {
  return graph::element_count(shape);
}

constexpr std::pair<OpKind, Reduce> kReductions[] = {
    {OpKind::ReduceSum, Reduce::sum},      {OpKind::ReduceMean, Reduce::mean},
    {OpKind::ReduceMax, Reduce::max},      {OpKind::ReduceMin, Reduce::min},
    {OpKind::ReduceProd, Reduce::product}, {OpKind::ReduceL1, Reduce::norm1},
    {OpKind::ReduceL2, Reduce::norm2},     {OpKind::ReduceSumSquare, Reduce::squares},
    {OpKind::ReduceLogSum, Reduce::sum}};
}  // namespace

// A convolution, and its third input added.
Step Matcher::with_bias(const Node& node, Operation operation) {
  Step step{std::move(operation), {}};
  if (!has_input(node, 2)) return step;
  const Shape& to = tensor(node.outputs[0]).shape;
  const Place bias = along_channels(node.inputs[2], to.size());
  step.after.push_back({.other = bias});
  return step;
}

bool Matcher::convolution(const Node& node) {
  if (!floats(node)) return false;
  const auto window = window_of({graph(), node});
  if (!window) return false;
  const TensorId to = node.outputs[0];
  Convolution call;
  call.src = place(node.inputs[0]);
  call.weights = place(node.inputs[1]);
  call.dst = own_place(to);
  call.window = *window;
  call.groups = node.integer("group", 1);
  push(with_bias(node, std::move(call)), to);
  return true;
}

bool Matcher::deconvolution(const Node& node) {
  if (!floats(node)) return false;
  const auto spec = graph::transposed_spec({graph(), node});
  const Shape& weights = tensor(node.inputs[1]).shape;
  const Shape strides = node.integers("strides");
  const size_t spatial = weights.size() - 2;
  if (!spec || spatial > kMostSpatial) return false;
  Window window;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t size = weights[d + 2];
    const int64_t stride = strides.empty() ? 1 : strides[d];
    const int64_t dilation = spec->dilations[d];
    const int64_t reach = dilation * (size - 1);
    const int64_t behind = reach - spec->after[d];
    window.kernel.push_back(size);
    window.strides.push_back(stride);
    window.dilations.push_back(dilation);
    window.begins.push_back(reach - spec->before[d]);
    window.ends.push_back(std::max<int64_t>(0, behind));
    if (window.begins.back() < 0) return false;
  }
  const TensorId to = node.outputs[0];
  Deconvolution call;
  call.src = place(node.inputs[0]);
  call.weights = place(node.inputs[1]);
  call.dst = own_place(to);
  call.window = window;
  call.groups = node.integer("group", 1);
  push(with_bias(node, std::move(call)), to);
  return true;
}

bool Matcher::pool(const Node& node) {
  if (!floats(node) || node.outputs.size() > 1) return false;
  const auto window = window_of({graph(), node});
  if (!window) return false;
  const bool padded = !all_zero(window->begins) || !all_zero(window->ends);
  PoolKind how = PoolKind::max;
  if (node.op == OpKind::SumPool) how = PoolKind::mean_of_window;
  if (node.op == OpKind::AveragePool) {
    const bool whole = node.integer("count_include_pad") != 0;
    // What a last window has beyond the padding is not counted, which no library says.
    if (whole && padded && node.integer("ceil_mode") != 0) return false;
    how = whole ? PoolKind::mean_of_window : PoolKind::mean_of_inside;
  }
  const TensorId to = node.outputs[0];
  Pooling call;
  call.src = place(node.inputs[0]);
  call.dst = own_place(to);
  call.window = *window;
  call.how = how;
  Step step{call, {}};
  const auto elements = as_double(product(window->kernel));
  if (node.op == OpKind::SumPool) step.after.push_back({.alpha = elements});
  push(std::move(step), to);
  return true;
}

bool Matcher::global_pool(const Node& node) {
  const Shape& shape = tensor(node.inputs[0]).shape;
  if (!floats(node) || shape.size() < 3 || shape.size() > kMostSpatial + 2) return false;
  const Shape spatial(shape.begin() + 2, shape.end());
  const Shape ones(spatial.size(), 1);
  const Shape zeros(spatial.size(), 0);
  const TensorId to = node.outputs[0];
  const bool is_max = node.op == OpKind::GlobalMaxPool;
  Pooling call;
  call.src = place(node.inputs[0]);
  call.dst = own_place(to);
  call.window = {spatial, ones, ones, zeros, zeros};
  call.how = is_max ? PoolKind::max : PoolKind::mean_of_window;
  push({std::move(call), {}}, to);
  return true;
}

bool Matcher::matmul(const Node& node) {
  if (!floats(node)) return false;
  Place a = place(node.inputs[0]);
  Place b = place(node.inputs[1]);
  const TensorId to = node.outputs[0];
  Place c = own_place(to);
  const auto insert_one = [](Place& at, ptrdiff_t from_end) {
    at.shape.insert(at.shape.end() - from_end, 1);
    at.strides.insert(at.strides.end() - from_end, 0);
  };
  const bool row = a.shape.size() == 1;
  const bool column = b.shape.size() == 1;
  if (row) insert_one(a, 1);
  if (column) insert_one(b, 0);
  if (column) insert_one(c, 0);
  if (row) insert_one(c, 1);
  const size_t rank = std::max(a.shape.size(), b.shape.size());
  Matmul call;
  call.a = of_rank(a, rank);
  call.b = of_rank(b, rank);
  call.dst = of_rank(c, rank);
  call.tf32 = may_use_tf32(a.dtype);
  push_alone(call, to);
  return true;
}

bool Matcher::gemm(const Node& node) {
  if (!floats(node)) return false;
  const double alpha = node.real("alpha", 1);
  const double beta = node.real("beta", 1);
  const bool biased = has_input(node, 2) && beta != 0;
  if (biased && beta != 1) return false;
  const auto operand = [&](size_t i, std::string_view transposed) {
    Place at = place(node.inputs[i]);
    if (node.integer(transposed) == 0) return at;
    std::swap(at.shape[0], at.shape[1]);
    std::swap(at.strides[0], at.strides[1]);
    return at;
  };
  const TensorId to = node.outputs[0];
  Matmul call;
  call.a = operand(0, "transA");
  call.b = operand(1, "transB");
  call.dst = own_place(to);
  call.tf32 = may_use_tf32(tensor(to).dtype);
  Step step{call, {}};
  if (alpha != 1) step.after.push_back({.alpha = alpha});
  if (biased) {
    const Place& bias = place(node.inputs[2]);
    step.after.push_back({.other = of_rank(bias, 2)});
  }
  push(std::move(step), to);
  return true;
}

bool Matcher::softmax(const Node& node) {
  if (!floats(node)) return false;
  const NodeContext context{graph(), node};
  const size_t axis = context.axis(tensor(node.inputs[0]).shape.size());
  Softmax call;
  call.src = place(node.inputs[0]);
  call.dst = own_place(node.outputs[0]);
  call.axis = as_int64(axis);
  call.log = node.op == OpKind::LogSoftmax;
  push_alone(std::move(call), node.outputs[0]);
  return true;
}

bool Matcher::batch_norm(const Node& node) {
  if (!floats(node) || node.integer("training_mode") != 0) return false;
  if (has_more_outputs(node)) return false;
  BatchNorm call;
  call.src = packed(node.inputs[0]);
  call.dst = own_place(node.outputs[0]);
  call.scale = packed(node.inputs[1]);
  call.shift = packed(node.inputs[2]);
  call.mean = packed(node.inputs[3]);
  call.variance = packed(node.inputs[4]);
  call.epsilon = node.real("epsilon", 1e-5);
  push_alone(std::move(call), node.outputs[0]);
  return true;
}

bool Matcher::layer_norm(const Node& node) {
  if (!floats(node)) return false;
  if (has_more_outputs(node)) return false;
  const NodeContext context{graph(), node};
  const Shape& shape = tensor(node.inputs[0]).shape;
  const size_t axis = context.axis(shape.size());
  const int64_t size = product(graph::entries(shape, axis));
  LayerNorm call;
  call.src = packed(node.inputs[0]);
  call.dst = own_place(node.outputs[0]);
  call.size = size;
  call.epsilon = node.real("epsilon", 1e-5);
  const auto factor = [&](size_t i) -> std::optional<Place> {
    if (!has_input(node, i)) return std::nullopt;
    const int64_t elements = product(tensor(node.inputs[i]).shape);
    return reshaped(packed(node.inputs[i]), {elements});
  };
  call.scale = factor(1);
  call.shift = factor(2);
  for (const auto& each : {call.scale, call.shift})
    if (each && elements_of(*each) != size) return false;
  push_alone(std::move(call), node.outputs[0]);
  return true;
}

// Rows of a group's channels, then a factor and an addend a channel.
bool Matcher::group_norm(const Node& node) {
  const Shape& shape = tensor(node.inputs[0]).shape;
  if (!floats(node) || shape.size() < 2) return false;
  const bool each = node.op == OpKind::InstanceNormalization;
  const int64_t groups = each ? shape[1] : node.integer("num_groups", 1);
  if (product(tensor(node.inputs[1]).shape) != shape[1]) return false;
  const TensorId to = node.outputs[0];
  const size_t rank = shape.size();
  LayerNorm call;
  call.size = product(shape) / (shape[0] * groups);
  call.epsilon = node.real("epsilon", 1e-5);
  call.src = packed(node.inputs[0]);
  call.dst = own_place(to);
  Step step{std::move(call), {}};
  const Place scale = along_channels(node.inputs[1], rank);
  step.after.push_back({.other = scale, .combine = Combine::mul});
  step.after.push_back({.other = along_channels(node.inputs[2], rank)});
  push(std::move(step), to);
  return true;
}

bool Matcher::reduction(const Node& node) {
  if (!floats(node)) return false;
  const auto axes = graph::reduced_axes({graph(), node});
  using OpReduce = std::pair<OpKind, Reduce>;
  const auto row = std::ranges::find(kReductions, node.op, &OpReduce::first);
  if (!axes || axes->empty() || row == std::end(kReductions)) return false;
  const TensorId to = node.outputs[0];
  Shape shape = tensor(node.inputs[0]).shape;
  for (const int64_t axis : *axes)
    shape[axis] = 1;
  const auto dst = reshaped(own_place(to), shape);
  if (!dst) return false;
  const Place& src = place(node.inputs[0]);
  const Reduction call{src, *dst, row->second};
  Step step{call, {}};
  if (node.op == OpKind::ReduceLogSum) step.after.push_back({.function = Function::log});
  push(std::move(step), to);
  return true;
}

bool Matcher::lrn(const Node& node) {
  const int64_t size = node.integer("size");
  if (!floats(node) || size % 2 == 0) return false;
  Lrn call;
  call.src = packed(node.inputs[0]);
  call.dst = own_place(node.outputs[0]);
  call.size = size;
  call.alpha = node.real("alpha", 1e-4);
  call.beta = node.real("beta", 0.75);
  call.bias = node.real("bias", 1);
  push_alone(std::move(call), node.outputs[0]);
  return true;
}
}  // namespace warploom::vendor
