#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/parallel.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
// A block of C that one task computes, and the length of k for which panels of A and B are packed:
// 2 x 0.5 MiB.
constexpr int64_t kBlockRows = 192;
constexpr int64_t kBlockColumns = 240;
constexpr int64_t kBlockDepth = 256;
constexpr int kMaxTile = 8 * 24;

// A micro kernel: tile[rows][columns] = a panel (depth x rows) times b panel (depth x columns). The
// body is a macro because the compiler lowers generic vectors before it inlines: it must stand in
// the very function that has the target attribute.
typedef double Vector2 __attribute__((vector_size(16), aligned(8)));
typedef double Vector4 __attribute__((vector_size(32), aligned(8)));
typedef double Vector8 __attribute__((vector_size(64), aligned(8)));
#define WARPLOOM_MICRO(name, attribute, Vector, kRows, kVectors)                                 \
  attribute void name(int64_t depth, const double* a, const double* b, double* tile) {           \
    constexpr int kLanes = as_int(sizeof(Vector) / sizeof(double));                              \
    Vector sum[kRows][kVectors] = {};                                                            \
    for (int64_t k = 0; k < depth; ++k) {                                                        \
      Vector right[kVectors];                                                                    \
      _Pragma("GCC unroll 8") for (int j = 0; j < kVectors; ++j) right[j] =                      \
          *reinterpret_cast<const Vector*>(b + k * kVectors * kLanes + j * kLanes);              \
      _Pragma("GCC unroll 8") for (int i = 0; i < kRows; ++i) {                                  \
        const double left = a[k * kRows + i];                                                    \
        _Pragma("GCC unroll 8") for (int j = 0; j < kVectors; ++j) sum[i][j] += left * right[j]; \
      }                                                                                          \
    }                                                                                            \
    for (int i = 0; i < kRows; ++i)                                                              \
      for (int j = 0; j < kVectors; ++j)                                                         \
        *reinterpret_cast<Vector*>(tile + (i * kVectors + j) * kLanes) = sum[i][j];              \
  }
#if defined(__x86_64__)
WARPLOOM_MICRO(micro_avx512, __attribute__((target("avx512f,fma"))), Vector8, 8, 3)
WARPLOOM_MICRO(micro_avx2, __attribute__((target("avx2,fma"))), Vector4, 4, 3)
#endif
WARPLOOM_MICRO(micro_plain, , Vector2, 4, 3)
#undef WARPLOOM_MICRO

struct Micro {
  int rows;
  int columns;
  void (*run)(int64_t, const double*, const double*, double*);
};

Micro fastest_micro() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {8, 24, micro_avx512};
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) return {4, 12, micro_avx2};
#endif
  return {4, 6, micro_plain};
}

const Micro& micro() {
  static const Micro chosen = fastest_micro();
  return chosen;
}

// The distance from each offset to the next; nothing where that differs.
std::optional<int64_t> step_of(const int64_t* offsets, int64_t count) {
  const int64_t step = count > 1 ? offsets[1] - offsets[0] : 1;
  for (int64_t i = 2; i < count; ++i)
    if (offsets[i] - offsets[i - 1] != step) return std::nullopt;
  return step;
}

// Lines [begin, end) of an operand over `depth` elements of k from `k0` on.
struct Block {
  const Operand& operand;
  int64_t offset;  // of the batch's product, in elements
  int64_t begin;
  int64_t end;
  int64_t k0;
  int64_t depth;
  bool absolute;  // their absolute values
};

// Packs `count` lines from `first` on into one panel of `width` lines, depth-major.
void pack_panel(const Block& block, int64_t first, int64_t count, int width, double* to) {
  const Operand& from = block.operand;
  const int64_t* const depths = from.depths + block.k0;
  const int64_t* const lines = from.lines + first;
  const int64_t depth = block.depth;
  const int64_t offset = block.offset;
  if (step_of(lines, count) == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t place = offset + lines[0] + depths[k];
      load_run(from.dtype, from.data, place, 1, count, to + k * width);
    }
    return;
  }
  if (const auto depth_step = step_of(depths, depth)) {
    double along[kBlockDepth];
    for (int64_t line = 0; line < count; ++line) {
      const int64_t place = offset + lines[line] + depths[0];
      load_run(from.dtype, from.data, place, *depth_step, depth, along);
      for (int64_t k = 0; k < depth; ++k)
        to[k * width + line] = along[k];
    }
    return;
  }
  const bool is_f64 = from.dtype == Dtype::f64;
  const auto* const doubles = is_f64 ? static_cast<const double*>(from.data) : nullptr;
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t line = 0; line < count; ++line) {
      const int64_t place = offset + lines[line] + depths[k];
      double& element = to[k * width + line];
      element = doubles ? doubles[place] : load_as_double(from.dtype, from.data, place);
    }
}

// Packs a block into panels of `width` lines, zeros after the last line.
void pack(const Block& block, int width, double* to) {
  const int64_t panel = width * block.depth;
  for (int64_t first = block.begin; first < block.end; first += width) {
    const int64_t count = std::min<int64_t>(width, block.end - first);
    if (count < width) std::fill(to, to + panel, 0.0);
    pack_panel(block, first, count, width, to);
    if (block.absolute)
      for (int64_t i = 0; i < panel; ++i)
        to[i] = std::fabs(to[i]);
    to += panel;
  }
}

// Adds a block of C, [rows, columns], from packed panels of A and B.
void add_tiles(const double* left, const double* right, int64_t depth, int64_t rows,
               int64_t columns, double* c, int64_t row_stride) {
  const Micro& kernel = micro();
  alignas(64) double tile[kMaxTile];
  for (int64_t j = 0; j < columns; j += kernel.columns)
    for (int64_t i = 0; i < rows; i += kernel.rows) {
      kernel.run(depth, left + i * depth, right + j * depth, tile);
      const int64_t tile_rows = std::min<int64_t>(kernel.rows, rows - i);
      const int64_t tile_columns = std::min<int64_t>(kernel.columns, columns - j);
      for (int64_t y = 0; y < tile_rows; ++y) {
        double* const to = c + (i + y) * row_stride + j;
        for (int64_t x = 0; x < tile_columns; ++x)
          to[x] += tile[y * kernel.columns + x];
      }
    }
}

// c += a·b, or |a|·|b|.
void add(const Product& product, double* c, bool absolute, int threads) {
  const Micro& kernel = micro();
  const int64_t row_blocks = ceil_div(product.m, kBlockRows);
  const int64_t column_blocks = ceil_div(product.n, kBlockColumns);
  const auto batch = as_int64(product.batch.size());
  parallel_for(batch * row_blocks * column_blocks, threads, [&](int64_t task) {
    static thread_local std::vector<double> left(kBlockRows * kBlockDepth);
    static thread_local std::vector<double> right(kBlockColumns * kBlockDepth);
    const Offsets& at = product.batch[task / (row_blocks * column_blocks)];
    // Row blocks vary fastest, so that neighbours in time share columns of B.
    const int64_t row = task % row_blocks * kBlockRows;
    const int64_t column = task / row_blocks % column_blocks * kBlockColumns;
    const int64_t end_row = std::min(row + kBlockRows, product.m);
    const int64_t end_column = std::min(column + kBlockColumns, product.n);
    double* const block = c + at.c + row * product.n + column;
    for (int64_t k = 0; k < product.k; k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, product.k - k);
      double* const rows_of_a = left.data();
      double* const columns_of_b = right.data();
      pack({product.a, at.a, row, end_row, k, depth, absolute}, kernel.rows, rows_of_a);
      pack({product.b, at.b, column, end_column, k, depth, absolute}, kernel.columns, columns_of_b);
      add_tiles(rows_of_a, columns_of_b, depth, end_row - row, end_column - column, block,
                product.n);
    }
  });
}
}  // namespace

void multiply_add(const Product& product, double* value, double* magnitude,
                  const EvalOptions& options) {
  if (options.products && options.products(product, value, magnitude)) return;
  if (value) add(product, value, false, options.threads);
  if (magnitude) add(product, magnitude, true, options.threads);
}
}  // namespace warploom::graph
