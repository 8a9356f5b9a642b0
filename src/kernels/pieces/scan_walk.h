// ScanWalk: scans along an axis, tile by tile from where they begin, so that a tile that is not
// whole comes last.
//
// A tile's prefixes are those within it, on top of what the tiles before it come to, which is
// carried from tile to tile, with what rounding lost of it: there may be thousands of tiles. CTAs
// that scan a line together take a tile each in every round (ScanLookBack); what the next round
// loads is on its way while they wait for each other.
#pragma once
#include <algorithm>
#include "kernels/pieces/loop_values.h"
#include "kernels/pieces/scan_look_back.h"

namespace warploom::kernels::direct {
class ScanWalk {
 public:
  ScanWalk(LoopTile& tile, LoopValues& values);

  void run();

 private:
  void start_carries();
  void step(const Index& turn);
  void go_along(const Index& turn);
  void prefetch(const Index& turn);
  void scan(size_t value);
  // The aggregate of the tile, and the prefixes within it of `term`.
  TensorId scan_tile(size_t value, TensorId term);
  void carry(size_t value);
  TensorId one_a_line(const char* stem, size_t value);
  int64_t rounds() const;

  bool is_carried(size_t value) const { return std::ranges::count(carried_, value) > 0; }

  LoopTile& t_;
  LoopValues& values_;
  const LoopNest& nest_;
  tile::Builder& b_;
  size_t axis_;
  std::vector<size_t> carried_;  // scans that go beyond a tile
  ScanLookBack look_back_;
  Index turn_ = 0;
};
}  // namespace warploom::kernels::direct
