// The kernel of a convolution on a CPU: its packed weights, a task's patch, products of the two and
// what follows them.
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
#include "kernels/pieces/cpu_product.h"
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
  ConvolutionKernel(const CpuConvolution& convolution, const ConvolutionTile& tile)
      : of_(convolution),
        c_(convolution.c),
        s_(tile),
        patch_(convolution, tile.extent),
        columns_(of_.size(c_.column), tile.panel, tasks_along_columns()),
        here_(c_.nest) {
    here_.extent = tile.extent;
    here_.extent[c_.column] = tile.panel;
    for (const size_t axis : of_.depth)
      here_.extent[axis] = 1;
    for (const size_t axis : of_.pool.places)
      here_.extent[axis] = 1;
  }

  void add_to(Family::Programs& out) {
    pack_weights(out);
    place();
    declare();
    b_.copy(box_of_input(declare_input()), b_.all(patch_in_cache_));
    b_.for_("j", 0, columns_.per_task, 1, [&](const Index& j) {
      panel_ = first_panel_ + j;
      here_.origin[c_.column] = columns_.origin(panel_);
      add_up();
      store_results();
    });
    draft_.finish(out);
  }

 private:
  int64_t tasks_along_columns() const {
    return ceil_div(of_.size(c_.column), s_.extent[c_.column]);
  }

  int64_t terms() const { return of_.size(of_.blocked()) * of_.taps; }

  bool is_of_task(size_t axis) const {
    return std::ranges::count(of_.depth, axis) + std::ranges::count(of_.pool.places, axis) == 0;
  }

  // The axes that are neither columns nor of the sum, of which the weights are others: groups.
  std::vector<size_t> groups() const {
    std::vector<size_t> out;
    for (size_t axis = 0; axis < c_.nest.axes.size(); ++axis)
      if (is_of_task(axis) && axis != c_.column && of_.weights.uses(axis)) out.push_back(axis);
    return out;
  }

  Index group(const TileCoord& at) const {
    Index place = 0;
    for (const size_t axis : groups())
      place = place * c_.nest.axes[axis] + at.origin[axis];
    return place;
  }

  // Declares the packed weights, by whole vectors: what lies behind the columns of the last of them
  // is read, and counts for nothing.
  std::vector<int64_t> packed_strides() const {
    const int64_t pitch = round_up(s_.panel, kWholeVectors);
    return {columns_.count() * terms() * pitch, terms() * pitch, 1, pitch};
  }

  std::vector<int64_t> packed_shape() const {
    int64_t count = 1;
    for (const size_t axis : groups())
      count *= c_.nest.axes[axis];
    return {count, columns_.count(), s_.panel, terms()};
  }

  void pack_weights(Family::Programs& out) {
    const int64_t channels = of_.size(of_.blocked());
    const int64_t taken = std::clamp<int64_t>(kPackedTerms / of_.taps, 1, channels);
    KernelBuilder draft("pack_w");
    const TensorTile from(draft, "W", c_.nest, of_.weights, {c_.column, of_.blocked()});
    TileCoord at(c_.nest, {{c_.column, s_.panel}, {of_.blocked(), taken}});
    auto axes = groups();
    axes.insert(axes.end(), {c_.column, of_.blocked()});
    draft.b.grid(at.count(c_.nest, axes)).warps(1);
    at.place(c_.nest, axes, tile::block(0));
    const Index number = tile::block(0) / ceil_div(channels, taken) % columns_.count();
    at.origin[c_.column] = columns_.origin(number);
    at.origin[of_.blocked()] = tile::min(at.origin[of_.blocked()], channels - taken);
    const int64_t terms = taken * of_.taps;
    at.extent[of_.blocked()] = 1;
    Tile rows = from.at(at);
    rows.extent.back() = terms;
    const TensorId held = draft.b.reg("panel", Dtype::f32, {s_.panel, terms});
    draft.b.copy(std::move(rows), draft.b.all(held));
    const TensorId to = draft.b.output("P", Dtype::f32, packed_shape(), packed_strides());
    const Index first = at.origin[of_.blocked()] * of_.taps;
    draft.b.copy(draft.b.all(held),
                 draft.b.tile(to, {group(at), number, 0, first}, {1, 1, s_.panel, terms}));
    draft.buffers["P"] = kPacked;
    out.workspaces.push_back({kPacked, Dtype::f32, {packed_shape()[0] * packed_strides()[0]}});
    draft.finish(out);
  }

  // A tile that would reach beyond the end of an axis begins early enough to lie inside.
  void place() {
    std::vector<size_t> free;
    for (size_t axis = 0; axis < c_.nest.axes.size(); ++axis)
      if (is_of_task(axis) && axis != c_.column) free.push_back(axis);
    const int64_t tasks = columns_.tasks();
    first_panel_ = columns_.first(tile::block(0) % tasks);
    here_.place(c_.nest, free, tile::block(0) / tasks);
    for (const size_t axis : free)
      if (const int64_t rest = c_.nest.axes[axis] - here_.extent[axis];
          c_.nest.axes[axis] % here_.extent[axis] != 0)
        here_.origin[axis] = tile::min(here_.origin[axis], rest);
    b_.grid(here_.count(c_.nest, free) * tasks).warps(1);
  }

  // Declares the accumulators, one for each place of a pool, and what they are sums of.
  void declare() {
    for (const size_t axis : of_.pixels)
      rows_ *= here_.extent[axis];
    patch_in_cache_ = b_.shared("patch", Dtype::f32, patch_.extents);
    w_ = b_.global("W", Dtype::f32, packed_shape(), packed_strides());
    draft_.buffers["W"] = kPacked;
    for (size_t i = 0; i < patch_.begins.size(); ++i) {
      windows_.push_back(b_.as_strided(fmt::format("windows{}", i), patch_in_cache_,
                                       as_int(patch_.begins[i]), patch_.windows, patch_.strides));
      acc_.push_back(draft_.reg(fmt::format("acc{}", i), Dtype::f32, {rows_, s_.panel}));
    }
  }

  // The products of a panel, some channels at a time.
  void add_up() {
    const int64_t blocks = ceil_div(of_.size(of_.blocked()), s_.depth);
    const auto add_block = [&](const Index& k) {
      const Tile weights = b_.tile(w_, {group(here_), panel_, 0, k * (s_.depth * of_.taps)},
                                   {1, 1, s_.panel, s_.depth * of_.taps});
      for (size_t i = 0; i < acc_.size(); ++i) {
        if (blocks > 1)
          b_.if_less(k, 1, [&] { b_.fill(acc_[i], 0); });
        else
          b_.fill(acc_[i], 0);
        b_.mma(acc_[i], windows_of(i, k), weights, false, true);
      }
    };
    if (blocks > 1)
      b_.for_("k", 0, blocks, 1, add_block);
    else
      add_block(0);
  }

  // Those of a block of channels.
  Tile windows_of(size_t place, const Index& k) const {
    Tile windows = b_.all(windows_[place]);
    const size_t blocked = of_.pixels.size();
    windows.offset[blocked] = k * s_.depth;
    windows.extent[blocked] = s_.depth;
    return windows;
  }

  // Computes what follows the sum, and stores it.
  void store_results() {
    std::vector<size_t> axes = of_.pixels;
    axes.push_back(c_.column);
    const size_t rows = of_.pixels.size();
    for (const int load : of_.operands) {
      const std::string name = fmt::format("e{}", beside_.size());
      const Access& access = of_.pool.nest.loads[as_size(load)];
      beside_[load] = load_beside(draft_, c_, name, access, here_, axes, rows);
    }
    for (size_t i = 0; i < of_.pool.nest.outputs.size(); ++i)
      store(of_.pool.nest.outputs[i], i == 0 ? "" : fmt::format("_{}", i + 1), axes);
  }

  // An output, its tensors' names ending in a number; `axes`: of the pixels, then the column.
  void store(const LoopNest::Output& output, const std::string& number,
             const std::vector<size_t>& axes) {
    const auto& [value, place] = output;
    TensorId result = acc_[0];
    const bool is_sum = as_size(value) == c_.sum && place.dtype == Dtype::f32;
    if (!is_sum) {
      result = draft_.reg("result" + number, place.dtype, {rows_, here_.extent[c_.column]});
      b_.map(result, value_of(value, 0));
    }
    const Tile to = TensorTile(draft_, "C" + number, of_.pool.nest, place, axes, true).at(here_);
    b_.copy(b_.all(result), to);
  }

  // A value as an expression of registers, the sum being that at a place of a pool.
  Value value_of(int id, size_t place) const {
    const auto known = [&](int v) -> std::optional<Value> {
      if (as_size(v) == c_.sum) return b_.value(acc_[place]);
      if (of_.pool.value && as_size(v) == *of_.pool.value) return pooled(of_.pool.nest.value(v));
      const Expr& value = of_.pool.nest.value(v);
      if (value.kind != Kind::load) return std::nullopt;
      return b_.value(beside_.at(value.load));
    };
    return made_of<Value>(of_.pool.nest, id, known, tile::constant, tile::apply);
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

  static constexpr const char* kPacked = "w_panels";
  static constexpr int64_t kWholeVectors = 16;  // floats
  static constexpr int64_t kPackedTerms = 256;  // at most about so many a task

  const CpuConvolution& of_;
  const Contraction& c_;
  const ConvolutionTile& s_;
  PatchShape patch_;
  TileLine columns_;
  TileCoord here_;
  Index first_panel_ = 0;
  Index panel_ = 0;
  int64_t rows_ = 1;  // of a tile's results
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
                         const ConvolutionTile& tile) {
  ConvolutionKernel(convolution, tile).add_to(out);
}
}  // namespace warploom::kernels
