#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "tv_layouts.h"

namespace warploom::layout {
namespace {
// The dimension of what the rows [first, first + count) of some columns span, by Gauss.
int rank_of_rows(const std::vector<uint64_t>& columns, int first, int count) {
  std::vector<uint64_t> basis;  // distinct leading bits
  for (const uint64_t column : columns) {
    uint64_t now = column >> first & ((uint64_t{1} << count) - 1);
    for (const uint64_t b : basis)
      if (now & std::bit_floor(b)) now ^= b;
    if (now) basis.push_back(now);
  }
  return static_cast<int>(basis.size());
}

// Bank conflicts in closed form, as memory_layout.h has it.
int closed_form_of_conflicts(const TvLayout& registers, const MemoryLayout& memory,
                             int access_bytes) {
  const auto log2 = [](int64_t n) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(n))) - 1;
  };
  const auto all = bit_matrix(registers, memory).value().columns;
  const int thread_bits = log2(registers.threads());
  const int lane_bits = std::min(log2(std::clamp(128 / access_bytes, 1, 32)), thread_bits);
  const int vector_bits =
      std::min(log2(std::max(access_bytes * 8 / memory.element_bits, 1)), log2(registers.values()));
  std::vector<uint64_t> phase(all.begin(), all.begin() + lane_bits);
  phase.insert(phase.end(), all.begin() + thread_bits, all.begin() + thread_bits + vector_bits);
  // An element wider than a word touches all of its words.
  for (int bit = 3; bit < log2(memory.element_bits); ++bit)
    phase.push_back(uint64_t{1} << bit);
  return 1 << (rank_of_rows(phase, 5, 59) -
               rank_of_rows(phase, 5, 5));  // rows count bits: 2^5 bits a word, 2^5 banks
}

TEST(F2, HeaderExampleHolds) {
  const TvLayout threads{{2, 2}, {{2, {1, 0}}}, {{2, {0, 1}}}};
  EXPECT_EQ(bit_matrix(threads, dense({2, 2}, 0, 8)).value().columns,
            (std::vector<uint64_t>{0b01000, 0b10000}));
}

TEST(F2, LayoutsThatAreNotLinearAreRefused) {
  EXPECT_FALSE(bit_matrix(mma_accumulator(), dense({16, 8}, 1, 32, 1)));
  EXPECT_FALSE(bit_matrix({{3}, {{3, {1}}}, {}}, dense({3}, 0, 32)));
}

RC_GTEST_PROP(F2Property, AddressesAreSumsOfColumns, ()) {
  const TvLayout l = tiled_accumulator(1, 2, {32, 32}, true);
  const MemoryLayout m = dense({32, 32}, 1, 16, 0, {*rc::gen::inRange(0, 4), 4, 3});
  const BitMatrix a = bit_matrix(l, m).value();
  for (int64_t t = 0; t < l.threads(); ++t)
    for (int64_t v = 0; v < l.values(); ++v) {
      const uint64_t bit = a(static_cast<uint64_t>(t + v * l.threads()));
      RC_ASSERT(static_cast<int64_t>(bit) == 8 * m.byte_offset(l.coord(t, v)));
    }
}

RC_GTEST_PROP(F2Property, ClosedFormOfConflictsEqualsCounting, ()) {
  const std::vector<int64_t> extents = {*rc::gen::element<int64_t>(16, 32, 64),
                                        *rc::gen::element<int64_t>(16, 32, 64)};
  const int bits = *rc::gen::element(4, 8, 16, 32, 64);
  const int contiguous = *rc::gen::inRange(0, 2);
  const auto vector = *rc::gen::element<int64_t>(1, 2, 4);
  const auto threads = *rc::gen::element<int64_t>(16, 32, 128);
  const TvLayout l = *rc::gen::inRange(0, 2)
                         ? coalesced(extents, contiguous, vector, threads).value()
                         : tiled_accumulator(1, 2, extents, true);
  Swizzle s{*rc::gen::inRange(0, 4), *rc::gen::inRange(3, 6), 0};
  s.shift = *rc::gen::inRange(std::max(s.bits, 1), 6);
  const int fast = *rc::gen::inRange(0, 2);
  const MemoryLayout m = dense(extents, fast, bits, 0, s);
  const int access = *rc::gen::element(4, 8, 16);
  RC_ASSERT(closed_form_of_conflicts(l, m, access) == bank_conflict_ways(l, m, access));
}
}  // namespace
}  // namespace warploom::layout
