// For tests: programs that multiply matrices on a CPU.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom {
using tile::Builder;
using tile::Index;
using tile::Program;

// Matrix products of tiles of every orientation, more than one register block of rows and columns.
inline Program product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool panels) {
  Builder b("product");
  b.warps(1);
  const auto A = b.global("A", Dtype::f32, ta ? std::vector{k, m} : std::vector{m, k});
  const auto B = b.global("B", Dtype::f32, tb ? std::vector{n, k} : std::vector{k, n});
  const auto C = b.output("C", Dtype::f32, {m, n});
  const auto a = b.shared("a", Dtype::f32, ta ? std::vector{k, m} : std::vector{m, k});
  const auto w = b.shared("b", Dtype::f32, tb ? std::vector{n, k} : std::vector{k, n});
  const int64_t part = panels ? 16 : n;
  const auto acc = b.reg("acc", Dtype::f32, {m, part});
  b.copy(b.all(A), b.all(a));
  b.copy(b.all(B), b.all(w));
  b.for_("j", 0, n, part, [&](const Index& j) {
    b.fill(acc, 0);
    b.mma(acc, b.all(a), tb ? b.tile(w, {j, 0}, {part, k}) : b.tile(w, {0, j}, {k, part}), ta, tb);
    b.copy(b.all(acc), b.tile(C, {0, j}, {m, part}));
  });
  return b.finish();
}

// Products that read their operands where they lie, in tiles that overlap at the tensor's end, and
// begin with what the blocks of k before them have summed.
inline Program product_in_place(int64_t m, int64_t n, int64_t k, Dtype dtype, bool ta) {
  Builder b("in_place");
  b.warps(1);
  const int64_t rows = std::min<int64_t>(m, 5);
  const int64_t columns = std::min<int64_t>(n, 33);
  const auto A = b.global("A", dtype, ta ? std::vector{k, m} : std::vector{m, k});
  const auto B = b.global("B", dtype, {2, k, n});
  const auto C = b.output("C", Dtype::f32, {m, n});
  const auto acc = b.reg("acc", Dtype::f32, {rows, columns});
  b.for_("i", 0, ceil_div(m, rows), 1, [&](const Index& i) {
    const Index row = tile::min(i * rows, m - rows);
    b.for_("j", 0, ceil_div(n, columns), 1, [&](const Index& j) {
      const Index column = tile::min(j * columns, n - columns);
      b.fill(acc, 0);
      for (const int64_t at : {int64_t{0}, k / 2}) {
        const int64_t deep = at == 0 ? k / 2 : k - k / 2;
        const auto from_a =
            ta ? b.tile(A, {at, row}, {deep, rows}) : b.tile(A, {row, at}, {rows, deep});
        b.mma(acc, from_a, b.tile(B, {1, at, column}, {1, deep, columns}), ta);
      }
      b.copy(b.all(acc), b.tile(C, {row, column}, {rows, columns}));
    });
  });
  return b.finish();
}
}  // namespace warploom
