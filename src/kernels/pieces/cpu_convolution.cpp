#include "kernels/pieces/cpu_convolution.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
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
#include "tile/build.h"
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
  const auto is_apart = [&](size_t axis) { return place.dim_of(axis).has_value(); };
  if (!std::ranges::all_of(found.pixels, is_apart) || !is_apart(c.column)) return std::nullopt;
  if (found.weights.is_gathered() || !found.weights.in_bounds) return std::nullopt;
  if (!reads_patches(found) || !flatten(found.weights, found.depth, c.nest)) return std::nullopt;
  for (const size_t axis : found.depth)
    found.taps *= found.size(axis);
  found.taps /= found.size(found.blocked());
  return found;
}
}  // namespace

int64_t CpuConvolution::place_count() const {
  int64_t count = 1;
  for (const size_t axis : places)
    count *= size(axis);
  return count;
}

namespace {
// What follows the sum, as a tree down to it.
class Tail {
 public:
  explicit Tail(const CpuConvolution& convolution) : of_(convolution), nest_(of_.nest) {}

  // Finds the loads; false where a tile cannot compute it.
  bool read() {
    const auto& [result, place] = nest_.outputs[0];
    const Expr& last = nest_.value(result);
    const bool rounded_by_store = last.kind == Kind::round && last.dtype == place.dtype;
    return read(rounded_by_store ? last.operands[0] : result) && nodes_ <= kMostNodes;
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
  auto contraction = contraction_of(pool ? without_pool(nest, *pool) : nest);
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

PatchShape::PatchShape(const CpuConvolution& convolution, const std::vector<int64_t>& extent) {
  const Access& input = convolution.input;
  std::vector<size_t> axes = convolution.pixels;
  axes.insert(axes.end(), convolution.depth.begin(), convolution.depth.end());
  std::vector<size_t> moving = axes;
  moving.insert(moving.end(), convolution.places.begin(), convolution.places.end());
  dims.resize(input.at.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::ranges::stable_sort(dims, {}, [&](size_t d) { return -input.strides[d]; });
  for (const size_t d : dims) {
    const Affine& coordinate = input.at[d];
    int64_t last = 0;
    int64_t every = 0;
    for (const size_t axis : moving) {
      last += coordinate.steps[axis] * (extent[axis] - 1);
      if (extent[axis] > 1) every = std::gcd(every, coordinate.steps[axis]);
    }
    steps.push_back(std::max<int64_t>(every, 1));
    extents.push_back(last / steps.back() + 1);
    elements *= extents.back();
  }
  const auto stride_of = [&](size_t axis) {
    const size_t d = *input.dim_of(axis);
    const auto place = as_size(std::ranges::find(dims, d) - dims.begin());
    int64_t stride = input.at[d].steps[axis] / steps[place];
    for (size_t i = place + 1; i < dims.size(); ++i)
      stride *= extents[i];
    return extent[axis] > 1 ? stride : 0;
  };
  for (const size_t axis : axes) {
    windows.push_back(extent[axis]);
    strides.push_back(stride_of(axis));
  }
  begins = {0};
  for (const size_t axis : convolution.places) {
    std::vector<int64_t> all;
    for (const int64_t begin : begins)
      for (int64_t i = 0; i < extent[axis]; ++i)
        all.push_back(begin + i * stride_of(axis));
    begins = std::move(all);
  }
}

namespace {
class ConvolutionKernel {
 public:
  ConvolutionKernel(const CpuConvolution& convolution, const std::vector<int64_t>& extent)
      : of_(convolution), c_(convolution.c), patch_(convolution, extent), here_(c_.nest) {
    here_.extent = extent;
    for (const size_t axis : of_.depth)
      here_.extent[axis] = 1;
    for (const size_t axis : of_.places)
      here_.extent[axis] = 1;
    depth_ = extent[of_.blocked()];
  }

  void add_to(Family::Programs& out) {
    place();
    add_up();
    store_result();
    draft_.finish(out);
  }

 private:
  // A tile that would reach beyond the end of an axis begins early enough to lie inside.
  void place() {
    std::vector<size_t> free;
    const auto is_inside = [&](size_t axis) {
      return std::ranges::count(of_.depth, axis) + std::ranges::count(of_.places, axis) > 0;
    };
    for (size_t axis = 0; axis < c_.nest.axes.size(); ++axis)
      if (!is_inside(axis) && axis != c_.column) free.push_back(axis);
    free.push_back(c_.column);
    here_.place(c_.nest, free, tile::block(0));
    for (const size_t axis : free)
      if (const int64_t rest = c_.nest.axes[axis] - here_.extent[axis];
          c_.nest.axes[axis] % here_.extent[axis] != 0)
        here_.origin[axis] = tile::min(here_.origin[axis], rest);
    b_.grid(here_.count(c_.nest, free)).warps(1);
  }

  // Declares the accumulators, one for each place of a pool, and what they are sums of.
  void declare() {
    const int64_t columns = here_.extent[c_.column];
    for (const size_t axis : of_.pixels)
      rows_ *= here_.extent[axis];
    patch_in_cache_ = b_.shared("patch", Dtype::f32, patch_.extents);
    w_ = b_.shared("w", Dtype::f32, {columns, depth_ * of_.taps});
    for (size_t i = 0; i < patch_.begins.size(); ++i) {
      windows_.push_back(b_.as_strided(fmt::format("windows{}", i), patch_in_cache_,
                                       as_int(patch_.begins[i]), patch_.windows, patch_.strides));
      acc_.push_back(draft_.reg(fmt::format("acc{}", i), Dtype::f32, {rows_, columns}));
    }
  }

  void add_up() {
    declare();
    const TensorTile weights(draft_, "W", c_.nest, of_.weights, {c_.column, of_.blocked()});
    const TensorId input = declare_input();
    const int64_t blocks = ceil_div(of_.size(of_.blocked()), depth_);
    const auto add_block = [&](const Index& k) {
      here_.origin[of_.blocked()] = k * depth_;
      b_.copy(box_of_input(input), b_.all(patch_in_cache_));
      Tile rows_of_weights = weights.at(here_);
      rows_of_weights.extent.back() = depth_ * of_.taps;
      b_.copy(std::move(rows_of_weights), b_.all(w_));
      for (size_t i = 0; i < acc_.size(); ++i) {
        if (blocks > 1)
          b_.if_less(k, 1, [&] { b_.fill(acc_[i], 0); });
        else
          b_.fill(acc_[i], 0);
        b_.mma(acc_[i], b_.all(windows_[i]), b_.all(w_), false, true);
      }
    };
    if (blocks > 1)
      b_.for_("k", 0, blocks, 1, add_block);
    else
      add_block(0);
    here_.origin[of_.blocked()] = 0;
  }

  // Computes what follows the sum, and stores it.
  void store_result() {
    std::vector<size_t> axes = of_.pixels;
    axes.push_back(c_.column);
    const size_t rows = of_.pixels.size();
    for (const int load : of_.operands) {
      const std::string name = fmt::format("e{}", beside_.size());
      const Access& access = of_.nest.loads[as_size(load)];
      beside_[load] = load_beside(draft_, c_, name, access, here_, axes, rows);
    }
    const auto& [value, place] = of_.nest.outputs[0];
    TensorId result = acc_[0];
    const bool is_sum = as_size(value) == c_.sum && place.dtype == Dtype::f32;
    if (!is_sum) {
      result = draft_.reg("result", place.dtype, {rows_, here_.extent[c_.column]});
      b_.map(result, value_of(value, 0));
    }
    const Tile to = TensorTile(draft_, "C", of_.nest, place, axes, true).at(here_);
    b_.copy(b_.all(result), to);
  }

  // A value as an expression of registers, the sum being that at a place of a pool.
  Value value_of(int id, size_t place) const {
    const auto known = [&](int v) -> std::optional<Value> {
      if (as_size(v) == c_.sum) return b_.value(acc_[place]);
      if (of_.pool && as_size(v) == *of_.pool) return pooled(of_.nest.value(v));
      const Expr& value = of_.nest.value(v);
      if (value.kind != Kind::load) return std::nullopt;
      return b_.value(beside_.at(value.load));
    };
    return made_of<Value>(of_.nest, id, known, tile::constant, tile::apply);
  }

  Value pooled(const Expr& pool) const {
    Value all = value_of(pool.operands[0], 0);
    for (size_t place = 1; place < acc_.size(); ++place)
      all = tile::apply(pool.op, {std::move(all), value_of(pool.operands[0], place)});
    return all;
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
    for (const size_t d : patch_.dims)
      offset.push_back(here_.first(of_.input.at[d]));
    return b_.stepped(b_.tile(input, std::move(offset), patch_.extents), patch_.steps);
  }

  const CpuConvolution& of_;
  const Contraction& c_;
  PatchShape patch_;
  TileCoord here_;
  int64_t depth_ = 1;  // elements of the blocked axis taken at once
  int64_t rows_ = 1;   // of a tile's results
  TensorId patch_in_cache_ = -1;
  TensorId w_ = -1;
  std::vector<TensorId> windows_;  // by the places of a pool
  std::vector<TensorId> acc_;
  std::map<int, TensorId> beside_;  // what follows the sum reads, by load
  KernelBuilder draft_{"convolution"};
  tile::Builder& b_ = draft_.b;
};
}  // namespace

void add_cpu_convolution(Family::Programs& out, const CpuConvolution& convolution,
                         const std::vector<int64_t>& extent) {
  ConvolutionKernel(convolution, extent).add_to(out);
}
}  // namespace warploom::kernels
