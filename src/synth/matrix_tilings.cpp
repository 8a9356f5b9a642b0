// How a matrix statement's tile is spread over warps: every factorization of the warps into rows × columns, each warp owning one
// contiguous rectangle, so that neighbouring fragments can be loaded by one wide matrix load. Cheapest means the fewest operand
// elements that the warps read together.
#include <fmt/ranges.h>
#include "synth/exchange.h"
#include "synth/solve.h"
namespace warploom::synth {
namespace {
using layout::TvLayout;
using layout::TvMode;
using target::Instruction;
using target::Method;

struct Problem {
  std::int64_t m, n, k;
  Dtype operand;
  bool transpose_a, transpose_b;
};

void append(std::vector<TvMode>& modes, std::int64_t extent, layout::Coord step) {
  if (extent > 1) modes.push_back({extent, std::move(step)});
}

// An operand: the atom's modes, then `warps` modes, then repeats of the atom over values, first along one dimension.
TvLayout spread(const TvLayout& atom, std::vector<std::int64_t> tile, const std::vector<TvMode>& warps,
                const std::vector<TvMode>& repeats) {
  TvLayout layout{std::move(tile), atom.thread, atom.value};
  for (const TvMode& mode : warps) append(layout.thread, mode.extent, mode.step);
  for (const TvMode& mode : repeats) append(layout.value, mode.extent, mode.step);
  return layout;
}

void warp_tilings(const Instruction& row, const Problem& p, int threads, std::vector<MatrixTiling>& out) {
  const int warps = threads / 32;
  for (int wm = 1; wm <= warps; ++wm) {
    if (warps % wm) continue;
    const int wn = warps / wm;
    if (p.m % (row.m * wm) || p.n % (row.n * wn) || p.k % row.k) continue;
    const std::int64_t m = p.m / wm, n = p.n / wn;  // of one warp
    MatrixTiling tiling{&row, {}, {}, {}, static_cast<double>(p.k) * static_cast<double>(m + n)};
    tiling.acc = spread(row.c, {p.m, p.n}, {{wm, {m, 0}}, {wn, {0, n}}}, {{n / row.n, {0, row.n}}, {m / row.m, {row.m, 0}}});
    tiling.a =
        flipped(spread(row.a, {p.m, p.k}, {{wm, {m, 0}}, {wn, {0, 0}}}, {{m / row.m, {row.m, 0}}, {p.k / row.k, {0, row.k}}}),
                p.transpose_a);
    tiling.b =
        flipped(spread(row.b, {p.k, p.n}, {{wm, {0, 0}}, {wn, {0, n}}}, {{n / row.n, {0, row.n}}, {p.k / row.k, {row.k, 0}}}),
                p.transpose_b);
    out.push_back(std::move(tiling));
  }
}

// One fused multiply-add a thread: threads tm × tn, each a patch of 4×4 (or narrower) blocks.
void simt_tilings(const Instruction& row, const Problem& p, int threads, std::vector<MatrixTiling>& out) {
  for (int tm = 1; tm <= threads; tm *= 2) {
    const int tn = threads / tm;
    if (tm * tn != threads || p.m % tm || p.n % tn) continue;
    const std::int64_t m = p.m / tm, n = p.n / tn;  // of one thread
    if (m * n > 128) continue;
    const std::int64_t vm = m % 4 == 0 ? 4 : 1, vn = n % 4 == 0 ? 4 : 1;
    MatrixTiling tiling{&row, {}, {}, {}, static_cast<double>(p.k) * static_cast<double>(m + n) * 4};
    const TvLayout one{{1, 1}, {}, {}};
    tiling.acc = spread(one, {p.m, p.n}, {{tn, {0, vn}}, {tm, {vm, 0}}},
                        {{vn, {0, 1}}, {n / vn, {0, vn * tn}}, {vm, {1, 0}}, {m / vm, {vm * tm, 0}}});
    tiling.a =
        flipped(spread(one, {p.m, p.k}, {{tn, {0, 0}}, {tm, {vm, 0}}}, {{vm, {1, 0}}, {m / vm, {vm * tm, 0}}, {p.k, {0, 1}}}),
                p.transpose_a);
    tiling.b =
        flipped(spread(one, {p.k, p.n}, {{tn, {0, vn}}, {tm, {0, 0}}}, {{vn, {0, 1}}, {n / vn, {0, vn * tn}}, {p.k, {1, 0}}}),
                p.transpose_b);
    out.push_back(std::move(tiling));
  }
}

void warpgroup_tilings(const Instruction& row, const Problem& p, int threads, std::vector<MatrixTiling>& out) {
  const int groups = threads / 128;
  const std::int64_t m = p.m / groups;
  MatrixTiling tiling{&row, {}, {}, {}, 0};
  tiling.acc = spread(row.c, {p.m, p.n}, {{groups, {m, 0}}}, {{p.n / 8, {0, 8}}, {m / row.m, {row.m, 0}}});
  if (!row.a_shared)
    tiling.a = flipped(spread(row.a, {p.m, p.k}, {{groups, {m, 0}}}, {{m / row.m, {row.m, 0}}, {p.k / row.k, {0, row.k}}}),
                       p.transpose_a);
  out.push_back(std::move(tiling));
}

// Where the instruction cannot take its operand: registers are whole, shared tiles begin where the swizzle repeats.
std::string unreached(const Instruction& row, const tile::Program& program, const tile::Tile& tile, std::size_t k_dim) {
  const tile::Tensor& tensor = program.tensor(tile.tensor);
  if (tensor.scope != tile::Scope::shared) return "";
  const std::int64_t step = row.transposable ? 64 : 8;
  if (tile.extent.size() != 2) return fmt::format("two dimensions of '{}'", tensor.name);
  if (tile.offset[k_dim].known_divisor() % row.k == 0 && tile.offset[1 - k_dim].known_divisor() % step == 0) return "";
  return fmt::format("a start in '{}' at multiples of {} along dimension {} and of {} along the other", tensor.name, row.k, k_dim,
                     step);
}

// What a statement whose operands lie where the row wants them lacks for a tiling of its extents.
std::string misfit(const Instruction& row, const Problem& p, int first, int threads, const std::string& acc,
                   const std::string& a) {
  const int groups = threads / 128;
  const bool warpgroup = row.method == Method::warpgroup;
  const std::int64_t m = warpgroup ? std::int64_t{row.m} * groups : row.m;
  const std::int64_t n = !warpgroup ? row.n : p.n > 24 ? row.n_step : 8;
  if (warpgroup && (threads % 128 || first % 128)) return "a multiple of 4 warps, and as many before them";
  if (p.m % m) return fmt::format("m, dimension 0 of '{}', in multiples of {}", acc, m);
  if (p.n % n) return fmt::format("n, dimension 1 of '{}', in multiples of {}", acc, n);
  if (warpgroup && p.n > 256) return fmt::format("n, dimension 1 of '{}', of at most 256", acc);
  if (p.k % row.k) return fmt::format("k, dimension {} of '{}', in multiples of {}", p.transpose_a ? 0 : 1, a, row.k);
  return "";
}
}  // namespace
MatrixTilings matrix_tilings(const tile::Program& program, const tile::Mma& mma, int first, int threads,
                             const target::Capabilities& capabilities) {
  const tile::Tensor &acc = program.tensor(mma.acc), &a = program.tensor(mma.a.tensor), &b = program.tensor(mma.b.tensor);
  const std::int64_t k = tile::matrix_extent(mma.a.extent)[mma.transpose_a ? 0 : 1];
  const bool a_shared = a.scope == tile::Scope::shared, b_shared = b.scope == tile::Scope::shared;
  const auto place = [](bool shared) { return shared ? "shared memory" : "registers"; };
  const Problem problem{acc.shape[0], acc.shape[1], k, a.dtype, mma.transpose_a, mma.transpose_b};
  MatrixTilings out;
  std::set<std::string_view> types;
  for (const Instruction& row : target::instructions_of(capabilities.arch)) {
    if (row.m == 0) continue;
    types.insert(name_of(row.operand));
    if (row.operand != a.dtype) continue;
    std::string lacks;
    if (row.a_shared != a_shared || row.b_shared != b_shared)
      lacks = fmt::format("'{}' in {} and '{}' in {}", a.name, place(row.a_shared), b.name, place(row.b_shared));
    if (lacks.empty()) lacks = unreached(row, program, mma.a, mma.transpose_a ? 0 : 1);
    if (lacks.empty()) lacks = unreached(row, program, mma.b, mma.transpose_b ? 1 : 0);
    if (lacks.empty()) lacks = misfit(row, problem, first, threads, acc.name, a.name);
    const std::size_t before = out.found.size();
    if (lacks.empty() && acc.dtype == row.accumulator && acc.shape.size() == 2)
      (row.method == Method::warpgroup ? warpgroup_tilings
       : row.method == Method::warp    ? warp_tilings
                                       : simt_tilings)(row, problem, threads, out.found);
    if (out.found.size() > before) continue;
    if (lacks.empty())
      lacks =
          row.method == Method::warp
              ? fmt::format("m and n of '{}' to be shared by {} warps in pieces of {}x{}", acc.name, threads / 32, row.m, row.n)
              : fmt::format("m and n of '{}' to be shared evenly by {} threads, at most 128 elements each", acc.name, threads);
    out.lacks += fmt::format("{}{} wants {}", out.lacks.empty() ? "" : "; ", row.name, lacks);
  }
  if (out.found.empty() && out.lacks.empty())
    out.lacks = fmt::format("operands of a type that {} multiplies: {}", capabilities.arch, fmt::join(types, ", "));
  std::stable_sort(out.found.begin(), out.found.end(), [](const auto& x, const auto& y) { return x.cost < y.cost; });
  return out;
}
}  // namespace warploom::synth
