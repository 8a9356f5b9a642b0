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
  found.places = places;
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

namespace {
// What follows the sum, as a tree down to it.
class Tail {
 public:
  explicit Tail(const CpuConvolution& convolution) : of_(convolution), nest_(of_.nest) {}

  // Finds the loads; false where a tile cannot compute it.
  bool read() {
    return std::ranges::all_of(nest_.outputs, [&](const LoopNest::Output& output) {
      const Expr& last = nest_.value(output.value);
      const bool rounded_by_store = last.kind == Kind::round && last.dtype == output.place.dtype;
      return read(rounded_by_store ? last.operands[0] : output.value) && nodes_ <= kMostNodes;
    });
  }

  std::vector<int> loads;

 private:
  static constexpr int64_t kMostNodes = 1024;

  bool read(int id) {
    const Expr& value = nest_.value(id);
    const bool is_pool = of_.pool && as_size(id) == *of_.pool;
    if (++nodes_ > kMostNodes) return false;
    if (as_size(id) == of_.c.sum || value.kind == Kind::constant) return true;
    if (value.kind == Kind::load) return take(value.load);
    if (value.kind != Kind::apply && !is_pool) return false;
    const int64_t times = is_pool ? of_.place_count() : 1;
    const int64_t before = nodes_;
    const bool reads = std::ranges::all_of(value.operands, [&](int each) { return read(each); });
    nodes_ += (times - 1) * (nodes_ - before);
    return reads;
  }

  // An operand is the same for all places of a pool.
  bool take(int load) {
    if (std::ranges::find(loads, load) == loads.end()) loads.push_back(load);
    const auto moves = [&](size_t axis) { return nest_.loads[as_size(load)].uses(axis); };
    return std::ranges::none_of(of_.places, moves);
  }

  const CpuConvolution& of_;
  const LoopNest& nest_;
  int64_t nodes_ = 0;
};

// Whether the windows of a pool lie side by side.
bool has_pool_apart(const CpuConvolution& convolution) {
  return std::ranges::all_of(convolution.places, [&](size_t place) {
    const auto dim = convolution.input.dim_of(place);
    if (!dim) return false;
    const auto& steps = convolution.input.at[*dim].steps;
    const int64_t reach = steps[place] * convolution.size(place);
    return std::ranges::all_of(
        convolution.pixels, [&](size_t axis) { return steps[axis] == 0 || steps[axis] >= reach; });
  });
}

// The nest up to what a pool combines, whose axes then are the output's, far apart.
LoopNest without_pool(LoopNest nest, size_t pool) {
  constexpr int64_t kFar = int64_t{1} << 40;
  auto& [value, place] = nest.outputs[0];
  value = nest.values[pool].operands[0];
  const auto axes = nest.values[pool].axes;
  nest.values.resize(pool);  // operands come before users
  for (const size_t axis : axes) {
    place.shape.push_back(nest.axes[axis]);
    place.strides.push_back(kFar);
    place.at.push_back(along(axis, nest.axes.size()));
  }
  return nest;
}

// The value of a pool behind a sum; nothing where there is no second reduction.
std::optional<size_t> pool_of(const LoopNest& nest) {
  std::vector<size_t> reductions;
  for (size_t v = 0; v < nest.values.size(); ++v)
    if (nest.values[v].kind == Kind::reduce) reductions.push_back(v);
  if (reductions.size() != 2 || nest.outputs.size() != 1) return std::nullopt;
  return reductions[1];
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
  found->nest = nest;
  found->pool = pool;
  constexpr int64_t kMostPlaces = 16;
  if (!has_pool_apart(*found) || found->place_count() > kMostPlaces) return std::nullopt;
  // A row of one element may have been added.
  if (found->c.nest.axes.size() != nest.axes.size()) return std::nullopt;
  Tail tail(*found);
  if (!tail.read()) return std::nullopt;
  found->operands = std::move(tail.loads);
  return found;
}
}  // namespace warploom::kernels
