// Tiles of a nest: the boxes of global tensors that a block of a nest's axes touches.
//
// A block takes `extent[a]` elements along every axis a, from origin[a] on. Of a tensor that is a box, where each of its dimensions
// follows at most one axis of extent above 1; its dimensions are declared so that those that follow `axes` come last, in that order.
// So x at {ci, 2p + kh - 1, 2q + kw - 1}, axes (ci, p, q) of extents (16, 8, 16), is X[ci +16, 2p + kh - 1 +8 by 2, 2q + kw - 1 +16 by 2].
#pragma once
#include "kernels/nest.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
struct NestTile {
  std::vector<tile::Index> origin;   // one an axis of the nest
  std::vector<std::int64_t> extent;  // likewise

  explicit NestTile(const Nest& nest) : origin(nest.axes.size(), tile::Index(0)), extent(nest.axes.size(), 1) {}
  std::int64_t count(const Nest& nest, const std::vector<std::size_t>& axes) const;               // of tiles along them
  void place(const Nest& nest, const std::vector<std::size_t>& axes, const tile::Index& number);  // the last axis fastest
};

// The access as a global tensor of the program, and what it is gathered by as another one.
tile::TensorId declare(Draft& draft, const std::string& name, const Nest& nest, const Access& access,
                       const std::vector<std::size_t>& axes, bool output);
tile::Tile box(const Draft& draft, tile::TensorId tensor, const Access& access, const std::vector<std::size_t>& axes,
               const std::vector<tile::Index>& origin, const std::vector<std::int64_t>& extent);
inline tile::Tile box(const Draft& draft, tile::TensorId tensor, const Access& access, const std::vector<std::size_t>& axes,
                      const NestTile& at) {
  return box(draft, tensor, access, axes, at.origin, at.extent);
}
}  // namespace warploom::kernels
