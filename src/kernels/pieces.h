// Pieces that the builders of several families share: views as global tensors, the walk over output tiles, epilogues.
#pragma once
#include <map>
#include <string>
#include <vector>
#include "kernels/match.h"
#include "tile/build.h"
namespace warploom::kernels {
// A program under construction with the record of which buffer each of its global tensors is.
struct Draft {
  explicit Draft(const std::string& name) : b(name) {}
  tile::Builder b;
  std::map<std::string, std::string> buffers;
  std::map<std::string, tile::TensorId> named;    // register tensors that several pieces share
  std::map<std::string, tile::TensorId> lookups;  // indices of gathers, by the graph's names

  // A view as a global tensor [batch…, rows, columns].
  tile::TensorId input(const std::string& name, const View& view);
  tile::TensorId output(const std::string& name, const View& view);
};

// A batch index unravelled over the batch axes of a view, then the two tile offsets: 0 along axes of size 1.
std::vector<tile::Index> offsets(const View& view, const std::vector<std::int64_t>& batch, const tile::Index& batch_index,
                                 const tile::Index& row, const tile::Index& column);
// A box of one batch element of a view that may be stretched: extents (1…, rows, columns), 1 along axes of size 1.
std::vector<std::int64_t> extents(const View& view, std::int64_t rows, std::int64_t columns);

// A box of one batch element of a view that is not stretched: the whole tile, reaching over the edge where the view is smaller.
std::vector<std::int64_t> box(const View& view, std::int64_t rows, std::int64_t columns);

// The order in which tiles are computed. Tiles of `group` neighbouring rows of tiles are taken together, column by column, so that
// blocks which run at the same time share operands in the L2 cache.
struct TileOrder {
  std::int64_t tiles_m = 1, tiles_n = 1, batch = 1, group = 8;
  std::int64_t count() const { return tiles_m * tiles_n * batch; }
  struct Position {
    tile::Index batch, m, n;  // in tiles
  };
  Position at(const tile::Index& linear) const;
};

// Loads the epilogue's operands for an accumulator tile, applies the expression and returns the register tensor in the
// output's type; `acc` itself when there is nothing to do.
tile::TensorId epilogue(Draft& draft, const MatmulRegion& region, const std::vector<tile::TensorId>& operands, tile::TensorId acc,
                        const TileOrder::Position& at, std::int64_t block_m, std::int64_t block_n);

std::int64_t ceil_div(std::int64_t a, std::int64_t b);
std::int64_t round_up(std::int64_t a, std::int64_t b);
}  // namespace warploom::kernels
