// Thread-value and memory layouts for tests.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <set>
#include <vector>
#include "layout/memory_layout.h"

namespace warploom::layout {
// With `pad` elements behind each run of the contiguous dimension.
inline MemoryLayout dense(std::vector<int64_t> extents, int contiguous, int element_bits,
                          int64_t pad, Swizzle swizzle = {}) {
  const auto c = static_cast<size_t>(contiguous);
  extents[c] += pad;
  MemoryLayout layout = dense(extents, contiguous, element_bits);
  layout.dims[c][0].extent -= pad;
  layout.swizzle = swizzle;
  return layout;
}

inline TvLayout mma_accumulator() {
  return {{16, 8}, {{4, {0, 2}}, {8, {1, 0}}}, {{2, {0, 1}}, {2, {8, 0}}}};
}

// The accumulator repeated over a tile: `rows` x `columns` of it over threads (rows fastest, or
// columns), the rest over values.
inline TvLayout tiled_accumulator(int64_t rows, int64_t columns, const Coord& tile,
                                  bool rows_first) {
  TvLayout l = mma_accumulator();
  l.tile = tile;
  const TvMode down{rows, {16, 0}};
  const TvMode right{columns, {0, 8}};
  for (const TvMode& mode : {rows_first ? down : right, rows_first ? right : down})
    l.thread.push_back(mode);
  l.value.push_back({tile[0] / (16 * rows), {16 * rows, 0}});
  l.value.push_back({tile[1] / (8 * columns), {0, 8 * columns}});
  return coalesce(l);
}

// Any two-dimensional layout, proper or not: small steps, so that overlaps and gaps are common.
inline TvLayout random_tv_layout() {
  TvLayout l{{*rc::gen::inRange<int64_t>(1, 9), *rc::gen::inRange<int64_t>(1, 9)}, {}, {}};
  for (auto* modes : {&l.thread, &l.value}) {
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
      TvMode mode{*rc::gen::element<int64_t>(1, 2, 2, 3, 4), {0, 0}};
      mode.step[*rc::gen::element<size_t>(0, 1)] = *rc::gen::element<int64_t>(0, 1, 1, 2, 4);
      if (*rc::gen::inRange(0, 8) == 0) mode.step = {1, 1};
      modes->push_back(std::move(mode));
    }
  }
  return l;
}
}  // namespace warploom::layout
