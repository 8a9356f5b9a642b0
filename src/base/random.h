// Seeded pseudo-random streams (SplitMix64), equal on every machine: the distributions of the
// standard library differ between implementations, so numbers are derived here.
//
//   Random random(seed, "bundle samples");    a stream of its own for each (seed, name)
//   random.below(6)                           0 to 5
#pragma once
#include <cmath>
#include <numbers>
#include <utility>
#include "base/hash.h"

namespace warploom {
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // A stream of its own for a purpose: the same (seed, name) always gives the same numbers.
  Random(uint64_t seed, std::string_view name) : state_(seed ^ hash64(name)) { next(); }

  uint64_t next() {
    uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  uint64_t below(uint64_t bound) { return bound ? next() % bound : 0; }  // [0, bound)

  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

  double normal() {  // mean 0, deviation 1
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  void shuffle(auto& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(i)]);
  }

  void skip(uint64_t numbers) { state_ += numbers * kStep; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
  uint64_t state_;
};
}  // namespace warploom
