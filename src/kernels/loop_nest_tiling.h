// What the family `direct` sees in a nest: which axes its tiles are about, and whether it is a sum
// of products.
#pragma once
#include "kernels/family.h"

namespace warploom::kernels::direct {
// What the tile's sizes are about: axes of the nest, -1 where there is none.
struct TilingRoles {
  int x = -1;
  int y = -1;
  int z = -1;
  int lanes = -1;
  int64_t window = 1;  // elements of all reduced axes but the longest
};

struct LoopNestTiling {
  LoopNest nest;
  std::vector<bool> reduced;  // by axis
  TilingRoles roles;
  std::vector<int> wide;  // x and, where a GPU reduces nothing, the axes outside it along which a
                          // tile goes on that is larger
  int scanned = -1;       // the axis of all scans, which is x or y; -1 where there is none
  bool reverse = false;   // they begin at its end

  // Of a sum of products over axis `k` and `taps` places of a window: its factors, loads that vary
  // along y and not x, and along x (and z) and not y. The first one's dimensions of the sum are
  // one.
  struct Product {
    Access a;
    Access b;
    std::array<size_t, 2> loads;  // of LoopNest::loads: these two
    int k = -1;
    int64_t taps = 1;
    std::vector<Affine> bounds =
        {};  // of the contraction, and the part of its terms that lies within them
    double part = 1;
  };

  std::optional<Product> product;

  // Whether the rows of a tile are taken one after another.
  bool in_turn(const Schedule& s) const { return field(s, "rows") == 1 && roles.y >= 0; }

  // Whether a block goes along the axis from tile to tile.
  bool walked(size_t axis) const { return reduced[axis] || static_cast<int>(axis) == scanned; }
};

// How many elements apart in memory neighbours along an axis are.
inline int64_t stride_along(const Access& access, int axis) {
  return axis < 0 ? 0 : std::abs(access.stride(at(axis)));
}

// The axis along which neighbours are closest; of those that are alike the one that comes first.
int fastest(const Access& access);

// How many elements a tile may have along x and the axes outside it.
int64_t widest(const LoopNestTiling& form);
// The extents of a tile along all axes of a nest.
std::vector<int64_t> tile_of(const LoopNestTiling& form, const Schedule& s);

// The program of a legal schedule.
void add_program(Family::Programs& out, const LoopNestTiling& form, const Schedule& s,
                 const target::Capabilities& capabilities, const std::string& name);
// On a GPU that of a nest with at most one level of reductions, for what other families compute
// around their kernels: by tiles of about y · x elements.
void add_program(Family::Programs& out, const std::string& name, LoopNest nest, int64_t y,
                 int64_t x, const target::Capabilities& capabilities);
}  // namespace warploom::kernels::direct
