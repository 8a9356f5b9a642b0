// Operators that libraries have calls of their own for.
#include <cfloat>
#include "vendor/matcher.h"

namespace warploom::vendor {
namespace {
constexpr size_t kMostSpatial = 3;

std::optional<Window> window_of(const graph::NodeContext& question) {
  const Result<graph::WindowSpec> spec = graph::window_spec(question);
  if (!spec || spec->kernel.size() > kMostSpatial) return std::nullopt;
  return Window{spec->kernel, spec->strides, spec->dilations, spec->before, spec->after};
}

bool is_zero(int64_t pad) {
  return pad == 0;
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

bool Matcher::convolution(const Node& node) {
  if (!floats(node)) return false;
  const auto window = window_of({graph(), node});
  if (!window) return false;
  const TensorId to = node.outputs[0];
  Step step{Convolution{place(node.inputs[0]), place(node.inputs[1]), own_place(to), *window,
                        node.integer("group", 1)},
            {}};
  if (node.inputs.size() > 2 && node.inputs[2] != graph::kAbsent)
    step.after.push_back({.other = along_channels(node.inputs[2], tensor(to).shape.size())});
  push(std::move(step), to);
  return true;
}

bool Matcher::deconvolution(const Node& node) {
  if (!floats(node)) return false;
  const Result<graph::WindowSpec> spec = graph::transposed_spec({graph(), node});
  const Shape& weights = tensor(node.inputs[1]).shape;
  const Shape strides = node.integers("strides");
  const size_t spatial = weights.size() - 2;
  if (!spec || spatial > kMostSpatial) return false;
  Window window;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = spec->dilations[d] * (weights[d + 2] - 1);
    window.kernel.push_back(weights[d + 2]);
    window.strides.push_back(strides.empty() ? 1 : strides[d]);
    window.dilations.push_back(spec->dilations[d]);
    window.begins.push_back(reach - spec->before[d]);
    window.ends.push_back(std::max<int64_t>(0, reach - spec->after[d]));
    if (window.begins.back() < 0) return false;
  }
  const TensorId to = node.outputs[0];
  Step step{Deconvolution{place(node.inputs[0]), place(node.inputs[1]), own_place(to), window,
                          node.integer("group", 1)},
            {}};
  if (node.inputs.size() > 2 && node.inputs[2] != graph::kAbsent)
    step.after.push_back({.other = along_channels(node.inputs[2], tensor(to).shape.size())});
  push(std::move(step), to);
  return true;
}

bool Matcher::pool(const Node& node) {
  if (!floats(node) || node.outputs.size() > 1) return false;
  const auto window = window_of({graph(), node});
  if (!window) return false;
  const bool padded =
      !std::ranges::all_of(window->begins, is_zero) || !std::ranges::all_of(window->ends, is_zero);
  PoolKind how = PoolKind::max;
  if (node.op == OpKind::SumPool) how = PoolKind::mean_of_window;
  if (node.op == OpKind::AveragePool) {
    const bool whole = node.integer("count_include_pad") != 0;
    // What a last window has beyond the padding is not counted, which no library says.
    if (whole && padded && node.integer("ceil_mode") != 0) return false;
    how = whole ? PoolKind::mean_of_window : PoolKind::mean_of_inside;
  }
  const TensorId to = node.outputs[0];
  Step step{Pooling{place(node.inputs[0]), own_place(to), *window, how}, {}};
  if (node.op == OpKind::SumPool)
    step.after.push_back({.alpha = static_cast<double>(product(window->kernel))});
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
  push({Pooling{place(node.inputs[0]),
                own_place(to),
                {spatial, ones, ones, zeros, zeros},
                node.op == OpKind::GlobalMaxPool ? PoolKind::max : PoolKind::mean_of_window},
        {}},
       to);
  return true;
}

bool Matcher::matmul(const Node& node) {
  if (!floats(node)) return false;
  Place a = place(node.inputs[0]);
  Place b = place(node.inputs[1]);
  const TensorId to = node.outputs[0];
  Place c = own_place(to);
  const auto insert_one = [](Place& at, size_t from_end) {
    at.shape.insert(at.shape.end() - static_cast<ptrdiff_t>(from_end), 1);
    at.strides.insert(at.strides.end() - static_cast<ptrdiff_t>(from_end), 0);
  };
  const bool row = a.shape.size() == 1;
  const bool column = b.shape.size() == 1;
  if (row) insert_one(a, 1);
  if (column) insert_one(b, 0);
  if (column) insert_one(c, 0);
  if (row) insert_one(c, 1);
  const size_t rank = std::max(a.shape.size(), b.shape.size());
  const bool tf32 = a.dtype == Dtype::f32 && track_ != Track::fp32;
  push({Matmul{of_rank(a, rank), of_rank(b, rank), of_rank(c, rank), tf32}, {}}, to);
  return true;
}

bool Matcher::gemm(const Node& node) {
  if (!floats(node)) return false;
  const double alpha = node.real("alpha", 1);
  const double beta = node.real("beta", 1);
  const bool biased = node.inputs.size() > 2 && node.inputs[2] != graph::kAbsent && beta != 0;
  if (biased && beta != 1) return false;
  const auto operand = [&](size_t i, std::string_view transposed) {
    Place at = place(node.inputs[i]);
    if (node.integer(transposed) == 0) return at;
    std::swap(at.shape[0], at.shape[1]);
    std::swap(at.strides[0], at.strides[1]);
    return at;
  };
  const TensorId to = node.outputs[0];
  const bool tf32 = tensor(to).dtype == Dtype::f32 && track_ != Track::fp32;
  Step step{Matmul{operand(0, "transA"), operand(1, "transB"), own_place(to), tf32}, {}};
  if (alpha != 1) step.after.push_back({.alpha = alpha});
  if (biased) step.after.push_back({.other = of_rank(place(node.inputs[2]), 2)});
  push(std::move(step), to);
  return true;
}

bool Matcher::softmax(const Node& node) {
  if (!floats(node)) return false;
  const graph::NodeContext question{graph(), node};
  const size_t axis = question.axis(tensor(node.inputs[0]).shape.size());
  push({Softmax{place(node.inputs[0]), own_place(node.outputs[0]), static_cast<int64_t>(axis),
                node.op == OpKind::LogSoftmax},
        {}},
       node.outputs[0]);
  return true;
}

bool Matcher::batch_norm(const Node& node) {
  if (!floats(node) || node.integer("training_mode") != 0) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != graph::kAbsent) return false;
  const auto given = [&](size_t i) { return settled(node.inputs[i]); };
  push({BatchNorm{settled(node.inputs[0]), own_place(node.outputs[0]), given(1), given(2), given(3),
                  given(4), node.real("epsilon", 1e-5)},
        {}},
       node.outputs[0]);
  return true;
}

bool Matcher::layer_norm(const Node& node) {
  if (!floats(node)) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != graph::kAbsent) return false;
  const graph::NodeContext question{graph(), node};
  const Shape& shape = tensor(node.inputs[0]).shape;
  const size_t axis = question.axis(shape.size());
  const int64_t size = product(Shape(shape.begin() + static_cast<ptrdiff_t>(axis), shape.end()));
  LayerNorm call{settled(node.inputs[0]),   own_place(node.outputs[0]), {}, {}, size,
                 node.real("epsilon", 1e-5)};
  const auto factor = [&](size_t i) -> std::optional<Place> {
    if (node.inputs.size() <= i || node.inputs[i] == graph::kAbsent) return std::nullopt;
    return reshaped(settled(node.inputs[i]), {product(tensor(node.inputs[i]).shape)});
  };
  call.scale = factor(1);
  call.shift = factor(2);
  for (const auto& each : {call.scale, call.shift})
    if (each && elements_of(*each) != size) return false;
  push({std::move(call), {}}, node.outputs[0]);
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
  const int64_t size = product(shape) / (shape[0] * groups);
  Step step{
      LayerNorm{settled(node.inputs[0]), own_place(to), {}, {}, size, node.real("epsilon", 1e-5)},
      {}};
  step.after.push_back(
      {.other = along_channels(node.inputs[1], shape.size()), .combine = Combine::mul});
  step.after.push_back({.other = along_channels(node.inputs[2], shape.size())});
  push(std::move(step), to);
  return true;
}

bool Matcher::reduction(const Node& node) {
  if (!floats(node)) return false;
  const Result<std::vector<int64_t>> axes = graph::reduced_axes({graph(), node});
  const auto row = std::ranges::find(kReductions, node.op, &std::pair<OpKind, Reduce>::first);
  if (!axes || axes->empty() || row == std::end(kReductions)) return false;
  const TensorId to = node.outputs[0];
  Shape shape = tensor(node.inputs[0]).shape;
  for (const int64_t axis : *axes) shape[axis] = 1;
  const auto dst = reshaped(own_place(to), shape);
  if (!dst) return false;
  Step step{Reduction{place(node.inputs[0]), *dst, row->second}, {}};
  if (node.op == OpKind::ReduceLogSum) step.after.push_back({.function = Function::log});
  push(std::move(step), to);
  return true;
}

bool Matcher::lrn(const Node& node) {
  const int64_t size = node.integer("size");
  if (!floats(node) || size % 2 == 0) return false;
  push({Lrn{settled(node.inputs[0]), own_place(node.outputs[0]), size, node.real("alpha", 1e-4),
            node.real("beta", 0.75), node.real("bias", 1)},
        {}},
       node.outputs[0]);
  return true;
}
}  // namespace warploom::vendor
