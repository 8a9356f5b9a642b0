#include "kernels/pieces/loop_tile.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/loop_nest.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels::direct {
using tile::Tile;

LoopTile::LoopTile(const LoopNestTiling& all, const LoopKernelOptions& with,
                   const Capabilities& target, const std::string& name)
    : tiling(all),
      nest(all.nest),
      options(with),
      capabilities(target),
      draft(name),
      b(draft.b),
      at_(all.nest),
      rows_(with.multiplies ? with.rows_per_product : 1) {
  at_.extent = options.extents;
  for (size_t a = 0; a < at_.extent.size(); ++a)
    if (at_.extent[a] > 1) axes_.push_back(a);
  declare_tensors();
  place();
}

void LoopTile::declare_tensors() {
  const auto is_factor = [&](size_t load) {
    return options.multiplies && std::ranges::count(tiling.product->loads, load) > 0;
  };
  for (size_t i = 0; i < nest.loads.size(); ++i) {
    if (is_factor(i)) continue;
    TensorTile tensor(draft, fmt::format("X{}", i), nest, nest.loads[i], axes_);
    inputs_.emplace(as_int(i), std::move(tensor));
  }
  for (size_t i = 0; i < nest.outputs.size(); ++i) {
    const Access& place = nest.outputs[i].place;
    outputs_.emplace_back(draft, fmt::format("Y{}", i), nest, place, axes_, true);
    if (!gathers(place)) continue;
    const int64_t elements = options.rows_in_turn * extent(*tiling.roles.x);
    gathered_[i] = b.shared(fmt::format("rows{}", i), place.dtype, {elements});
  }
}

// Past the caches a row goes by whole cache lines: where it ends within one, the next row is waited
// for.
bool LoopTile::gathers(const Access& output) const {
  const auto& [x, y] = std::pair(tiling.roles.x, tiling.roles.y);
  const bool in_turn = options.rows_in_turn > 1 && options.nontemporal_store && x && y;
  if (capabilities.gpu || !in_turn || output.dtype != Dtype::f32) return false;
  const int64_t row = nest.axes[*x];
  const bool adjacent = stride_along(output, x) == 1 && stride_along(output, y) == row;
  return adjacent && extent(*x) == row && row % capabilities.lanes() != 0;
}

std::optional<TensorId> LoopTile::gathered(size_t number) const {
  const auto found = gathered_.find(number);
  return found == gathered_.end() ? std::nullopt : std::optional(found->second);
}

void LoopTile::store_gathered() {
  TileCoord whole = at_;
  whole.extent[*tiling.roles.y] = options.rows_in_turn;
  for (const auto& [number, rows] : gathered_)
    b.copy(b.all(rows), outputs_[number].at(whole), 0, options.nontemporal_store);
}

void LoopTile::for_rows_in_turn(const std::function<void()>& body) {
  const size_t y = *tiling.roles.y;
  const Index first = origin(y);
  b.for_("row", 0, options.rows_in_turn, 1, [&](const Index& row) {
    row_ = row;
    move_to(y, first + row);
    body();
  });
  move_to(y, first);
}

// Whether each element of the only tensor that is read comes to one place of the result.
bool LoopTile::only_moves() const {
  if (nest.loads.size() != 1 || tiling.scanned) return false;
  for (size_t a = 0; a < nest.axes.size(); ++a)
    if (tiling.reduced[a] || stride_along(nest.loads[0], a) == 0) return false;
  return true;
}

void LoopTile::place() {
  std::vector<size_t> free;
  for (size_t a = 0; a < nest.axes.size(); ++a)
    if (!tiling.is_walked(a)) free.push_back(a);
  // Tasks of a transpose follow one another along the rows that they read: what they write goes by
  // whole cache lines in any order.
  const MaybeAxis y = tiling.roles.y;
  if (!capabilities.gpu && only_moves()) {
    const auto stride = [&](size_t axis) { return stride_along(nest.loads[0], axis); };
    std::ranges::stable_sort(free, std::greater{}, stride);
  } else if (!capabilities.gpu && y && tiling.is_read_along(*y)) {
    const auto found = std::ranges::find(free, *y);
    std::rotate(found, found == free.end() ? found : found + 1, free.end());
  }
  TileCoord whole = at_;  // all that a block computes
  if (rows_ > 1) whole.extent[*tiling.roles.z] = rows_;
  if (options.rows_in_turn > 1) whole.extent[*tiling.roles.y] = options.rows_in_turn;
  const int64_t ctas = options.ctas_per_scan;
  lines_ = whole.count(nest, free);
  cta_rank_ = tile::block(0) % ctas;
  line_ = tile::block(0) / ctas;
  whole.place(nest, free, goes_backwards() ? Index(lines_ - 1) - line_ : line_);
  for (const size_t a : free) {
    if (capabilities.gpu || nest.axes[a] % whole.extent[a] == 0) continue;
    const int64_t last = nest.axes[a] - whole.extent[a];
    whole.origin[a] = tile::min(whole.origin[a], last);
  }
  at_.origin = std::move(whole.origin);
  b.grid(lines_ * ctas).warps(options.warps);
  if (ctas > 1) b.cooperative();
}

// From the last tile on where more is read than the L2 holds: that has what the kernel before this
// one wrote last.
bool LoopTile::goes_backwards() const {
  int64_t bytes = 0;
  for (const Access& load : nest.loads)
    bytes += bytes_of(load.dtype, graph::element_count(load.shape));
  return capabilities.gpu && !tiling.scanned && bytes > capabilities.l2_bytes;
}

int LoopTile::dim_of(size_t axis) const {
  return as_int(std::ranges::find(axes_, axis) - axes_.begin());
}

std::vector<int64_t> LoopTile::shape_of(const std::vector<bool>& varies) const {
  std::vector<int64_t> shape;
  for (const size_t a : axes_)
    shape.push_back(varies[a] ? extent(a) : 1);
  if (rows_ > 1 && varies[*tiling.roles.x]) shape.back() *= rows_;
  return shape.empty() ? std::vector<int64_t>{1} : shape;
}

TensorId LoopTile::reg(const std::string& name, Dtype dtype, const std::vector<bool>& varies) {
  return draft.reg(name, dtype, shape_of(varies));
}

void LoopTile::for_each_part(TensorId tensor, const Access& access,
                             const std::function<void(const Tile&)>& body) {
  if (rows_ == 1 || !access.uses(*tiling.roles.x)) return body(b.all(tensor));
  const std::vector<Index> start(axes_.size(), Index(0));
  Tile part = b.tile(tensor, start, {});
  for (const size_t a : axes_)
    part.extent.push_back(access.uses(a) ? extent(a) : 1);
  for_each_row([&](const Index& row) {
    part.offset.back() = row * extent(*tiling.roles.x);
    body(part);
  });
}

void LoopTile::for_each_row(const std::function<void(const Index&)>& body) {
  if (rows_ == 1) return body(0);
  const size_t axis = *tiling.roles.z;
  const Index first = origin(axis);
  b.for_("row", 0, rows_, 1, [&](const Index& row) {
    move_to(axis, first + row);
    body(row);
  });
  move_to(axis, first);
}
}  // namespace warploom::kernels::direct
