// A CPU's tiles (AMX), as who plans a product and who writes its text both count them.
//
//   CpuTiles(32, 32).fit()       true: 2 × 2 tiles of sums, and two of each operand
//   CpuTiles(48, 32).fit()       false: six of sums, and five of operands
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
#pragma once
#include <cstdint>
#include "base/dtype.h"

namespace warploom::target {
// Of a product of so many rows and columns: sums of 16 rows and 16 columns a tile, and of each row
// and column of those one tile of an operand.
struct CpuTiles {
  static constexpr int64_t kSide = 16;
  static constexpr int64_t kTerms = 32;  // of bf16, that an instruction takes of the sum
  static constexpr int64_t kMost = 8;    // that there are

  int64_t rows = 1;
  int64_t columns = 1;

  CpuTiles(int64_t of_rows, int64_t of_columns)
      : rows(ceil_div(of_rows, kSide)), columns(ceil_div(of_columns, kSide)) {}

  int64_t sums() const { return rows * columns; }

  int64_t all() const { return sums() + rows + columns; }

  bool fit() const { return all() <= kMost; }
};
}  // namespace warploom::target
