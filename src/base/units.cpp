#include "base/units.h"
#include <fmt/format.h>
#include <array>
#include <cstddef>
#include <string>

namespace warploom {
std::string bytes_text(double bytes) {
  static constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}
}  // namespace warploom
