// Where in memory the values of a thread-value layout lie: bit offsets, before the swizzle.
//
// Two exact forms. When every extent is a power of two and no sum ever carries (the rule, for tiles of powers
// of two without padding), the map is linear over XOR: an offset is the XOR of one column for each set bit of
// the thread and value index. Such a map looks the same from everywhere up to an XOR, so that questions about
// vectors and banks are answered from the columns alone. Otherwise the offsets come from tables, one a
// dimension, and everything is enumerated.
//
// Worked example: the 16×8 accumulator of tv_layout.h in a dense row-major tile of 32-bit elements. Thread
// bits 0, 1 step two and four columns: columns 64 and 128 (bits). Thread bits 2, 3, 4 step rows: 256, 512,
// 1024. Value bit 0: 32, bit 1: 2048.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layout/memory_layout.h"

namespace warploom::layout {

struct XorColumns {
  std::vector<std::int64_t> thread, value;  // bit offset of each index bit, lowest first
};

// Nothing when some extent is no power of two or some sum carries.
std::optional<XorColumns> xor_columns(const TvLayout& registers, const MemoryLayout& memory);

// The enumerated form: any layout.
class OffsetTable {
 public:
  OffsetTable(const TvLayout& registers, const MemoryLayout& memory);
  std::int64_t bit_offset(std::int64_t thread, std::int64_t value) const;

 private:
  std::vector<std::vector<std::int64_t>> of_coord_, of_thread_, of_value_;  // one a dimension
};

// A swizzle acts on bytes; this is the same on bits.
inline std::int64_t swizzle_bits(const Swizzle& swizzle, std::int64_t bit) {
  return swizzle(bit >> 3) << 3 | (bit & 7);
}

}  // namespace warploom::layout
