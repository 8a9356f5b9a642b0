// Layouts built for a tile: an instruction's fragment repeated over it, and coalesced movement.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layout/leaves.h"
#include "layout/tv_layout.h"

namespace warploom::layout {
namespace {

TvMode along(std::size_t rank, std::size_t dimension, std::int64_t extent, std::int64_t step) {
  TvMode mode{extent, Coord(rank, 0)};
  mode.step[dimension] = step;
  return mode;
}

bool is_permutation(const std::vector<int>& order, std::size_t rank) {
  std::vector<int> sorted = order, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

}  // namespace

Result<TvLayout> tile_atom(const TvLayout& atom, const std::vector<std::int64_t>& thread_repeat,
                           const std::vector<int>& order, const std::vector<std::int64_t>& tile) {
  const std::size_t rank = atom.tile.size();
  if (thread_repeat.size() != rank || tile.size() != rank || !is_permutation(order, rank)) {
    return layout_error("an atom is tiled with lists of another rank",
                        fmt::format("repeats, tile and a permutation of the dimensions, {} entries each", rank),
                        fmt::format("repeats ({}), order ({}), tile ({})", fmt::join(thread_repeat, ","),
                                    fmt::join(order, ","), fmt::join(tile, ",")));
  }
  TvLayout result = atom;
  result.tile = tile;
  for (const int dimension : order) {
    const auto d = static_cast<std::size_t>(dimension);
    const std::int64_t covered = thread_repeat[d] * atom.tile[d];
    if (thread_repeat[d] < 1 || covered < 1 || tile[d] < 1 || tile[d] % covered != 0) {
      return layout_error("an atom repeated over threads does not divide the tile",
                          fmt::format("dimension {} a multiple of {} x {}", d, thread_repeat[d], atom.tile[d]),
                          fmt::format("tile ({})", fmt::join(tile, ",")));
    }
    if (thread_repeat[d] > 1) result.thread.push_back(along(rank, d, thread_repeat[d], atom.tile[d]));
    if (tile[d] > covered) result.value.push_back(along(rank, d, tile[d] / covered, covered));
  }
  return result;
}

Result<TvLayout> coalesced(const std::vector<std::int64_t>& tile, int contiguous, std::int64_t vector,
                           std::int64_t threads) {
  const std::size_t rank = tile.size();
  if (contiguous < 0 || static_cast<std::size_t>(contiguous) >= rank) {
    return layout_error("the contiguous dimension is none of the tile's", fmt::format("a dimension in [0, {})", rank),
                        std::to_string(contiguous));
  }
  const auto first = static_cast<std::size_t>(contiguous);
  if (vector < 1 || threads < 1 || std::any_of(tile.begin(), tile.end(), [](std::int64_t e) { return e < 1; }) ||
      tile[first] % vector != 0) {
    return layout_error("the vector does not divide the contiguous extent",
                        fmt::format("at least 1 thread and a vector that divides {}", tile[first]),
                        fmt::format("vector {}, threads {}, tile ({})", vector, threads, fmt::join(tile, ",")));
  }
  TvLayout result{tile, {}, {}};
  if (vector > 1) result.value.push_back(along(rank, first, vector, 1));

  std::vector<std::size_t> order = {first};
  for (std::size_t d = rank; d-- > 0;) {
    if (d != first) order.push_back(d);
  }
  std::int64_t left = threads, vectors = 1;
  for (const std::size_t d : order) {
    const std::int64_t unit = d == first ? vector : 1;
    const std::int64_t extent = tile[d] / unit;
    const std::int64_t taken = std::gcd(left, extent);
    if (taken > 1) result.thread.push_back(along(rank, d, taken, unit));
    if (extent > taken) result.value.push_back(along(rank, d, extent / taken, unit * taken));
    left /= taken;
    vectors *= extent;
  }
  if (left > 1 && vectors >= threads) {
    return layout_error(
        "the threads cannot be spread evenly over the tile",
        "threads whose factors divide the tile's extents in vectors",
        fmt::format("{} threads on {} vectors of {} in tile ({})", threads, vectors, vector, fmt::join(tile, ",")));
  }
  if (left > 1) result.thread.push_back({left, Coord(rank, 0)});  // fewer vectors than threads: replicas
  return result;
}

}  // namespace warploom::layout
