// wl::median_interval: what several samples of one thing come to, their median and an interval that
// holds the true median with 95 % confidence.
//
// The interval is the middle 95 % of the medians of 1000 draws with replacement (a bootstrap): it
// assumes nothing of how samples are spread, and comes out wide where they have two modes, as on a
// machine that others use. The same samples and seed give the same interval. Warploom itself and
// the checks of bundles take it from here, so that their figures mean the same.
//
//   const double us[] = {9.1, 9.0, 9.3, 14.2, 9.1};
//   const wl::Interval interval = wl::median_interval(us, 5);   // 9.1, from 9.0 to 14.2
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wl {
struct Interval {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Sorts the values; of an even number the mean of the two in the middle.
inline double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// All zeros where there are no values.
inline Interval median_interval(const double* values, size_t count, uint64_t seed = 1) {
  constexpr size_t kDraws = 1000;
  if (count == 0) return {};
  uint64_t state = seed;
  const auto drawn_index = [&state, count] {  // SplitMix64's numbers
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<size_t>((z ^ (z >> 31)) % count);
  };
  std::vector<double> drawn(values, values + count);
  Interval interval;
  interval.median = median_of(drawn);
  std::vector<double> medians;
  for (size_t draw = 0; draw < kDraws; ++draw) {
    for (double& value : drawn)
      value = values[drawn_index()];
    medians.push_back(median_of(drawn));
  }
  std::sort(medians.begin(), medians.end());
  interval.low = medians[kDraws / 40];
  interval.high = medians[kDraws - 1 - kDraws / 40];
  return interval;
}
}  // namespace wl
