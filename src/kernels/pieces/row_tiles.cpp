#include "kernels/pieces/row_tiles.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reduction.h"
#include "tile/index.h"

namespace warploom::kernels {
RowTiles::RowTiles(const RowReduction& all, RowKernelOptions with)
    : rows(all), options(std::move(with)), at_(all.nest), start_(options.extents.size(), 0) {
  at_.origin = start_;
  at_.extent = options.extents;
  const LoopNest& nest = rows.nest;
  for (size_t i = 0; i < nest.loads.size(); ++i)
    inputs_.emplace_back(draft, fmt::format("X{}", i), nest, nest.loads[i], rows.dims);
  for (size_t i = 0; i < nest.outputs.size(); ++i) {
    const std::string name = i == 0 ? "Y" : fmt::format("Y{}", i);
    outputs_.emplace_back(draft, name, nest, nest.outputs[i].place, rows.dims, true);
  }
}

int64_t RowTiles::tile_count(size_t axis) const {
  const int64_t parts = axis == last_axis() ? options.ctas_per_row : 1;
  return ceil_div(rows.size(axis), at_.extent[axis] * parts);
}

int64_t RowTiles::tile_count(const std::vector<size_t>& axes) const {
  int64_t count = 1;
  for (const size_t axis : axes)
    count *= tile_count(axis);
  return count;
}

int64_t RowTiles::elements_of_part() const {
  int64_t elements = 1;
  for (const size_t axis : rows.row)
    elements *= tile_count(axis) * at_.extent[axis];
  return elements;
}

void RowTiles::go_to_rows(const Index& group) {
  group_ = group;
  at_.origin.assign(start_.size(), 0);
  at_.place(rows.nest, rows.outer, group_);
  const size_t last = last_axis();
  if (shares_rows()) at_.origin[last] = cta_rank() * (tile_count(last) * at_.extent[last]);
  start_ = at_.origin;
}

void RowTiles::go_to_tile(const Index& number) {
  std::vector<int64_t> tiles;  // of the CTA's part
  for (const size_t axis : rows.row) {
    tiles.push_back(tile_count(axis));
    at_.origin[axis] = 0;
  }
  at_.place(rows.row, tiles, number);
  const size_t last = last_axis();
  if (shares_rows()) at_.origin[last] = start_[last] + at_.origin[last];
}

Index RowTiles::cta_rank() const {
  return options.exchange_in_memory ? tile::block(0) % options.ctas_per_row : tile::cluster_rank();
}

void RowTiles::for_each_tile(const std::function<void(const Index&)>& body) {
  const auto at_tile = [&](const Index& number) {
    go_to_tile(number);
    body(number);
  };
  if (!options.unrolled) return b.for_("i", 0, tiles_of_a_row(), 1, at_tile);
  for (unrolled_tile_ = 0; unrolled_tile_ < tiles_of_a_row(); ++unrolled_tile_)
    at_tile(unrolled_tile_);
  unrolled_tile_ = 0;
}

void RowTiles::at_unrolled_tile(int64_t tile, const std::function<void()>& body) {
  const int64_t here = std::exchange(unrolled_tile_, tile);
  go_to_tile(tile);
  body();
  unrolled_tile_ = here;
  go_to_tile(here);
}

TensorId RowTiles::reg(const std::string& name, const std::vector<bool>& varies, Dtype dtype) {
  std::vector<int64_t> shape;
  for (const size_t axis : rows.dims) {
    const bool large = axis < varies.size() ? varies[axis] : axis == rows.tiled_outer;
    shape.push_back(large ? at_.extent[axis] : 1);
  }
  return draft.reg(name, dtype, shape);
}

int RowTiles::dim_of(size_t axis) const {
  return as_int(std::ranges::find(rows.dims, axis) - rows.dims.begin());
}
}  // namespace warploom::kernels
