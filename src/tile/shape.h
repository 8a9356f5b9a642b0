// Arithmetic on shapes that the rooms above the language share.
//
//   matrix_extent({1, 128, 64})  →  {128, 64}
//   dense_strides({2, 3, 4})     →  {12, 4, 1}
#pragma once
#include "tile/program.h"
namespace warploom::tile {
// The rows and columns that an Mma sees in a tile: extents of 1 are dropped, from the front, until two are left. The result has
// two entries exactly where the tile is a matrix.
std::vector<std::int64_t> matrix_extent(std::vector<std::int64_t> extent);

// The dimensions of extent above 1, in order.
std::vector<int> wide_dims(const std::vector<std::int64_t>& extent);

// Which dimensions of two tiles meet in a copy: one with one, or one with several neighbours of the same product, in order; nothing
// where the shapes do not fit.   {1, 16, 8, 4} and {16, 32}  →  {1} with {0}, {2, 3} with {1}
struct Meeting {
  std::vector<int> a, b;
};
std::optional<std::vector<Meeting>> meetings(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b);

// The number of elements; 0 where an extent is below 1, -1 where the product overflows.
std::int64_t element_count(const std::vector<std::int64_t>& extent);

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);  // row-major, in elements
std::int64_t cluster_size(const Program& program);                                // blocks a cluster
}  // namespace warploom::tile
