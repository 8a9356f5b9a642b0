// What is known of an index expression before a kernel runs: bounds and divisors, from the grid and the loops around it.
//
//   ranges.enter("k", 0, 1024, 256);  ranges.of(k + 256)  → [256, 1024]    ranges.divisible(k * 3, 256)  → true
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include "tile/program.h"
namespace warploom::codegen {
struct Range {
  std::int64_t low = 0, high = 0;  // both included
};

class IndexRanges {
 public:
  explicit IndexRanges(const tile::Program& program);
  void enter(const tile::For& loop);
  void leave(const tile::For& loop) { loops_.erase(loop.variable); }
  Range of(const tile::Index& index) const;
  bool divisible(const tile::Index& index, std::int64_t by) const;

 private:
  struct Loop {
    Range range;
    tile::Index begin = 0, step = 1;
  };
  std::map<std::string, Loop> loops_;
};
}  // namespace warploom::codegen
