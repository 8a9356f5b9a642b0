// Tables of digit sums: the value of an additive map at every index of a list of modes, first mode fastest,
// built with one addition an entry. Both the hit counts of thread-value layouts and their addresses in memory
// come from such tables.
#pragma once

#include <cstdint>
#include <vector>

namespace warploom::layout {

// modes [2:a][3:b] with weight w → {0, w(a), w(b), w(a)+w(b), 2w(b), w(a)+2w(b)}
template <class ModeType, class Weight>
std::vector<std::int64_t> digit_sums(const std::vector<ModeType>& modes, const Weight& weight) {
  std::vector<std::int64_t> sums = {0};
  for (const ModeType& mode : modes) {
    const std::int64_t step = weight(mode);
    const std::size_t below = sums.size();
    sums.reserve(below * static_cast<std::size_t>(mode.extent));
    for (std::int64_t digit = 1; digit < mode.extent; ++digit) {
      for (std::size_t i = 0; i < below; ++i) sums.push_back(sums[i] + digit * step);
    }
  }
  return sums;
}

}  // namespace warploom::layout
