// What is known of an index expression before a kernel runs: bounds and divisors, from the grid and the loops around it.
//
//   ranges.enter(loop of k in 0 .. 1024 step 256);  ranges.of(k + 256)  → [256, 1024]    ranges.divisible(k * 3, 256)  → true
#pragma once
#include "tile/program.h"
namespace warploom::synth {
struct Range {
  std::int64_t low = 0, high = 0;  // both included; of what is not known, far beyond any address
};

class IndexRanges {
 public:
  explicit IndexRanges(const tile::Program& program);
  void enter(const tile::For& loop);
  void leave(const tile::For& loop) { loops_.erase(loop.variable); }
  Range of(const tile::Index& index) const;
  bool divisible(const tile::Index& index, std::int64_t by) const;

 protected:
  struct Loop {
    Range range;
    tile::Index begin = 0, step = 1;
  };
  std::map<std::string, Loop> loops_;
};

// The bounds wherever an index stands: a loop's variable has those of all loops of its name.
class Bounds : private IndexRanges {
 public:
  explicit Bounds(const tile::Program& program);
  using IndexRanges::of;
  // Whether the tile may reach outside its tensor along a dimension.
  bool may_exceed(const tile::Program& program, const tile::Tile& tile, int dim) const;
};
}  // namespace warploom::synth
