#include "layout/memory_layout.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "layout/tv_layout.h"
#include "tv_layouts.h"

namespace warploom::layout {
namespace {
// The definitions of the header, word for word and slowly.

// One access: `v` values from `step` on of each of the threads [first, last).
struct Access {
  int64_t first = 0;
  int64_t last = 0;
  int64_t step = 0;
  int64_t v = 1;
};

// The words of each bank that the threads of one access touch: the most of any bank.
size_t ways_of(const TvLayout& l, const MemoryLayout& m, const Access& a) {
  std::array<std::set<int64_t>, 32> words;
  for (int64_t t = a.first; t < a.last; ++t)
    for (int64_t k = a.step; k < std::min(a.step + a.v, l.values()); ++k) {
      const int64_t byte = m.byte_offset(l.coord(t, k));
      for (int64_t b = byte; b < byte + std::max(1, m.element_bits / 8); ++b)
        words[static_cast<size_t>(b / 4 % 32)].insert(b / 4);
    }
  size_t worst = 1;
  for (const auto& bank : words)
    worst = std::max(worst, bank.size());
  return worst;
}

int ways_by_enumeration(const TvLayout& l, const MemoryLayout& m, int access_bytes) {
  const int64_t v = std::clamp<int64_t>(access_bytes * 8 / m.element_bits, 1, l.values());
  const int64_t lanes = std::clamp<int64_t>(128 / access_bytes, 1, 32);
  size_t worst = 1;
  for (int64_t warp = 0; warp < l.threads(); warp += 32) {
    for (int64_t first = warp; first < std::min(warp + 32, l.threads()); first += lanes) {
      const int64_t last = std::min({first + lanes, warp + 32, l.threads()});
      for (int64_t step = 0; step < l.values(); step += v)
        worst = std::max(worst, ways_of(l, m, {first, last, step, v}));
    }
  }
  return static_cast<int>(worst);
}

// Whether the `count` values of a thread from value k on are one aligned vector in memory.
bool is_vector(const TvLayout& l, const MemoryLayout& m, int64_t thread, int64_t k, int64_t count) {
  const int64_t start = m.byte_offset(l.coord(thread, k));
  bool is_one = start % (count * m.element_bits / 8) == 0;
  for (int64_t i = 0; i < count; ++i)
    is_one = is_one && m.byte_offset(l.coord(thread, k + i)) == start + i * m.element_bits / 8;
  return is_one;
}

bool moves_by_vectors(const TvLayout& l, const MemoryLayout& m, int64_t count) {
  for (int64_t t = 0; t < l.threads(); ++t)
    for (int64_t k = 0; k < l.values(); k += count)
      if (!is_vector(l, m, t, k, count)) return false;
  return true;
}

int64_t vector_by_enumeration(const TvLayout& l, const MemoryLayout& m, int max_bytes) {
  int64_t best = 1;
  for (int64_t v = 2; v * m.element_bits <= 8 * max_bytes && l.values() % v == 0; v *= 2)
    if (moves_by_vectors(l, m, v)) best = v;
  return best;
}

Swizzle random_swizzle() {
  Swizzle s{*rc::gen::inRange(0, 4), *rc::gen::inRange(2, 6), 0};
  s.shift = *rc::gen::inRange(std::max(s.bits, 1), 6);
  return s;
}

// A tile of powers of two, dense or in panels or padded, any swizzle.
MemoryLayout random_memory(const std::vector<int64_t>& extents, int bits) {
  const int contiguous = *rc::gen::inRange(0, 2);
  if (*rc::gen::inRange(0, 3) == 0) {
    const int bytes = *rc::gen::element(32, 64, 128);
    if (extents[contiguous] * bits % (bytes * 8) == 0)
      return swizzle_atoms(extents, contiguous, bytes, bits);
  }
  return dense(extents, contiguous, bits, *rc::gen::element<int64_t>(0, 0, 1, 8), random_swizzle());
}

TvLayout random_register_layout(const std::vector<int64_t>& extents) {
  const int contiguous = *rc::gen::inRange(0, 2);
  for (;;) {
    auto l = *rc::gen::inRange(0, 2) == 0
                 ? Result<TvLayout>(
                       tiled_accumulator(1, *rc::gen::element<int64_t>(1, 2), extents, true))
                 : coalesced(extents, contiguous, *rc::gen::element<int64_t>(1, 2, 4),
                             *rc::gen::element<int64_t>(8, 24, 32, 64));
    if (l) return *l;
  }
}

TEST(MemoryLayout, HeaderExampleHolds) {
  const MemoryLayout m = swizzle_atoms({64, 256}, 1, 128, 16);
  EXPECT_EQ(to_string(m), "(64:64), (64:1)(4:4096) of 16 bits swizzle{3,4,3}");
  EXPECT_EQ(m.bytes(), 64 * 256 * 2);
  EXPECT_EQ(m.element_offset({3, 70}), 3 * 64 + 6 + 4096);
  EXPECT_EQ(m.byte_offset({3, 8}), (3 * 128 + 16) ^ (3 << 4));
}

TEST(MemoryLayout, SwizzleIsItsOwnInverseAndStaysInItsBlock) {
  for (const Swizzle s : {Swizzle{3, 4, 3}, Swizzle{2, 4, 3}, Swizzle{1, 4, 3}, Swizzle{2, 2, 5}}) {
    const int64_t block = int64_t{1} << (s.bits + s.base + s.shift);
    for (int64_t x = 0; x < 4 * block; ++x) {
      ASSERT_EQ(s(s(x)), x);
      ASSERT_EQ(s(x) / block, x / block);
    }
  }
}

TEST(MemoryLayout, DenseRunsAlongTheGivenDimensionThenTheLast) {
  const MemoryLayout m = dense({8, 16, 4}, 1, 32);
  EXPECT_EQ(to_string(m), "(8:64), (16:1), (4:16) of 32 bits");
  EXPECT_EQ(m.elements(), 8 * 16 * 4);
}

TEST(MemoryLayout, BytesCoverEverySwizzledOffset) {
  const MemoryLayout m = dense({3, 5}, 1, 32, 0, {3, 4, 3});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j)
      EXPECT_LE(m.byte_offset({i, j}) + 4, m.bytes());
  }
}

TEST(MemoryLayout, ColumnOfADenseTileConflictsAndASwizzleCuresIt) {
  const TvLayout column = coalesced({64, 64}, 0, 1, 32).value();  // a warp runs down a column
  const MemoryLayout plain = dense({64, 64}, 1, 32);
  EXPECT_EQ(bank_conflict_ways(column, plain, 4), 32);
  const TvLayout row = coalesced({64, 64}, 1, 1, 32).value();
  EXPECT_EQ(bank_conflict_ways(row, plain, 4), 1);
  MemoryLayout cured = plain;
  cured.swizzle = choose_swizzle({{column, 4}, {row, 4}}, plain);
  EXPECT_EQ(bank_conflict_ways(column, cured, 4), 1);
  EXPECT_EQ(bank_conflict_ways(row, cured, 4), 1);
}

TEST(MemoryLayout, PaddingCuresAColumnToo) {
  EXPECT_EQ(bank_conflict_ways(coalesced({64, 64}, 0, 1, 32).value(), dense({64, 64}, 1, 32, 1), 4),
            1);
}

TEST(MemoryLayout, RowsOfAPanelAreConflictFreeFor16Bytes) {
  // Eight threads on eight rows, 16 bytes each: what ldmatrix reads.
  const TvLayout rows{{64, 64}, {{8, {1, 0}}, {4, {8, 0}}}, {{8, {0, 1}}}};
  EXPECT_EQ(bank_conflict_ways(rows, swizzle_atoms({64, 64}, 1, 128, 16), 16), 1);
  EXPECT_EQ(bank_conflict_ways(rows, dense({64, 64}, 1, 16), 16), 8);
  EXPECT_EQ(choose_swizzle({{rows, 16}}, dense({64, 64}, 1, 16)), (Swizzle{3, 4, 3}));
}

TEST(MemoryLayout, NoSwizzleIsChosenWhereNoneIsNeeded) {
  EXPECT_EQ(choose_swizzle({{coalesced({64, 64}, 1, 4, 32).value(), 16}}, dense({64, 64}, 1, 32)),
            Swizzle{});
}

TEST(MemoryLayout, SwizzleTearsVectorsAboveItsBase) {
  const TvLayout l = coalesced({64, 64}, 1, 8, 64).value();
  EXPECT_EQ(common_vector(l, dense({64, 64}, 1, 16), 16), 8);
  EXPECT_EQ(common_vector(l, dense({64, 64}, 1, 16), 8), 4);
  EXPECT_EQ(common_vector(l, dense({64, 64}, 1, 16, 0, {2, 3, 4}), 16), 4);
  EXPECT_EQ(common_vector(l, dense({64, 64}, 0, 16), 16), 1);
  EXPECT_EQ(common_vector(l, dense({64, 64}, 1, 16, 4), 16),
            4);  // rows start at odd multiples of 8 bytes
}

TEST(MemoryLayout, QuestionsAboutBigTilesAreAnsweredQuickly) {
  const TvLayout even = tiled_accumulator(2, 4, {128, 256}, false);
  const TvLayout odd = coalesced({96, 240}, 1, 2, 96).value();
  const MemoryLayout even_memory = swizzle_atoms({128, 256}, 1, 128, 16);
  const MemoryLayout odd_memory = dense({96, 240}, 1, 16, 8);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(common_vector(even, even_memory, 16), 2);
    bank_conflict_ways(even, even_memory, 4);
    choose_swizzle({{even, 4}, {coalesced({128, 256}, 1, 8, 256).value(), 16}}, even_memory);
    EXPECT_EQ(common_vector(odd, odd_memory, 16), 2);
    bank_conflict_ways(odd, odd_memory, 4);
  }
  choose_swizzle({{odd, 4}, {coalesced({96, 240}, 0, 1, 96).value(), 4}}, odd_memory);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(time.count()));
  EXPECT_LT(time.count(),
            500);  // tens of milliseconds; the bound only catches a change of complexity
}

RC_GTEST_PROP(MemoryLayoutProperty, VectorsAndConflictsByEnumeration, ()) {
  const std::vector<int64_t> extents = {*rc::gen::element<int64_t>(16, 32, 48),
                                        *rc::gen::element<int64_t>(16, 32, 64)};
  const TvLayout l = random_register_layout(extents);
  const int bits = *rc::gen::element(8, 16, 32, 64);
  const MemoryLayout m = random_memory(extents, bits);
  const int access = *rc::gen::element(4, 8, 16);
  if (m.swizzle.bits > 0 && 1 << m.swizzle.base < bits / 8)
    return;  // tears elements: not a layout in use
  RC_ASSERT(common_vector(l, m, 16) == vector_by_enumeration(l, m, 16));
  RC_ASSERT(bank_conflict_ways(l, m, access) == ways_by_enumeration(l, m, access));
}

RC_GTEST_PROP(MemoryLayoutProperty, ChosenSwizzleIsNoWorseThanAnyOfTheCopyEngine, ()) {
  const std::vector<int64_t> extents = {*rc::gen::element<int64_t>(32, 48, 64),
                                        *rc::gen::element<int64_t>(32, 64)};
  const TvLayout a = random_register_layout(extents);
  const TvLayout b = random_register_layout(extents);
  MemoryLayout m = dense(extents, 1, 16, *rc::gen::element<int64_t>(0, 8));
  const auto sum = [&](Swizzle s) {
    m.swizzle = s;
    return ways_by_enumeration(a, m, 4) + ways_by_enumeration(b, m, 8);
  };
  const int chosen = sum(choose_swizzle({{a, 4}, {b, 8}}, m));
  for (const Swizzle s : {Swizzle{}, Swizzle{1, 4, 3}, Swizzle{2, 4, 3}, Swizzle{3, 4, 3}})
    RC_ASSERT(chosen <= sum(s));
}
}  // namespace
}  // namespace warploom::layout
