// The kernel of a convolution on a CPU: a task's patch, its products, what follows them.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/cpu_convolution.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

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
