// LoopNestTiling: what the family `direct` sees in a nest: which axes its tiles go along, whether
// it scans, and whether it is a sum of products. Worked examples:
//
//   transpose: y [70,45] at {i0, i1} of x [45,70] at {i1, i0}
//     x axis 1: the output's fastest     y axis 0: along which x lies in memory
//   sum of the rows of x [33,40]
//     x axis 0     reduction axis 1: it lies fastest in memory, so threads take it side by side
//   prefixes along the rows of x [9,512]
//     x axis 1, scanned
//
// A tile is 1 element along all other axes: blocks walk those of the output, loops the reduced
// ones.
#pragma once
#include <array>
#include <optional>
#include "kernels/family.h"

namespace warploom::kernels::direct {
using MaybeAxis = std::optional<size_t>;

struct TilingRoles {
  MaybeAxis x;          // the output's fastest
  MaybeAxis y;          // a second one: along which another tensor is fastest, or is used again
  MaybeAxis z;          // whose neighbouring rows of x a product takes together
  MaybeAxis reduction;  // reduced, of which a tile takes several elements
  int64_t window = 1;   // elements of all reduced axes but the longest
};

struct LoopNestTiling {
  LoopNest nest;
  std::vector<bool> reduced;  // by axis
  TilingRoles roles;
  // x and, where a GPU reduces nothing, the axes outside it along which a larger tile goes on.
  std::vector<size_t> wide;
  MaybeAxis scanned;     // the axis of all scans: x or y
  bool reverse = false;  // they begin at its end

  // A sum of products over axis `k` and `taps` places of a window. Its factors are loads: a varies
  // along y and not x, b along x (and z) and not y. The dimensions of the sum are one in a.
  struct Product {
    Access a;
    Access b;
    std::array<size_t, 2> loads;  // of LoopNest::loads: these two
    size_t k = 0;
    int64_t taps = 1;
    std::vector<Affine> domain_constraints = {};  // of the contraction
    double part = 1;                              // of its terms that meet them
  };

  std::optional<Product> product;

  // Whether a block goes along the axis from tile to tile.
  bool is_walked(size_t axis) const { return reduced[axis] || axis == scanned; }

  // Whether the nest moves elements of a tensor that lies along this axis, and not along x: a
  // transpose, with or without arithmetic.
  bool is_read_along(size_t axis) const;
};

// Nothing where a nest has more than one level of reductions or scans.
std::optional<LoopNestTiling> tiling_of(LoopNest nest, bool gpu);

// Whether it is a sum of products, and which; of the nest and its roles but z.
std::optional<LoopNestTiling::Product> product_of(const LoopNestTiling& tiling);
// The axis whose neighbouring rows of x a product takes together.
MaybeAxis rows_axis_of(const LoopNestTiling& tiling);

// How many elements apart in memory neighbours along an axis are; 0 without one.
inline int64_t stride_along(const Access& access, MaybeAxis axis) {
  return axis ? std::abs(access.stride(*axis)) : 0;
}

// The axis along which neighbours are closest; of those that are alike the one that comes first.
MaybeAxis fastest(const Access& access);

// How many elements a tile may have along x and the axes outside it.
int64_t widest(const LoopNestTiling& tiling);

// Whether a tile of these extents takes a box of every tensor: each dimension follows one axis,
// forwards.
bool takes_boxes(const LoopNestTiling& tiling, const std::vector<int64_t>& tile);

// The kernel of a nest on a GPU by tiles of about tile_y · tile_x elements, for what other families
// compute around their kernels.
void add_program(Family::Programs& out, const std::string& name, LoopNest nest, int64_t tile_y,
                 int64_t tile_x, const Capabilities& capabilities);
}  // namespace warploom::kernels::direct
