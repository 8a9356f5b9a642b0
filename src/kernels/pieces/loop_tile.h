// LoopTile: where a kernel of a loop nest is: the tile that it is at, its global tensors, and
// register tensors over the tile.
//
// Blocks walk the free axes of the nest, the last one fastest; along reduced and scanned axes a
// block goes from tile to tile itself. Worked example, y [64,1000] in tiles of x = 256, y = 4
// elements:
//
//   blocks 16 · 4, block 6 at row 4, column 512
//   register tensors [4, 256], of size 1 along the dimensions that their value does not vary along
//
// On a CPU a block is a task, and without masks a tile at the edge begins early enough to lie
// inside.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_nest_tiling.h"

namespace warploom::kernels::direct {
struct LoopKernelOptions {
  std::vector<int64_t> extents;  // of a tile, by axis; 1 along y where rows are taken in turn
  int64_t rows_in_turn = 1;      // along y: taken one after another, each in registers throughout
  // Reduced axes of at most this many elements are written out; on a CPU so many of a longer one,
  // the last, at a time.
  int64_t unroll = 1;
  bool multiplies = false;       // a sum of products is matrix products of blocks in shared memory
  int64_t rows_per_product = 1;  // rows of x that a product takes together
  int64_t block_k = 1;           // elements of k that a product takes at once
  int64_t ctas_per_scan = 1;     // blocks that scan one line together
  bool nontemporal_store = false;
  int warps = 1;  // of a block
};

class LoopTile {
 public:
  LoopTile(const LoopNestTiling& all, const LoopKernelOptions& with, const Capabilities& target,
           const std::string& name);

  const LoopNestTiling& tiling;
  const LoopNest& nest;
  const LoopKernelOptions& options;
  const Capabilities& capabilities;
  KernelBuilder draft;
  tile::Builder& b;

  const TileCoord& at() const { return at_; }

  int64_t extent(size_t axis) const { return at_.extent[axis]; }

  const Index& origin(size_t axis) const { return at_.origin[axis]; }

  void move_to(size_t axis, Index origin) { at_.origin[axis] = std::move(origin); }

  // Of lines that blocks scan together: how many there are, which one the block is at, and which of
  // its blocks it is.
  int64_t lines() const { return lines_; }

  const Index& line() const { return line_; }

  const Index& cta_rank() const { return cta_rank_; }

  // Axes along which a tile has several elements: the dimensions of register tensors.
  const std::vector<size_t>& axes() const { return axes_; }

  int dim_of(size_t axis) const;  // of register tensors; their rank where there is none

  std::vector<int64_t> shape_of(const std::vector<bool>& varies) const;
  // Tensors of the same name are one.
  TensorId reg(const std::string& name, Dtype dtype, const std::vector<bool>& varies);

  tile::Tile input(int load) const { return inputs_.at(load).at(at_); }

  tile::Tile output(size_t number) const { return outputs_[number].at(at_); }

  // Where rows that no vectors fill lie one behind another in memory, an output's rows are gathered
  // in a shared tensor, which holds all that a block makes of it, and stored as one; nothing where
  // they are not.
  std::optional<TensorId> gathered(size_t number) const;
  void store_gathered();

  // `body` at each of the rows that are taken in turn, and which of them that is.
  void for_rows_in_turn(const std::function<void()>& body);

  const Index& row() const { return row_; }

  // `body` with the part of a register tensor at every row of x that a product takes together.
  void for_each_part(TensorId tensor, const Access& access,
                     const std::function<void(const tile::Tile&)>& body);
  // `body` at every such row.
  void for_each_row(const std::function<void(const Index&)>& body);

 private:
  void declare_tensors();
  void place();
  bool goes_backwards() const;
  bool only_moves() const;
  bool gathers(const Access& output) const;

  TileCoord at_;
  std::vector<size_t> axes_;
  int64_t rows_ = 1;                  // of x, one behind another in a register tensor
  std::map<int, TensorTile> inputs_;  // by load; none for the factors of a product
  std::vector<TensorTile> outputs_;
  std::map<size_t, TensorId> gathered_;  // by output
  Index row_ = 0;
  int64_t lines_ = 1;
  Index line_ = 0;
  Index cta_rank_ = 0;
};
}  // namespace warploom::kernels::direct
