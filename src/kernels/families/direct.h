// What the files of the family `direct` share: a nest's tile under a config, and the guess of its
// time.
#pragma once
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/loop_tile.h"

namespace warploom::kernels::direct {
// The extents of a tile along all axes of a nest.
std::vector<int64_t> tile_of(const LoopNestTiling& tiling, const DirectConfig& config);

LoopKernelOptions options_of(const LoopNestTiling& tiling, const DirectConfig& config,
                             const Capabilities& capabilities);

// Whether the rows of a tile are taken one after another.
inline bool is_row_by_row(const LoopNestTiling& tiling, const DirectConfig& config) {
  return config.row_by_row && tiling.roles.y;
}

// Whether a nest is computed as a product of blocks.
inline bool is_product(const LoopNestTiling& tiling, const DirectConfig& config) {
  return tiling.product && config.blocked_product;
}

// Whether a nest moves floats of a matrix, rows to columns, and does nothing else: a CPU's kernel
// takes them from memory to memory.
bool is_transpose(const LoopNestTiling& tiling);

// CTAs of a multiprocessor that scan together: no more run at the same time for certain.
inline constexpr int64_t kScanCtasPerSm = 4;

// What the fields of a config may be for these nests, which one kernel each computes.
Space direct_space(const std::vector<LoopNestTiling>& tilings, const Capabilities& capabilities);

// How many elements of k a product may take at once, most promising first.
Values product_depths(const LoopNestTiling& tiling);

// Whether no cache holds the results.
bool is_large(const std::vector<LoopNestTiling>& tilings);

// Cycles of the busiest core for a nest: vectors of every value, loads that are no vectors, and the
// handing out of tasks.
double cycles_of(const LoopNestTiling& tiling, const DirectConfig& config,
                 const Capabilities& capabilities);
}  // namespace warploom::kernels::direct
