// Products of matrices of bf16 by the processor's tiles (AMX): sums of 16 rows and 16 columns at
// once, of 32 terms an instruction.
//
//   acc[i][j] += Σ_p a[i·AM + p] · b[j][p]      i < M, j < N, p < k; k a multiple of 32
//
// The operands lie as dot products have them (dot.h): rows of a whose terms are neighbours, rows of
// b in pairs. A tile is 16 rows of 64 bytes: of sums 16 × 16, of a 16 rows of 32 terms, of b 16
// pairs of rows of 16 columns. There are eight, of which a product of M ≤ 32 and N ≤ 32 takes all:
//
//   sums  0 1     a  4     b  6 7       sum(i, j) += a(i) · b(j), four instructions
//         2 3        5                  for four tiles that are read
//
// The last tile of rows or of columns may be smaller; the processor is told sizes once a product.
// Each product of two bf16 is exact, and sums round once a term. Numbers below 2^-126 count as 0,
// as in dot products.
//
// Linux keeps the tiles' registers for a process that asked for them (allow_tiles() of pool.h).
// Where a compiler knows of no tiles the same is computed by dot products.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18
// "Programming with Intel AMX"; TDPBF16PS, LDTILECFG.
#pragma once
#include "dot.h"

namespace wl {
inline constexpr long kTileSide = 16;   // rows of a tile, and columns of one of sums
inline constexpr long kTileTerms = 32;  // that a row of a has in a tile

#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
// What LDTILECFG reads.
struct alignas(64) TileSizes {
  unsigned char palette = 1;
  unsigned char first_row = 0;
  unsigned char unused[14] = {};
  unsigned short row_bytes[16] = {};
  unsigned char rows[16] = {};

  constexpr void set(int tile, long rows_of_it, long bytes_of_a_row) {
    rows[tile] = static_cast<unsigned char>(rows_of_it);
    row_bytes[tile] = static_cast<unsigned short>(bytes_of_a_row);
  }
};

// The tiles of a product of M rows and N columns: sums row by row, then those of a, those of b.
template <long M, long N> struct TileGrid {
  static constexpr int kRows = static_cast<int>((M + kTileSide - 1) / kTileSide);
  static constexpr int kColumns = static_cast<int>((N + kTileSide - 1) / kTileSide);
  static constexpr int kFirstA = kRows * kColumns;
  static constexpr int kFirstB = kFirstA + kRows;
  static_assert(kFirstB + kColumns <= 8, "a product of more tiles than there are");

  static constexpr TileSizes sizes() {
    TileSizes out;
    for (int i = 0; i < kRows; ++i) {
      const long rows = min(M - i * kTileSide, kTileSide);
      for (int j = 0; j < kColumns; ++j)
        out.set(i * kColumns + j, rows, 4 * min(N - j * kTileSide, kTileSide));
      out.set(kFirstA + i, rows, 2 * kTileTerms);
    }
    for (int j = 0; j < kColumns; ++j)
      out.set(kFirstB + j, kTileTerms / 2, 4 * min(N - j * kTileSide, kTileSide));
    return out;
  }
};

// Instructions name their tiles, so numbers of tiles are parts of types.
template <int Number> struct Tile {};

template <int Number>
WL_INLINE void load_tile(Tile<Number>, const void* from, long bytes_to_the_next_row) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(bytes_to_the_next_row), "i"(Number)
               : "memory");
}

template <int Number>
WL_INLINE void store_tile(Tile<Number>, void* to, long bytes_to_the_next_row) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
               :
               : "r"(to), "r"(bytes_to_the_next_row), "i"(Number)
               : "memory");
}

template <int Number> WL_INLINE void clear_tile(Tile<Number>) {
  asm volatile("tilezero %%tmm%c0" : : "i"(Number));
}

template <int Sum, int A, int B> WL_INLINE void add_products_of_tiles(Tile<Sum>, Tile<A>, Tile<B>) {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
}

// f(0), f(1), …, each number a type of its own.
template <class F, int... I> WL_INLINE void each_of(std::integer_sequence<int, I...>, F f) {
  (f(std::integral_constant<int, I>()), ...);
}

template <int Count> using Numbers = std::make_integer_sequence<int, Count>;

template <bool Fresh, long M, long N, long AM, long BK, long P>
WL_CALLED void multiply_by_tiles(float* acc, const bf16* a, const bf16* b, long k) {
  using Grid = TileGrid<M, N>;
  static constexpr TileSizes kSizes = Grid::sizes();
  const Numbers<Grid::kRows> rows;
  const Numbers<Grid::kColumns> columns;
  const auto each_sum = [&](auto f) {
    each_of(rows, [&](auto i) { each_of(columns, [&](auto j) { f(i, j); }); });
  };
  asm volatile("ldtilecfg %0" : : "m"(kSizes));
  each_sum([&](auto i, auto j) {
    const Tile<i * Grid::kColumns + j> sum;
    if constexpr (Fresh)
      clear_tile(sum);
    else
      load_tile(sum, acc + (i * P + j) * kTileSide, P * 4);
  });
  for (long p = 0; p < k; p += kTileTerms) {
    each_of(columns, [&](auto j) {
      load_tile(Tile<Grid::kFirstB + j>(), b + p / 2 * BK + j * 2 * kTileSide, BK * 2);
    });
    each_of(rows, [&](auto i) {
      const Tile<Grid::kFirstA + i> row;
      load_tile(row, a + i * kTileSide * AM + p, AM * 2);
      each_of(columns, [&](auto j) {
        add_products_of_tiles(Tile<i * Grid::kColumns + j>(), row, Tile<Grid::kFirstB + j>());
      });
    });
  }
  each_sum([&](auto i, auto j) {
    store_tile(Tile<i * Grid::kColumns + j>(), acc + (i * P + j) * kTileSide, P * 4);
  });
  asm volatile("tilerelease");
}
#else
template <bool Fresh, long M, long N, long AM, long BK, long P>
WL_INLINE void multiply_by_tiles(float* acc, const bf16* a, const bf16* b, long k) {
  multiply_pairs<Fresh, M, N, AM, BK, P>(acc, a, b, k);
}
#endif
}  // namespace wl
