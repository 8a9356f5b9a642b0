// Register layouts seen over the dimensions of the tensor that they meet in a copy.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/solve.h"
#include "tile/program.h"

namespace warploom::synth {
using layout::Coord, layout::MemoryLayout, layout::TvMode;

size_t contiguous_dim(const MemoryLayout& layout, const Tensor& tensor) {
  size_t contiguous = 0;
  for (size_t d = 0; d < layout.dims.size(); ++d)
    if (!layout.dims[d].empty() && layout.dims[d][0].stride == 1 && tensor.shape[d] > 1)
      contiguous = d;
  return contiguous;
}

namespace {
// One mode of registers over a tile, as modes over the dimensions that the tile's meet.
class ModeSeen {
 public:
  ModeSeen(const Coord& tile, const std::vector<int64_t>& other_extent, TvMode mode)
      : tile_(tile), other_extent_(other_extent), mode_(std::move(mode)) {}

  void append_to(const std::vector<Meeting>& met, std::vector<TvMode>& to) && {
    step_.assign(other_extent_.size(), 0);
    for (const Meeting& meeting : met)
      fall_into(meeting, to);
    to.push_back({mode_.extent, std::move(step_)});
  }

 private:
  // Where it meets several dimensions the mode's digits fall into them, the fastest first.
  void fall_into(const Meeting& meeting, std::vector<TvMode>& to) {
    int64_t left = 0;  // in row-major order of what meets
    for (const size_t d : meeting.a)
      left = left * tile_[d] + mode_.step[d];
    for (size_t i = meeting.b.size(); left > 0 && i-- > 0;) {
      const int64_t room = other_extent_[meeting.b[i]];
      if (i > 0 && left % room == 0) {
        left /= room;
        continue;
      }
      step_[meeting.b[i]] = left;
      const int64_t here = ceil_div(room, left);
      if (i == 0 || mode_.extent <= here) break;
      to.push_back({here, step_});
      step_.assign(step_.size(), 0);
      mode_.extent /= here;
      left = 1;
    }
  }

  const Coord& tile_;
  const std::vector<int64_t>& other_extent_;
  TvMode mode_;  // what is left of it
  Coord step_;
};
}  // namespace

TvLayout seen_from(const TvLayout& registers, const std::vector<int64_t>& other_extent) {
  TvLayout out{other_extent, {}, {}};
  const auto met = meetings(registers.tile, other_extent).value_or(std::vector<Meeting>());
  // Modes that count on from each other are cut anew where the dimensions end: 2 steps of 4 and 3
  // of 8 over [2, 12] are 3 of 4, then 2.
  const bool cut = std::ranges::any_of(met, [](const Meeting& m) { return m.b.size() > 1; });
  const TvLayout modes = cut ? coalesce(registers) : registers;
  for (const TvMode& mode : modes.thread)
    ModeSeen(registers.tile, other_extent, mode).append_to(met, out.thread);
  for (const TvMode& mode : modes.value)
    ModeSeen(registers.tile, other_extent, mode).append_to(met, out.value);
  return out;
}

bool meets_whole(const TvLayout& registers, const std::vector<int64_t>& other_extent) {
  const bool alike = wide_dims(registers.tile).size() == wide_dims(other_extent).size();
  return alike || seen_from(registers, other_extent).is_exact();
}
}  // namespace warploom::synth
