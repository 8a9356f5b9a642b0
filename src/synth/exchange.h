// A change of register layout by the threads of a warp alone: which lane and which of its registers holds what a thread wants.
//
// Where both layouts are bit matrices (layout/f2.h), so is the map between them. A thread wants its value i from the lane
// from(thread) ^ from(i), register pick(thread) ^ pick(i), each a XOR of columns. A shuffle names one register for all lanes, so
// a value takes as many shuffles as pick(thread) has images.
//
// Worked example: a thread holds columns 2t, 2t + 1 of a row and wants columns t, t + 4: value 0 of lane t is value t % 2 of
// lane t / 2, two shuffles.
#pragma once
#include <optional>
#include "layout/tv_layout.h"
namespace warploom::synth {
struct Exchange {
  int unit = 1, units = 1;  // elements that move together, at most 4 bytes; units a thread holds
  std::vector<std::int64_t> lane_of_thread,
      lane_of_unit;  // columns, by bits of the thread's number and of the unit wanted
  std::vector<std::int64_t> pick_of_thread, pick_of_unit;
  std::vector<std::int64_t> picks() const;  // a basis of pick(thread)
  bool within_threads() const;              // no lane wants what another holds
  std::int64_t shuffles() const;
};

// nullopt where elements change warps, or the layouts are no bit matrices.
std::optional<Exchange> exchange_of(const layout::TvLayout& from, const layout::TvLayout& to, int element_bits);

// A layout over (x, y) as one over (y, x), where `flip` says so.
layout::TvLayout flipped(layout::TvLayout layout, bool flip);
}  // namespace warploom::synth
