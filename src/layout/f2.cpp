#include "layout/f2.h"
#include <bit>
namespace warploom::layout {
std::uint64_t BitMatrix::operator()(std::uint64_t x) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (x >> i & 1) sum ^= columns[i];
  return sum;
}

Result<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory) {
  const std::size_t rank = std::min(registers.tile.size(), memory.dims.size());
  bool linear = true;
  BitMatrix result;
  Coord reached(rank, 0);  // the coordinate bits that some index bit sets; none may be set twice
  for (const auto* modes : {&registers.thread, &registers.value})
    for (const TvMode& mode : *modes) {
      linear = linear && std::has_single_bit(static_cast<std::uint64_t>(mode.extent));
      Coord step = mode.step;
      for (std::int64_t left = mode.extent; linear && left > 1; left /= 2) {
        const std::int64_t bit = memory.element_offset(step) * memory.element_bits;
        result.columns.push_back(static_cast<std::uint64_t>(memory.swizzle(bit >> 3) << 3 | (bit & 7)));
        for (std::size_t d = 0; d < rank; ++d) {
          linear = linear && step[d] >= 0 && (reached[d] & step[d]) == 0;
          reached[d] |= step[d];
          step[d] *= 2;
        }
      }
    }
  std::int64_t taken = 0;  // the offset bits that some coordinate bit sets; none may be set twice
  for (std::size_t d = 0; linear && d < rank; ++d) {
    for (std::size_t i = 0; i + 1 < memory.dims[d].size(); ++i)
      linear = linear && std::has_single_bit(static_cast<std::uint64_t>(memory.dims[d][i].extent));
    for (Coord unit(rank, 0); linear && (unit[d] = unit[d] ? unit[d] * 2 : 1) <= reached[d];) {
      const std::int64_t column = memory.element_offset(unit) * memory.element_bits;
      linear = (taken & column) == 0;
      taken |= column;
    }
  }
  if (!linear)
    return layout_error("addresses are not linear over bits", "extents that are powers of two, sums that do not carry",
                        to_string(registers) + " in " + to_string(memory));
  return result;
}
}  // namespace warploom::layout
