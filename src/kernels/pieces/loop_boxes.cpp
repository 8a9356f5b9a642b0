// Which tiles of a nest take a box of every tensor.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::direct {
namespace {
bool is_box(const Access& access, const std::vector<int64_t>& tile,
            const std::vector<int64_t>& axes) {
  std::vector<bool> taken(tile.size(), false);
  for (size_t d = 0; d < access.at.size(); ++d) {
    const Affine& c = access.at[d];
    int64_t followed = 0;
    bool tiles_divide = true;
    for (const size_t a : stepped_axes(c)) {
      if (tile[a] == 1) continue;
      ++followed;
      tiles_divide = tiles_divide && axes[a] % tile[a] == 0;
      const bool gathers_apart = access.is_gather_dim(d) && c.steps[a] != 1;
      if (taken[a] || c.steps[a] < 0 || gathers_apart) return false;
      taken[a] = true;
    }
    if (followed > 1) return false;
    // Beyond the axis the next element of another one may lie.
    const bool runs_on = stepped_axes(c).size() > 1 && access.in_bounds && !tiles_divide;
    if (followed == 1 && runs_on) return false;
  }
  return true;
}
}  // namespace

bool takes_boxes(const LoopNestTiling& tiling, const std::vector<int64_t>& tile) {
  const auto fits = [&](const Access& access) { return is_box(access, tile, tiling.nest.axes); };
  if (!std::ranges::all_of(tiling.nest.loads, fits)) return false;
  return std::ranges::all_of(tiling.nest.outputs, fits, &LoopNest::Output::place);
}
}  // namespace warploom::kernels::direct
