// Shares: which region of a network a search goes on with, by what it can still gain.
//
//   worth_of({.best_us = 120, .floor_us = 40, .times = 3, .dry = 10})   // (120 - 40) · 3 · 8 / 18
//
// The gain that is left is the best time so far less what physics allows, as often as the region
// occurs. How likely it is to come falls with the candidates that gained nothing in a row.
#pragma once
#include <algorithm>

namespace warploom::search {
struct Prospect {
  double best_us = 0;    // 0: nothing is right yet
  double floor_us = 0;   // the least that any kernel takes; 0: unknown
  int times = 1;         // how often the region occurs
  int dry = 0;           // candidates since one was the best
  bool has_more = true;  // whether there is anything left to try
};

// Microseconds of the whole, weighted by how likely they are to come; 0: nothing is left to gain.
inline double worth_of(const Prospect& region) {
  constexpr double kHalf = 8;  // candidates without a gain that halve the hope
  if (!region.has_more || region.best_us <= 0) return 0;
  const double left = std::max(0.0, region.best_us - region.floor_us);
  return left * region.times * kHalf / (kHalf + region.dry);
}
}  // namespace warploom::search
