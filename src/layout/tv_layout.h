// Thread-value layouts: which element of a tile each thread holds in each of its values.
//
// A TvLayout maps (thread, value) to a coordinate of a tile. It is a list of modes for the thread
// index and a list for the value index, fastest first. A mode has an extent and a step, and a step
// is a coordinate: one entry for each dimension of the tile. Unravel the thread index over the
// extents of the thread modes and the value index over the extents of the value modes (the first
// mode runs fastest); the coordinate is the sum of digit × step over all modes.
//
// Worked example: the accumulator of mma.m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), a
// 16×8 tile held by 32 threads with 4 values each. Lane t holds row t/4 (+8), columns 2·(t%4) and
// the next:
//
//   tile   (16, 8)
//   thread [4 : (0,2)] [8 : (1,0)]        lane%4 steps two columns, lane/4 one row
//   value  [2 : (0,1)] [2 : (8,0)]        value%2 steps one column, value/2 eight rows
//
// A step of zeros means replication (thread modes) or a broadcast axis (value modes).
//
// Laws (tested): coord is additive over digits; a layout is_exact when every coordinate of the tile
// is hit by the same number of (thread, value) pairs and none falls outside.
#pragma once
#include <vector>
#include "base/error.h"

namespace warploom::layout {
using Coord = std::vector<int64_t>;

struct TvMode {
  int64_t extent = 1;
  Coord step;  // one entry a tile dimension
  bool moves()
      const;  // from element to element; else its threads hold replicas, or its values repeat
  friend bool operator==(const TvMode&, const TvMode&) = default;
};

struct TvLayout {
  std::vector<int64_t> tile;  // extents of the tile
  std::vector<TvMode> thread;
  std::vector<TvMode> value;

  int64_t threads() const;  // product of the thread extents, replicas included
  int64_t values() const;   // product of the value extents: registers a thread holds, in elements
  Coord coord(int64_t thread_index, int64_t value_index) const;
  bool is_exact() const;

  friend bool operator==(const TvLayout&, const TvLayout&) = default;
};

// The digits of a thread's number that a layout names: t / below % extent, none of extent 1. `cut`:
// those that cross the edge of a warp of 32 lanes are two.
struct ThreadDigit : TvMode {
  int64_t below = 1;

  bool of_lane() const { return below < 32; }
};

std::vector<ThreadDigit> thread_digits(const TvLayout& layout, bool cut = false);

// Drops modes of extent 1 and joins neighbours within the thread list and within the value list
// where the second's step is extent × step of the first. The map is unchanged.
TvLayout coalesce(const TvLayout& layout);

// A coalesced layout for moving a tile between global memory and registers: vectors of `vector`
// elements along dimension `contiguous`, neighbouring threads on neighbouring vectors, then along
// the other dimensions, then values. Threads left over when the tile is smaller than threads ×
// vector replicate (step 0). Fails with kLayout when `vector` does not divide the extent or the
// threads cannot be spread evenly.
Result<TvLayout> coalesced(const std::vector<int64_t>& tile, size_t contiguous, int64_t vector,
                           int64_t threads);

// The layout of a reduction over `axis`: extent 1 in the tile, steps along it dropped. Thread modes
// along the axis become replicas; value modes along the axis disappear. Fails with kLayout when a
// mode steps along `axis` and another dimension.
Result<TvLayout> reduce(const TvLayout& layout, int axis);

// The layout of an operand that is broadcast along every dimension where its own extent is 1 and
// the tile's is not: the same threads; value modes that step only along broadcast dimensions are
// dropped.
TvLayout broadcast_operand(const TvLayout& layout, const std::vector<int64_t>& operand_extents);

// "tile 16x8 thread [4:(0,2)] [8:(1,0)] value [2:(0,1)] [2:(8,0)]"
std::string to_string(const TvLayout& layout);
}  // namespace warploom::layout
