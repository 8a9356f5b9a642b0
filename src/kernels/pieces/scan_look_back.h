// ScanLookBack: the prefixes of a line that several CTAs scan together, a tile each in every round.
//
// Each CTA leaves the aggregate of its tile in global memory, raises the round's flag, and when all
// CTAs of the round have, looks back at the aggregates of those before it. Every round has a place
// and a flag of its own, so that none waits for the readers of the one before. The CTAs must run at
// the same time: the kernel is launched cooperatively. Worked example, 4 CTAs, tiles of 256:
//
//   round 1, CTA 2: tile 6, elements 1536 …
//     exclusive prefix within the round   the aggregates of tiles 4 and 5
//     aggregate of the round              those of tiles 4, 5, 6 and 7
#pragma once
#include <functional>
#include "kernels/pieces/loop_tile.h"

namespace warploom::kernels::direct {
class ScanLookBack {
 public:
  // rounds: of a line; scans: values that are scanned so
  ScanLookBack(LoopTile& tile, int64_t rounds, int64_t scans)
      : t_(tile), b_(tile.b), rounds_(rounds), scans_(scans) {}

  struct Scan {
    size_t value;              // whose number its tensors have
    int64_t number;            // among the scans
    size_t axis;               // along which it goes
    std::vector<bool> varies;  // the value, by axis
    TensorId aggregate;        // of the tile
  };

  // Makes the aggregate that of the whole round, and gives the exclusive prefix within the round.
  // `meanwhile` is done between the signal and the wait.
  TensorId exchange(const Scan& scan, const Index& round, const std::function<void()>& meanwhile);

 private:
  Index place_of(const Index& round) const { return t_.line() * rounds_ + round; }

  tile::Tile flag_of(const Scan& scan, const Index& round);

  LoopTile& t_;
  tile::Builder& b_;
  int64_t rounds_;
  int64_t scans_;
  TensorId flags_ = -1;
};
}  // namespace warploom::kernels::direct
