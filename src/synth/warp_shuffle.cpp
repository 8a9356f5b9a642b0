#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/solve.h"

namespace warploom::synth {
namespace {
// of a warp's lanes; that one shuffle moves
constexpr int kLaneBits = 5;
constexpr int kMostBits = 32;

// (thread bits, then value bits) → bits of the element's number in the tile.
std::optional<layout::BitMatrix> elements_of(const TvLayout& layout) {
  const auto row_major = layout::dense(layout.tile, layout.tile.size() - 1, 1);
  return bit_matrix(layout, row_major);
}
}  // namespace

std::vector<int64_t> WarpShufflePlan::picks() const {
  std::vector<int64_t> basis;
  for (int64_t column : pick_of_thread) {
    for (const int64_t b : basis)
      column = std::min(column, column ^ b);
    if (column) basis.push_back(column);
  }
  return basis;
}

int64_t WarpShufflePlan::shuffles() const {
  bool same = std::ranges::all_of(
      lane_of_unit, [](int64_t lane) { return lane == 0; });  // no lane wants what another holds
  for (size_t b = 0; b < lane_of_thread.size(); ++b)
    same &= lane_of_thread[b] == (b < kLaneBits ? int64_t{1} << b : 0);
  return same && picks().empty() ? 0 : int64_t{units} << picks().size();
}

std::optional<WarpShufflePlan> warp_shuffle_plan(const TvLayout& from, const TvLayout& to,
                                                 int element_bits) {
  const auto have = elements_of(from);
  const auto want = elements_of(to);
  if (!have || !want || from.threads() != to.threads()) return std::nullopt;
  const auto threads = as_uint64(from.threads());
  const auto thread_bits = as_size(std::countr_zero(threads));
  std::vector<uint64_t>
      source;  // of each thread bit and value bit wanted: bits of a thread and value that has it
  for (size_t b = 0; b < want->columns.size(); ++b) {
    const bool of_thread = b < thread_bits;
    uint64_t bits = 0;
    if (want->columns[b]) {
      const auto found = std::ranges::find(have->columns, want->columns[b]);
      if (found == have->columns.end()) return std::nullopt;
      bits = uint64_t{1} << (found - have->columns.begin());
    }
    if (of_thread && !have->columns[b]) bits |= uint64_t{1} << b;  // of replicas the nearest
    uint64_t moved = bits & (threads - 1);
    if (of_thread) moved ^= uint64_t{1} << b;
    if (moved >> kLaneBits) return std::nullopt;
    source.push_back(bits);
  }
  // The low value bits that stay what they are move together.
  const auto value = [&](size_t b) { return source[b] >> thread_bits; };
  size_t low = 0;
  while (thread_bits + low < source.size() && element_bits << (low + 1) <= kMostBits &&
         source[thread_bits + low] == uint64_t{1} << (thread_bits + low))
    ++low;
  for (size_t b = 0; b < source.size(); ++b)
    while (low > 0 && (b < thread_bits || b >= thread_bits + low) &&
           value(b) & ((uint64_t{1} << low) - 1))
      --low;
  if (element_bits << low < 8 || element_bits > kMostBits) return std::nullopt;
  WarpShufflePlan out;
  out.unit = 1 << low;
  out.units = as_int(to.values()) >> low;
  for (size_t b = 0; b < source.size(); ++b) {
    constexpr uint64_t kLaneMask = (1u << kLaneBits) - 1;
    const auto lane = as_int64(source[b] & (threads - 1) & kLaneMask);
    const auto pick = as_int64(value(b) >> low);
    if (b < thread_bits) {
      out.lane_of_thread.push_back(lane);
      out.pick_of_thread.push_back(pick);
    } else if (b >= thread_bits + low) {
      out.lane_of_unit.push_back(lane);
      out.pick_of_unit.push_back(pick);
    }
  }
  return out;
}

TvLayout flipped(TvLayout layout, bool flip) {
  if (!flip) return layout;
  std::swap(layout.tile[0], layout.tile[1]);
  for (auto* modes : {&layout.thread, &layout.value})
    for (layout::TvMode& mode : *modes)
      std::swap(mode.step[0], mode.step[1]);
  return layout;
}
}  // namespace warploom::synth
