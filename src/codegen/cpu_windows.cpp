// Products of windows of a patch, and stores that turn a tile round (device/cpu/windows.h).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
// Loops over dimensions of windows: counts and strides. Those that go on where the next one ends
// are one loop with it.
struct Walk {
  std::vector<int64_t> counts;
  std::vector<int64_t> strides;

  void add(int64_t count, int64_t stride) {
    if (count == 1) return;
    if (!counts.empty() && strides.back() == count * stride) {
      counts.back() *= count;
      strides.back() = stride;
      return;
    }
    counts.push_back(count);
    strides.push_back(stride);
  }

  std::string text() const {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < counts.size(); ++i) {
      numbers.push_back(counts[i]);
      numbers.push_back(strides[i]);
    }
    return fmt::format("wl::Walk<{}>", fmt::join(numbers, ", "));
  }
};

// Rows that a block of registers takes, of `rows` along the last loop and beside so many vectors of
// columns. Compilers keep accumulators in registers where a few stay free: three quarters of all
// are taken. A number that divides the rows comes first, if it is no less than half of the most.
int64_t rows_of_block(int64_t rows, int64_t vectors, int64_t registers) {
  const int64_t most = std::clamp<int64_t>(registers * 3 / 4 / vectors, 1, rows);
  for (int64_t count = most; 2 * count > most; --count)
    if (rows % count == 0) return count;
  return ceil_div(rows, ceil_div(rows, most));
}
}  // namespace

// How far apart rows of the second operand of a product of windows lie, whose columns lie side by
// side; 0 where it cannot be read so. In memory whole vectors are read, so that there rows must
// have as many elements.
int64_t CpuEmitter::panel_of_weights(const Mma& mma, int64_t columns) const {
  const Tensor& weights = tensor(mma.b.tensor);
  if (weights.scope == Scope::global) {
    auto strides = matrix_strides(mma.b);
    if (mma.transpose_b) std::swap(strides[0], strides[1]);
    const bool whole = strides[1] == 1 && strides[0] >= round_up(columns, lanes_);
    const bool plain = weights.dtype == Dtype::f32 && conditions(mma.b).empty();
    return whole && plain ? strides[0] : 0;
  }
  const CpuLayout& b = layout(mma.b.tensor);
  const auto extent = matrix_extent(mma.b.extent);
  const bool whole = extent[mma.transpose_b ? 0 : 1] == b.fast() &&
                     extent[mma.transpose_b ? 1 : 0] == (b.rows_fast ? b.cols : b.rows);
  return whole && b.rows_fast == mma.transpose_b ? b.panel : 0;
}

void CpuEmitter::multiply_windows(const Mma& mma) {
  const Tensor& windows = tensor(mma.a.tensor);
  const auto acc = matrix_extent(tensor(mma.acc).shape);
  const int64_t panel = panel_of_weights(mma, acc[1]);
  if (panel == 0 || layout(mma.acc).matrices != 1)
    return unsupported("a product of windows takes part of its second operand",
                       "a shared tensor, all of it, or columns of a global one side by side",
                       fmt::format("'{}'", name(mma.b.tensor)));
  Walk rows;
  Walk depth;
  Index first = windows.from;
  int64_t made = 1;
  for (size_t d = 0; d < mma.a.extent.size(); ++d) {
    Walk& walk = made < acc[0] ? rows : depth;
    made *= mma.a.extent[d];
    walk.add(mma.a.extent[d], windows.strides[d]);
    first = first + mma.a.offset[d] * windows.strides[d];
  }
  if (rows.counts.empty()) rows = {{1}, {1}};
  const int64_t vectors = ceil_div(acc[1], lanes_);
  const int64_t block_vectors = std::min(vectors, kWindowVectors);
  const int64_t registers = capabilities_.registers > 0 ? capabilities_.registers : 16;
  const int64_t block_rows = rows_of_block(rows.counts.back(), block_vectors, registers);
  const std::string walks = fmt::format("{}, {}", rows.text(), depth.text());
  const std::string extents = fmt::format("{}, {}, {}", vectors, block_rows, block_vectors);
  const std::string pitches = fmt::format("{}, {}", layout(mma.acc).panel, panel);
  const std::string patch = plus(name(windows.as_strided), first);
  const bool in_memory = tensor(mma.b.tensor).scope == Scope::global;
  const std::string weights = in_memory ? pointer(mma.b) : name(mma.b.tensor);
  const std::string operands = fmt::format("{}, {}, {}", name(mma.acc), patch, weights);
  out_.line("wl::mma_windows<{}, {}, {}>({}, {});", walks, extents, pitches, operands,
            std::exchange(begins_, "false"));
}

// A tile of a buffer, row by row, to memory where its columns are rows. The sides are exchanged:
// their `col` is contiguous in memory.
bool CpuEmitter::store_transposed(const Copy& copy, const Side& src, const Side& dst) {
  if (src.global || !dst.global || !src.strided || dst.col.stride != 1 || src.row.stride != 1)
    return false;
  const bool padded = src.col.stride % lanes_ == 0 && src.row.dim >= 0 && src.col.dim >= 0;
  if (!padded || !conditions(copy.dst).empty()) return false;
  const std::string to = fmt::format("{}, {}", pointer(copy.dst), dst.row.stride);
  const std::string from = fmt::format("{}, {}", pointer(copy.src), src.col.stride);
  out_.line("wl::store_transposed({}, {}, {}, {});", to, from, src.col.extent, src.row.extent);
  return true;
}
}  // namespace warploom::codegen
