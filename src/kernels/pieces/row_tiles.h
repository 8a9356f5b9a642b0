// RowTiles: where a kernel of rows is. Its global tensors, the rows and the tile of a row that it
// is at, and register tensors as large as a tile.
//
// A CTA computes one group of rows after another: rows_per_cta rows side by side, each of which it
// takes whole or tile by tile. CTAs may share a row, each with a part of its last axis. Worked
// example, rows of 4096 elements in tiles of 512 by 2 CTAs:
//
//   tile_count(last axis)   4: tiles of a CTA's part
//   go_to_rows(r)           at the first tile of the part: element 2048 · rank
//   go_to_tile(3)           at element 2048 · rank + 3 · 512
//
// On a CPU a CTA is a task. Extents are in elements.
#pragma once
#include <functional>
#include "kernels/kernel_builder.h"
#include "loopnest/row_reduction.h"

namespace warploom::kernels {
// Of tiles that a lane adds up one after another without losing a third of what the fp32 track
// allows.
inline constexpr int64_t kManyTiles = 64;

struct RowKernelOptions {
  // Of a tile, by axis of the nest, and one more for RowReduction::tiled_outer where it is none; 1
  // off RowReduction::dims.
  std::vector<int64_t> extents;
  int64_t ctas_per_row = 1;
  // The CTAs of a row are no cluster of the target's: they exchange results in global memory.
  bool exchange_in_memory = false;
  // Tiles of a row are written out one by one; what passes keep stays in registers, each tile's in
  // registers of its own.
  bool unrolled = false;
  bool nontemporal_store = false;  // results are stored past the caches
  bool streams_loads = false;      // on a CPU: loads need not come to the L1 ahead of time
  bool compensated_sums = false;   // sums of many tiles keep what rounding loses
  int64_t threads = 0;             // of a CTA; where set, what the last pass loads may come early
  int64_t l2_bytes = 0;            // of the target
};

class RowTiles {
 public:
  RowTiles(const RowReduction& all, RowKernelOptions with);

  const RowReduction& rows;
  const RowKernelOptions options;
  KernelBuilder draft{"rowwise"};
  tile::Builder& b = draft.b;

  bool shares_rows() const { return options.ctas_per_row > 1; }

  // Tiles along axes; along the last axis of a row those of a CTA's part of it.
  int64_t tile_count(size_t axis) const;
  int64_t tile_count(const std::vector<size_t>& axes) const;

  int64_t tiles_of_a_row() const { return tile_count(rows.row); }

  // That a CTA's tiles cover of a row, what lies beyond its end counted.
  int64_t elements_of_part() const;

  int64_t row_groups() const { return tile_count(rows.outer); }

  int64_t row_extent() const { return at_.extent[last_axis()]; }  // of a tile, along the last axis

  void go_to_rows(const Index& group);
  void go_to_tile(const Index& number);

  void go_to_first_tile() { at_.origin = start_; }

  const TileCoord& at() const { return at_; }

  const Index& group() const { return group_; }

  // The element along an axis where the row begins, or the CTA's part of it.
  const Index& start(size_t axis) const { return start_[axis]; }

  Index cta_rank() const;  // among the CTAs of a row

  // `body` at every tile of a row: in a loop, or written out.
  void for_each_tile(const std::function<void(const Index&)>& body);

  int64_t unrolled_tile() const { return unrolled_tile_; }  // 0 in a loop

  // `body` at another tile of an unrolled row.
  void at_unrolled_tile(int64_t tile, const std::function<void()>& body);

  tile::Tile input(int load) const { return inputs_[static_cast<size_t>(load)].at(at_); }

  tile::Tile input(int load, const TileCoord& at) const {
    return inputs_[static_cast<size_t>(load)].at(at);
  }

  tile::Tile output(size_t number) const { return outputs_[number].at(at_); }

  // A register tensor of the tile, of size 1 along the dimensions that its value does not vary
  // along. Tensors of the same name are one.
  TensorId reg(const std::string& name, const std::vector<bool>& varies, Dtype dtype = Dtype::f32);

  // One number a row.
  TensorId scalar(const std::string& name) { return reg(name, {}); }

  // One number an element of the tile.
  TensorId tile_reg(const std::string& name) { return reg(name, everywhere()); }

  std::vector<bool> everywhere() const { return std::vector<bool>(start_.size(), true); }

  int dim_of(size_t axis) const;  // of register tensors

  int row_dim() const { return dim_of(last_axis()); }

  size_t last_axis() const { return rows.row.back(); }

 private:
  std::vector<TensorTile> inputs_;
  std::vector<TensorTile> outputs_;
  TileCoord at_;
  std::vector<Index> start_;  // by axis: where the row begins, or a CTA's part of it
  Index group_ = 0;
  int64_t unrolled_tile_ = 0;
};
}  // namespace warploom::kernels
