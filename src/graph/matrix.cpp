#include <cmath>
#include "graph/evaluator.h"
#include "graph/parallel.h"

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
    constexpr int kLanes = static_cast<int>(sizeof(Vector) / sizeof(double));                    \
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
WARPLOOM_MICRO(micro_avx512, __attribute__((target("avx512f,fma"))), Vector8, 8, 3)
WARPLOOM_MICRO(micro_avx2, __attribute__((target("avx2,fma"))), Vector4, 4, 3)
WARPLOOM_MICRO(micro_plain, , Vector2, 4, 3)
#undef WARPLOOM_MICRO

struct Micro {
  int rows;
  int columns;
  void (*run)(int64_t, const double*, const double*, double*);
};

const Micro& micro() {
  static const Micro chosen = __builtin_cpu_supports("avx512f") ? Micro{8, 24, micro_avx512}
                              : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                  ? Micro{4, 12, micro_avx2}
                                  : Micro{4, 6, micro_plain};
  return chosen;
}

// From each to the next; nothing where that differs.
std::optional<int64_t> step_of(const int64_t* of, int64_t count) {
  const int64_t step = count > 1 ? of[1] - of[0] : 1;
  for (int64_t i = 2; i < count; ++i)
    if (of[i] - of[i - 1] != step) return std::nullopt;
  return step;
}

// Packs lines [begin, end) over `depth` from `k0` on into panels of `width` lines, depth-major
// within one, zeros after the last.
void pack(const Operand& from, int64_t offset, int64_t begin, int64_t end, int64_t k0,
          int64_t depth, int width, bool absolute, double* to) {
  double along[kBlockDepth];
  const int64_t* const depths = from.depths + k0;
  const auto depth_step = step_of(depths, depth);
  for (int64_t first = begin; first < end; first += width, to += width * depth) {
    const int64_t here = std::min<int64_t>(width, end - first);
    const int64_t* const lines = from.lines + first;
    if (here < width) std::fill(to, to + width * depth, 0.0);
    if (step_of(lines, here) == 1) {
      for (int64_t k = 0; k < depth; ++k)
        load_run(from.dtype, from.data, offset + lines[0] + depths[k], 1, here, to + k * width);
    } else if (depth_step) {
      for (int64_t line = 0; line < here; ++line) {
        load_run(from.dtype, from.data, offset + lines[line] + depths[0], *depth_step, depth,
                 along);
        for (int64_t k = 0; k < depth; ++k) to[k * width + line] = along[k];
      }
    } else {
      const auto* const doubles =
          from.dtype == Dtype::f64 ? static_cast<const double*>(from.data) : nullptr;
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t line = 0; line < here; ++line) {
          const int64_t at = offset + lines[line] + depths[k];
          to[k * width + line] = doubles ? doubles[at] : load_as_double(from.dtype, from.data, at);
        }
    }
    if (absolute)
      for (int64_t i = 0; i < width * depth; ++i) to[i] = std::fabs(to[i]);
  }
}

// c += a·b, or |a|·|b|.
void add(const Product& p, double* c, bool absolute, int threads) {
  const Micro& kernel = micro();
  const int64_t row_blocks = ceil_div(p.m, kBlockRows);
  const int64_t column_blocks = ceil_div(p.n, kBlockColumns);
  const auto batch = static_cast<int64_t>(p.batch.size());
  parallel_for(batch * row_blocks * column_blocks, threads, [&](int64_t task) {
    static thread_local std::vector<double> left(kBlockRows * kBlockDepth);
    static thread_local std::vector<double> right(kBlockColumns * kBlockDepth);
    const Offsets& at = p.batch[task / (row_blocks * column_blocks)];
    // Row blocks vary fastest, so that neighbours in time share columns of B.
    const int64_t row = task % row_blocks * kBlockRows;
    const int64_t column = task / row_blocks % column_blocks * kBlockColumns;
    const int64_t rows = std::min(kBlockRows, p.m - row);
    const int64_t columns = std::min(kBlockColumns, p.n - column);
    alignas(64) double tile[kMaxTile];
    for (int64_t k = 0; k < p.k; k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, p.k - k);
      pack(p.a, at.a, row, row + rows, k, depth, kernel.rows, absolute, left.data());
      pack(p.b, at.b, column, column + columns, k, depth, kernel.columns, absolute, right.data());
      for (int64_t j = 0; j < columns; j += kernel.columns)
        for (int64_t i = 0; i < rows; i += kernel.rows) {
          kernel.run(depth, left.data() + i * depth, right.data() + j * depth, tile);
          const int64_t high = std::min<int64_t>(kernel.rows, rows - i);
          const int64_t wide = std::min<int64_t>(kernel.columns, columns - j);
          for (int64_t y = 0; y < high; ++y) {
            double* to = c + at.c + (row + i + y) * p.n + column + j;
            for (int64_t x = 0; x < wide; ++x) to[x] += tile[y * kernel.columns + x];
          }
        }
    }
  });
}
}  // namespace

void multiply_add(const Product& p, double* value, double* magnitude, const EvalOptions& means) {
  if (means.products && means.products(p, value, magnitude)) return;
  if (value) add(p, value, false, means.threads);
  if (magnitude) add(p, magnitude, true, means.threads);
}
}  // namespace warploom::graph
