#include "kernels/pieces/cpu_convolution.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/pieces/window_order.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/pool.h"

namespace warploom::kernels {
namespace {
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

// `places`: axes of a pool's windows, which are no pixels of a tile.
std::optional<CpuConvolution> with_input_first(Contraction contraction,
                                               const std::vector<size_t>& places) {
  CpuConvolution found;
  found.c = std::move(contraction);
  const Contraction& c = found.c;
  if (c.n.size() != 1 || c.m.empty() || c.nest.axes[c.column] == 1) return std::nullopt;
  found.input = joined(c.access_a(), c);
  found.weights = c.access_b();
  const auto& place = c.nest.outputs[0].place;
  const auto is_place = [&](size_t axis) { return std::ranges::count(places, axis) > 0; };
  std::ranges::remove_copy_if(c.m, std::back_inserter(found.pixels), is_place);
  sort_by_stride(found.pixels, place);
  const size_t beyond = found.pixels.size() - std::min(found.pixels.size(), kMostPixelAxes);
  found.pixels.erase(found.pixels.begin(), found.pixels.begin() + as_int64(beyond));
  found.depth = c.k;
  sort_by_stride(found.depth, found.weights);
  const auto is_apart = [&](size_t axis) {
    return std::ranges::all_of(c.nest.outputs, [&](const LoopNest::Output& output) {
      return output.place.dim_of(axis).has_value();
    });
  };
  if (!std::ranges::all_of(found.pixels, is_apart) || !is_apart(c.column)) return std::nullopt;
  if (found.weights.is_gathered() || !found.weights.in_bounds) return std::nullopt;
  if (!reads_patches(found) || !flatten(found.weights, found.depth, c.nest)) return std::nullopt;
  for (const size_t axis : found.depth)
    found.taps *= found.size(axis);
  found.taps /= found.size(found.blocked());
  return found;
}
}  // namespace

std::optional<CpuConvolution> cpu_convolution_of(const LoopNest& nest, const std::string& weights) {
  const auto pool = pool_of(nest);
  auto contraction =
      contraction_of(pool ? without_pool(nest, *pool) : nest, false, Results::several);
  if (!contraction) return std::nullopt;
  const bool plain = !contraction->scaled && !contraction->skips_zeros() &&
                     contraction->domain_constraints.empty();
  if (!plain) return std::nullopt;
  const auto places = pool ? nest.values[*pool].axes : std::vector<size_t>{};
  auto turned = with_input_first(with_swapped_ab(*contraction), places);
  auto straight = with_input_first(*std::move(contraction), places);
  const bool swaps = turned && (!straight || turned->weights.name == weights);
  auto found = swaps ? std::move(turned) : std::move(straight);
  if (!found) return std::nullopt;
  found->pool = {nest, pool, places};
  constexpr int64_t kMostPlaces = 16;
  if (!found->pool.lies_apart(found->input, found->pixels)) return std::nullopt;
  if (found->pool.place_count() > kMostPlaces) return std::nullopt;
  // A row of one element may have been added.
  if (found->c.nest.axes.size() != nest.axes.size()) return std::nullopt;
  auto operands = operands_behind(found->pool, found->c.sum);
  if (!operands) return std::nullopt;
  found->operands = *std::move(operands);
  return found;
}
}  // namespace warploom::kernels
