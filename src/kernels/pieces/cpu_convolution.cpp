#include "kernels/pieces/cpu_convolution.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/window_order.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

constexpr size_t kMostPixelAxes = 3;

// Axes by how far apart neighbours along them lie, the farthest first.
void sort_by_stride(std::vector<size_t>& axes, const Access& access) {
  const auto stride = [&](size_t axis) { return -access.stride(axis); };
  std::ranges::stable_sort(axes, {}, stride);
}

// Makes the dimensions along the axes of the sum one, the last, read at `element`; false where they
// do not lie so in memory.
bool flatten(Access& weights, const std::vector<size_t>& depth, const LoopNest& nest) {
  int64_t size = 1;
  const int64_t stride = weights.stride(depth.back());
  int64_t taps = 1;  // of the first axis
  for (size_t i = depth.size(); i-- > 0;) {
    const auto dim = weights.dim_of(depth[i]);
    if (!dim || stepped_axes(weights.at[*dim]).size() != 1 || weights.at[*dim].begin != 0)
      return false;
    if (weights.stride(depth[i]) != stride * size) return false;
    taps = size;
    size *= nest.axes[depth[i]];
    weights.erase(*dim);
  }
  weights.shape.push_back(size);
  weights.strides.push_back(stride);
  weights.at.push_back(along(depth[0], nest.axes.size(), taps));
  return true;
}

// Whether each axis of pixels and of the sum moves one dimension of the input, forwards.
bool reads_patches(const CpuConvolution& convolution) {
  const Access& input = convolution.input;
  if (input.is_gathered() || input.padding_value != 0) return false;
  for (const Affine& dim : input.at)
    if (std::ranges::any_of(dim.steps, [](int64_t step) { return step < 0; })) return false;
  const auto moves_one = [&](size_t axis) { return input.dim_of(axis).has_value(); };
  return std::ranges::all_of(convolution.pixels, moves_one) &&
         std::ranges::all_of(convolution.depth, moves_one);
}

std::optional<CpuConvolution> with_input_first(Contraction contraction) {
  CpuConvolution found;
  found.c = std::move(contraction);
  const Contraction& c = found.c;
  if (c.n.size() != 1 || c.m.empty() || c.nest.axes[c.column] == 1) return std::nullopt;
  found.input = joined(c.access_a(), c);
  found.weights = c.access_b();
  const auto& place = c.nest.outputs[0].place;
  found.pixels = c.m;
  sort_by_stride(found.pixels, place);
  const size_t beyond = found.pixels.size() - std::min(found.pixels.size(), kMostPixelAxes);
  found.pixels.erase(found.pixels.begin(), found.pixels.begin() + as_int64(beyond));
  found.depth = c.k;
  sort_by_stride(found.depth, found.weights);
  const auto is_apart = [&](size_t axis) { return place.dim_of(axis).has_value(); };
  if (!std::ranges::all_of(found.pixels, is_apart) || !is_apart(c.column)) return std::nullopt;
  if (found.weights.is_gathered() || !found.weights.in_bounds) return std::nullopt;
  if (!reads_patches(found) || !flatten(found.weights, found.depth, c.nest)) return std::nullopt;
  for (const size_t axis : found.depth) found.taps *= found.size(axis);
  found.taps /= found.size(found.blocked());
  return found;
}
}  // namespace

std::optional<CpuConvolution> cpu_convolution_of(Contraction contraction,
                                                 const std::string& weights) {
  const bool plain = !contraction.scaled && contraction.scales.empty() &&
                     contraction.reductions.empty() && !contraction.skips_zeros() &&
                     contraction.domain_constraints.empty() && contraction.nest.outputs.size() == 1;
  const auto is_index = [](const Expr& value) { return value.kind == Kind::index; };
  if (!plain || !epilogue_of(contraction)) return std::nullopt;
  if (std::ranges::any_of(contraction.nest.values, is_index)) return std::nullopt;
  auto turned = with_input_first(with_swapped_ab(contraction));
  auto straight = with_input_first(std::move(contraction));
  const bool either = turned && straight;
  if (either) return turned->weights.name == weights ? std::move(turned) : std::move(straight);
  return turned ? std::move(turned) : std::move(straight);
}

PatchShape::PatchShape(const CpuConvolution& convolution, const std::vector<int64_t>& extent) {
  const Access& input = convolution.input;
  std::vector<size_t> axes = convolution.pixels;
  axes.insert(axes.end(), convolution.depth.begin(), convolution.depth.end());
  dims.resize(input.at.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::ranges::stable_sort(dims, {}, [&](size_t d) { return -input.strides[d]; });
  for (const size_t d : dims) {
    const Affine& coordinate = input.at[d];
    int64_t last = 0;
    int64_t every = 0;
    for (const size_t axis : axes) {
      last += coordinate.steps[axis] * (extent[axis] - 1);
      if (extent[axis] > 1) every = std::gcd(every, coordinate.steps[axis]);
    }
    steps.push_back(std::max<int64_t>(every, 1));
    extents.push_back(last / steps.back() + 1);
    elements *= extents.back();
  }
  for (const size_t axis : axes) {
    const size_t d = *input.dim_of(axis);
    const auto place = as_size(std::ranges::find(dims, d) - dims.begin());
    int64_t stride = input.at[d].steps[axis] / steps[place];
    for (size_t i = place + 1; i < dims.size(); ++i) stride *= extents[i];
    windows.push_back(extent[axis]);
    strides.push_back(extent[axis] > 1 ? stride : 0);
  }
}

namespace {
class ConvolutionKernel {
 public:
  ConvolutionKernel(const CpuConvolution& convolution, const std::vector<int64_t>& extent)
      : of_(convolution), c_(convolution.c), patch_(convolution, extent), here_(c_.nest) {
    here_.extent = extent;
    for (const size_t axis : of_.depth) here_.extent[axis] = 1;
    depth_ = extent[of_.blocked()];
  }

  void add_to(Family::Programs& out) {
    place();
    const auto acc = sums();
    std::vector<size_t> axes = of_.pixels;
    axes.push_back(c_.column);
    store(draft_, c_, acc, here_, axes, of_.pixels.size());
    draft_.finish(out);
  }

 private:
  // A tile that would reach beyond the end of an axis begins early enough to lie inside.
  void place() {
    std::vector<size_t> free;
    for (size_t axis = 0; axis < c_.nest.axes.size(); ++axis)
      if (std::ranges::find(of_.depth, axis) == of_.depth.end() && axis != c_.column)
        free.push_back(axis);
    free.push_back(c_.column);
    here_.place(c_.nest, free, tile::block(0));
    for (const size_t axis : free)
      if (const int64_t rest = c_.nest.axes[axis] - here_.extent[axis];
          c_.nest.axes[axis] % here_.extent[axis] != 0)
        here_.origin[axis] = tile::min(here_.origin[axis], rest);
    b_.grid(here_.count(c_.nest, free)).warps(1);
  }

  TensorId sums() {
    const int64_t columns = here_.extent[c_.column];
    int64_t rows = 1;
    for (const size_t axis : of_.pixels) rows *= here_.extent[axis];
    const TensorId patch = b_.shared("patch", Dtype::f32, patch_.extents);
    const TensorId windows = b_.as_strided("windows", patch, 0, patch_.windows, patch_.strides);
    const TensorId w = b_.shared("w", Dtype::f32, {columns, depth_ * of_.taps});
    const TensorId acc = draft_.reg("acc", Dtype::f32, {rows, columns});
    const TensorTile weights(draft_, "W", c_.nest, of_.weights, {c_.column, of_.blocked()});
    const TensorId input = declare_input();
    const int64_t blocks = ceil_div(of_.size(of_.blocked()), depth_);
    const auto add_block = [&](const Index& k) {
      here_.origin[of_.blocked()] = k * depth_;
      b_.copy(box_of_input(input), b_.all(patch));
      Tile rows_of_weights = weights.at(here_);
      rows_of_weights.extent.back() = depth_ * of_.taps;
      b_.copy(std::move(rows_of_weights), b_.all(w));
      if (blocks > 1)
        b_.if_less(k, 1, [&] { b_.fill(acc, 0); });
      else
        b_.fill(acc, 0);
      b_.mma(acc, b_.all(windows), b_.all(w), false, true);
    };
    if (blocks > 1)
      b_.for_("k", 0, blocks, 1, add_block);
    else
      add_block(0);
    here_.origin[of_.blocked()] = 0;
    return acc;
  }

  TensorId declare_input() {
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    for (const size_t d : patch_.dims) {
      shape.push_back(of_.input.shape[d]);
      strides.push_back(of_.input.strides[d]);
    }
    draft_.buffers["X"] = of_.input.name;
    return b_.global("X", of_.input.dtype, shape, strides);
  }

  Tile box_of_input(TensorId input) const {
    std::vector<Index> offset;
    for (const size_t d : patch_.dims) offset.push_back(here_.first(of_.input.at[d]));
    return b_.stepped(b_.tile(input, std::move(offset), patch_.extents), patch_.steps);
  }

  const CpuConvolution& of_;
  const Contraction& c_;
  PatchShape patch_;
  TileCoord here_;
  int64_t depth_ = 1;  // elements of the blocked axis taken at once
  KernelBuilder draft_{"convolution"};
  tile::Builder& b_ = draft_.b;
};
}  // namespace

void add_cpu_convolution(Family::Programs& out, const CpuConvolution& convolution,
                         const std::vector<int64_t>& extent) {
  ConvolutionKernel(convolution, extent).add_to(out);
}
}  // namespace warploom::kernels
