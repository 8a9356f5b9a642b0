// How a matrix statement's tile is spread over warps: every factorization of the warps into rows ×
// columns, each warp owning one contiguous rectangle, so that neighbouring fragments can be loaded
// by one wide matrix load. Cheapest means the fewest operand elements that the warps read together.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "layout/tv_layout.h"
#include "synth/solve.h"
#include "target/capabilities.h"
#include "target/instruction.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
struct Problem {
  int64_t m;
  int64_t n;
  int64_t k;
  bool transpose_a;
  bool transpose_b;
};

// What an operand over two of (m, n, k) sees of a spread over all three, the threads and values
// beyond those of the row's own layouts: threads that step along the third alone hold copies,
// values that do are none of its own.
TvLayout seen(const TvLayout& atom, const TvLayout& spread, size_t down, size_t across) {
  const layout::Coord tile = {spread.tile[down], spread.tile[across]};
  TvLayout layout{tile, atom.thread, atom.value};
  for (const auto& [extent, step] : spread.thread)
    if (extent > 1) layout.thread.push_back({extent, {step[down], step[across]}});
  for (const auto& [extent, step] : spread.value)
    if (extent > 1 && (step[down] || step[across]))
      layout.value.push_back({extent, {step[down], step[across]}});
  return layout;
}

MatrixTiling tiling_of(const Instruction& row, const Problem& p, const TvLayout& spread,
                       double cost) {
  MatrixTiling tiling{&row, seen(row.c, spread, 0, 1), {}, {}, cost};
  if (!row.a_shared) tiling.a = flipped(seen(row.a, spread, 0, 2), p.transpose_a);
  if (!row.b_shared) tiling.b = flipped(seen(row.b, spread, 2, 1), p.transpose_b);
  return tiling;
}

// Warps in rows and columns; warpgroups one below the other.
void unit_tilings(const Instruction& row, const Problem& p, int threads,
                  std::vector<MatrixTiling>& out) {
  const int units = threads / row.threads;
  const int columns = row.n ? row.n : 8;
  for (int wm = row.method == Method::wgmma ? units : 1; wm <= units; ++wm) {
    const int wn = units / wm;
    if (units % wm || p.m % (row.m * wm) || p.n % (columns * wn) || p.k % row.k) continue;
    // of one
    const int64_t m = p.m / wm;
    const int64_t n = p.n / wn;
    TvLayout spread{{p.m, p.n, p.k}, {}, {}};
    spread.thread.push_back({wm, {m, 0, 0}});
    spread.thread.push_back({wn, {0, n, 0}});
    spread.value.push_back({n / columns, {0, columns, 0}});
    spread.value.push_back({m / row.m, {row.m, 0, 0}});
    spread.value.push_back({p.k / row.k, {0, 0, row.k}});
    const double operands = as_double(p.k) * as_double(m + n);
    out.push_back(tiling_of(row, p, spread, operands));
  }
}

// One fused multiply-add a thread: threads tm × tn, each a patch of 4×4 (or narrower) blocks.
void simt_tilings(const Instruction& row, const Problem& p, int threads,
                  std::vector<MatrixTiling>& out) {
  for (int tm = 1; tm <= threads; tm *= 2) {
    const int tn = threads / tm;
    if (tm * tn != threads || p.m % tm || p.n % tn) continue;
    // of one thread
    const int64_t m = p.m / tm;
    const int64_t n = p.n / tn;
    if (m * n > 128) continue;
    const int64_t vm = m % 4 == 0 ? 4 : 1;
    const int64_t vn = n % 4 == 0 ? 4 : 1;
    TvLayout spread{{p.m, p.n, p.k}, {}, {}};
    spread.thread.push_back({tn, {0, vn, 0}});
    spread.thread.push_back({tm, {vm, 0, 0}});
    spread.value.push_back({vn, {0, 1, 0}});
    spread.value.push_back({n / vn, {0, vn * tn, 0}});
    spread.value.push_back({vm, {1, 0, 0}});
    spread.value.push_back({m / vm, {vm * tm, 0, 0}});
    spread.value.push_back({p.k, {0, 0, 1}});
    const double operands = as_double(p.k) * as_double(m + n);
    out.push_back(tiling_of(row, p, spread, operands * 4));
  }
}

// What no division of the product between the threads gives.
std::string unshared(const Instruction& row, const std::string& acc, int threads) {
  if (row.method == Method::mma_sync)
    return fmt::format("m and n of '{}' to be shared by {} warps in pieces of {}x{}", acc,
                       threads / 32, row.m, row.n);
  return fmt::format("m and n of '{}' to be shared evenly by {} threads, at most 128 elements each",
                     acc, threads);
}

// Where the instruction cannot take its operand: registers are whole, shared tiles begin where the
// swizzle repeats.
std::string unreached(const Instruction& row, const Program& program, const Tile& tile,
                      size_t k_dim) {
  const Tensor& tensor = program.tensor(tile.tensor);
  if (tensor.scope != Scope::shared) return "";
  constexpr int64_t step = 8;  // contiguous along k; else solve_swizzle_atoms asks for more
  if (tile.extent.size() != 2) return fmt::format("two dimensions of '{}'", tensor.name);
  if (tile.offset[k_dim].known_divisor() % row.k == 0 &&
      tile.offset[1 - k_dim].known_divisor() % step == 0)
    return "";
  return fmt::format(
      "a start in '{}' at multiples of {} along dimension {} and of {} along the other",
      tensor.name, row.k, k_dim, step);
}

// What a statement whose operands lie where the row wants them lacks for a tiling of its extents.
std::string misfit(const Instruction& row, const Problem& p, int first, int threads,
                   const std::string& acc, const std::string& a) {
  const int groups = threads / 128;
  const bool warpgroup = row.method == Method::wgmma;
  const int64_t m = warpgroup ? int64_t{row.m} * groups : row.m;
  const int n_step = p.n > 24 ? row.n_step : 8;
  const int64_t n = warpgroup ? n_step : row.n;
  if (warpgroup && (threads % 128 || first % 128))
    return "a multiple of 4 warps, and as many before them";
  if (p.m % m) return fmt::format("m, dimension 0 of '{}', in multiples of {}", acc, m);
  if (p.n % n) return fmt::format("n, dimension 1 of '{}', in multiples of {}", acc, n);
  if (warpgroup && p.n > 256) return fmt::format("n, dimension 1 of '{}', of at most 256", acc);
  if (p.k % row.k)
    return fmt::format("k, dimension {} of '{}', in multiples of {}", p.transpose_a ? 0 : 1, a,
                       row.k);
  return "";
}

// Where the instruction wants its operands, if they do not lie there.
std::string elsewhere(const Instruction& row, const Program& program, const Mma& mma) {
  const Tensor& a = program.tensor(mma.a.tensor);
  const Tensor& b = program.tensor(mma.b.tensor);
  const bool a_shared = a.scope == Scope::shared;
  const bool b_shared = b.scope == Scope::shared;
  if (a.scope == Scope::global || b.scope == Scope::global)
    return "operands in registers or shared memory, copied there before";
  if (row.a_shared != a_shared || row.b_shared != b_shared) {
    const auto memory = [](bool shared) { return shared ? "shared memory" : "registers"; };
    const char* const for_a = memory(row.a_shared);
    const char* const for_b = memory(row.b_shared);
    return fmt::format("'{}' in {} and '{}' in {}", a.name, for_a, b.name, for_b);
  }
  std::string lacks = unreached(row, program, mma.a, mma.transpose_a ? 0 : 1);
  if (lacks.empty()) lacks = unreached(row, program, mma.b, mma.transpose_b ? 1 : 0);
  return lacks;
}
}  // namespace

MatrixTilings matrix_tilings(const Program& program, const Mma& mma, int first, int threads,
                             const target::Capabilities& capabilities) {
  const Tensor& acc = program.tensor(mma.acc);
  const Tensor& a = program.tensor(mma.a.tensor);
  const int64_t k = matrix_extent(mma.a.extent)[mma.transpose_a ? 0 : 1];
  const Problem problem{acc.shape[0], acc.shape[1], k, mma.transpose_a, mma.transpose_b};
  MatrixTilings out;
  std::set<std::string_view> types;
  for (const Instruction& row : target::instructions_of(capabilities.arch)) {
    if (row.m == 0) continue;
    types.insert(name_of(row.operand));
    if (row.operand != a.dtype) continue;
    std::string lacks = elsewhere(row, program, mma);
    if (lacks.empty()) lacks = misfit(row, problem, first, threads, acc.name, a.name);
    const size_t before = out.found.size();
    if (lacks.empty() && acc.dtype == row.accumulator && acc.shape.size() == 2)
      (row.method == Method::simt ? simt_tilings : unit_tilings)(row, problem, threads, out.found);
    if (out.found.size() > before) continue;
    if (lacks.empty()) lacks = unshared(row, acc.name, threads);
    const char* const separator = out.lacks.empty() ? "" : "; ";
    out.lacks += fmt::format("{}{} wants {}", separator, row.name, lacks);
  }
  if (out.found.empty() && out.lacks.empty())
    out.lacks = fmt::format("operands of a type that {} multiplies: {}", capabilities.arch,
                            fmt::join(types, ", "));
  std::ranges::stable_sort(out.found, [](const auto& x, const auto& y) { return x.cost < y.cost; });
  return out;
}
}  // namespace warploom::synth
