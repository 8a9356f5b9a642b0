// The numbers that inputs with ends are drawn from.
#include <algorithm>
#include <cmath>
#include "base/dtype.h"
#include "graph/ranges.h"
#include "verify/inputs.h"

namespace warploom::verify {
Lattice lattice_of(Dtype dtype, const graph::Range& range) {
  constexpr double kExactly = 0x1p53;  // whole numbers that a double holds
  if (is_float(dtype)) {
    if (!range.is_bounded()) return {};
    const double step = range.whole ? 1 : 0.25;  // exact also after simple arithmetic
    const double first = std::ceil(range.low / step) * step;
    const double last = std::floor(range.high / step) * step;
    return first <= last ? Lattice{first, step, (last - first) / step + 1} : Lattice{};
  }
  if (dtype == Dtype::boolean) return {0, 1, 2};
  constexpr double kCustomary = 16;  // numbers, half of them below 0
  double low = is_signed(dtype) ? -kCustomary / 2 : 0;
  double high = low + kCustomary - 1;
  if (std::isfinite(range.low)) {
    low = std::ceil(range.low);
    high = std::max(high, low + kCustomary - 1);
  }
  if (std::isfinite(range.high)) {
    high = std::floor(range.high);
    if (!std::isfinite(range.low)) low = std::min(low, high - kCustomary + 1);
  }
  // What the type holds, but for those whose ends no double tells exactly.
  const double size = std::min(std::ldexp(1.0, bits_of(dtype)), kExactly);
  const double least = is_signed(dtype) ? -size / 2 : 0;
  low = std::max(low, least);
  high = std::min(high, least + size - 1);
  return {low, 1, std::max(high - low + 1, 1.0)};
}
}  // namespace warploom::verify
