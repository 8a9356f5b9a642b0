// Products on a CPU (pieces/cpu_product.h): matmuls, batched and transposed ones, with what is
// computed element by element behind the sum; of bf16 by dot products where the processor has them,
// of whole numbers of 8 bits always. Loops (`direct`) cover what this does not: windows, triangles,
// sums over several axes, and other integers.
#include "kernels/families/matmul_cpu.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/whole_product.h"

namespace warploom::kernels {
namespace {
using F = MatmulCpuConfig::Field;
using Check = Checks<MatmulCpuConfig>;
using cpu_matmul::cycles_a_step, cpu_matmul::guessed_cycles, cpu_matmul::outer_count;
using cpu_matmul::kMostVectors;
using loopnest::ZeroPoints;

// Fused multiply-adds, or additions of their sums, one after another (promotion.h).
constexpr int64_t kLongestSum = 512;
constexpr int64_t kMostBlocks = 200;
constexpr int64_t kFewTerms = 32;  // of a sum that is to lose little

Values without_repeats(const Values& values) {
  Values out;
  for (const int64_t value : values)
    if (std::ranges::find(out, value) == out.end()) out.push_back(value);
  return out;
}

// Whether operands are bf16, or count as bf16 by the track.
bool multiplies_bf16(const Contraction& c, Track track) {
  const auto counts = [&](Dtype dtype) {
    return dtype == Dtype::bf16 || (dtype == Dtype::f32 && track == Track::bf16);
  };
  return counts(c.access_a().dtype) && counts(c.access_b().dtype);
}

cpu_matmul::Constants constants_of(const Contraction& c, const graph::Graph& graph) {
  const auto is_constant = [&](const Access& access) {
    const bool is_known = access.tensor >= 0 && access.tensor < std::ssize(graph.tensors);
    return is_known && graph.tensor(access.tensor).constant;
  };
  return {.a = is_constant(c.access_a()), .b = is_constant(c.access_b())};
}

// Parts that an axis may be cut into for tasks.
Values shares_of(int64_t size, int64_t cores) {
  Values out = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, cores};
  std::erase_if(out, [&](int64_t share) { return share > std::min(size, 4 * cores); });
  return without_repeats(out);
}

class MatmulCpu final : public Family {
 public:
  MatmulCpu(Contraction contraction, std::optional<ZeroPoints> zero_points, const Region& region,
            const Capabilities& capabilities)
      : Family(MatmulCpuConfig::type(), capabilities, Specialization::made),
        c_(std::move(contraction)),
        zero_points_(std::move(zero_points)),
        has_pairs_(capabilities.has_bf16_dot && multiplies_bf16(c_, region.track)),
        saturates_(!zero_points_ && c_.reductions.empty() && saturates(c_)),
        constants_(constants_of(c_, region.graph)),
        rows_(c_.nest.axes[c_.row]),
        columns_(c_.nest.axes[c_.column]),
        depth_(c_.nest.axes[c_.k[0]]) {}

  Space space() const override {
    Space space{name(), {}};
    space.offer<MatmulCpuConfig>(F::tile_m, tile_rows());
    space.offer<MatmulCpuConfig>(F::tile_n, tile_columns());
    space.offer<MatmulCpuConfig>(F::block_k, depths());
    space.offer<MatmulCpuConfig>(F::step_k, steps());
    space.offer<MatmulCpuConfig>(F::tasks_m, holds_rows() ? shares_in_cache() : shares(rows_));
    space.offer<MatmulCpuConfig>(F::tasks_n, holds_rows() ? Values{1} : shares(columns_));
    space.offer<MatmulCpuConfig>(F::instruction, instructions());
    space.offer<MatmulCpuConfig>(F::pack_a, choices(PackedBy::nobody, PackedBy::program));
    space.offer<MatmulCpuConfig>(F::pack_b,
                                 choices(PackedBy::nobody, PackedBy::task, PackedBy::program));
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<MatmulCpuConfig>();
    Check checks;
    const int64_t least = std::min({s.tile_m, s.tile_n, s.block_k, s.tasks_m, s.tasks_n});
    checks.require(least >= 1, {F::tile_m, F::tile_n, F::block_k, F::tasks_m, F::tasks_n},
                   "tiles, blocks and tasks of at least 1", least);
    if (least < 1) return std::move(checks).failed();
    check_tile(checks, s);
    check_sums(checks, s);
    if (s.instruction == CpuInstruction::dot)
      check_pairs(checks, s);
    else
      check_types(checks, s);
    check_packing(checks, s);
    check_tasks(checks, s);
    return std::move(checks).failed();
  }

  // Cycles of the busiest core.
  double guess(const KernelConfig& config) const override {
    const auto& s = config.as<MatmulCpuConfig>();
    const double cycles = guessed_cycles(c_, s, capabilities_, constants_);
    constexpr double kInexact = 2;  // such a config is seldom right
    return saturates_ && s.step_k <= 0 && depth_ > kFewTerms ? kInexact * cycles : cycles;
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    Programs out;
    product(config.as<MatmulCpuConfig>()).add_to(out);
    return out;
  }

 private:
  bool holds_rows() const { return !c_.reductions.empty(); }

  CpuProduct product(const MatmulCpuConfig& s) const {
    return {c_, s, lanes(), zero_points_ ? &*zero_points_ : nullptr};
  }

  // Of whole numbers there are no multiply-adds.
  Values instructions() const {
    if (zero_points_) return choices(CpuInstruction::dot);
    if (!has_pairs_) return choices(CpuInstruction::fma);
    return choices(CpuInstruction::dot, CpuInstruction::fma);
  }

  int64_t lanes() const { return capabilities_.lanes(); }

  int64_t registers() const { return std::max(capabilities_.registers, 16); }

  int64_t vectors_of(int64_t columns) const { return ceil_div(columns, lanes()); }

  // So few rows that memory bounds the product: whole rows of B go by.
  bool is_flat() const { return rows_ <= 8; }

  // For each width the rows of the tile that take the fewest cycles, the last tile included; then
  // those that come second.
  Values tile_rows() const {
    Values first;
    Values second;
    for (const int64_t vectors : {4, 3, 2, 6, 1}) {
      std::vector<std::pair<double, int64_t>> rows;
      for (int64_t r = std::min(rows_, (registers() - 1 - vectors) / vectors); r >= 1; --r)
        rows.emplace_back(as_double(ceil_div(rows_, r)) * cycles_a_step(r, vectors), r);
      std::ranges::stable_sort(rows, {}, &std::pair<double, int64_t>::first);
      if (!rows.empty()) first.push_back(rows[0].second);
      if (rows.size() > 1 && vectors > 1) second.push_back(rows[1].second);
    }
    if (is_flat()) first.push_back(rows_);
    first.insert(first.end(), second.begin(), second.end());
    return without_repeats(first);
  }

  Values tile_columns() const {
    Values out;
    if (columns_ <= kMostVectors * lanes()) out.push_back(columns_);
    for (const int64_t vectors : {4, 3, 2})
      if (vectors * lanes() < columns_) out.push_back(vectors * lanes());
    if (!is_flat()) return out.empty() ? Values{columns_} : out;
    for (const int64_t wide : {512, 1024, 2048, 256})
      if (wide <= columns_) out.push_back(wide);
    return out;
  }

  // Blocks of equal size, near the wanted ones.
  Values depths() const {
    Values out;
    const auto offer = [&](int64_t wanted) {
      const int64_t near = ceil_div(depth_, ceil_div(depth_, wanted));
      out.push_back(near);
      if (has_pairs_ || zero_points_) out.push_back(round_up(near, 2));
    };
    for (const int64_t wanted : {256, 512, 384, 128})
      offer(wanted);
    if (is_flat()) offer(kLongestSum * 8);
    return without_repeats(out);
  }

  // Where rows of B go by, few terms; where the result saturates, so few that what the sum of
  // some terms loses is small (promotion.h), for all that counts there is sums near 0.
  Values steps() const {
    if (is_flat()) return {0, 8, 16};
    if (!saturates_ || depth_ <= kFewTerms) return {0};
    return {kFewTerms, 0};
  }

  Values shares(int64_t size) const { return shares_of(size, capabilities_.num_sms); }

  // Tasks along the rows of one product, of which each holds its rows in half of its cache.
  int64_t tasks_in_cache() const {
    const int64_t bytes = 4 * rows_ * round_up(columns_, lanes());
    return std::min(rows_, ceil_div(2 * bytes, capabilities_.shared_bytes));
  }

  Values shares_in_cache() const {
    Values out = shares(rows_);
    for (const int64_t tasks : {tasks_in_cache(), 2 * tasks_in_cache()})
      if (tasks <= rows_) out.push_back(tasks);
    return without_repeats(out);
  }

  void check_tile(Check& checks, const MatmulCpuConfig& s) const {
    const int64_t vectors = vectors_of(s.tile_n);
    const bool within = s.tile_m <= rows_ && s.tile_n <= columns_;
    checks.require(within, {F::tile_m, F::tile_n}, "a tile within the result", s.tile_n);
    const bool fits = vectors <= kMostVectors && s.tile_m * vectors + vectors < registers();
    checks.require(fits || s.step_k > 0, {F::tile_m, F::tile_n, F::step_k},
                   "a tile that registers hold, or step_k above 0", s.tile_m * vectors);
    const bool is_wide = s.tile_m == rows_ && !fits && s.tile_m * s.tile_n <= 8192;
    const bool is_exact = saturates_ && fits && s.step_k >= kFewTerms;
    checks.require(s.step_k <= 0 || is_wide || is_exact, {F::tile_m, F::tile_n, F::step_k},
                   "step_k=0, or all rows in a tile of at most 8192 elements that registers do not "
                   "hold, or of 32 on where the result saturates",
                   s.tile_m * s.tile_n);
  }

  void check_sums(Check& checks, const MatmulCpuConfig& s) const {
    const int64_t one_by_one = s.step_k > 0 ? ceil_div(s.block_k, s.step_k) : s.block_k;
    checks.require(one_by_one <= kLongestSum && s.step_k <= kLongestSum, {F::block_k, F::step_k},
                   "sums of at most 512 terms one after another", one_by_one);
    const int64_t pair = s.instruction == CpuInstruction::dot ? 2 : 1;
    const int64_t depth = round_up(depth_, pair);
    const int64_t blocks = ceil_div(depth, s.block_k);
    checks.require(blocks <= kMostBlocks, {F::block_k, F::instruction}, "at most 200 blocks of k",
                   blocks);
    const bool whole = round_up(ceil_div(depth, blocks), pair) == s.block_k;
    checks.require(whole, {F::block_k, F::instruction},
                   "blocks of k of equal size, of whole pairs where instruction=dot", s.block_k);
  }

  void check_packing(Check& checks, const MatmulCpuConfig& s) const {
    const Access& b = c_.access_b();
    checks.require(s.pack_a != PackedBy::task, {F::pack_a}, "pack_a by nobody or a program", 1);
    const bool whole_vectors = s.tile_n % lanes() == 0 || b.dtype == Dtype::f32;
    const bool in_place = b.stride(c_.column) == 1 && whole_vectors;
    checks.require(in_place || s.pack_b != PackedBy::nobody, {F::pack_b, F::tile_n},
                   "pack_b by a task or a program where columns are apart, or halves end within a "
                   "vector",
                   s.tile_n);
    const int64_t floats = product(s).scratch_floats();
    checks.require_fits(
        4 * floats + 4096, capabilities_.shared_bytes,
        {F::tile_m, F::tile_n, F::block_k, F::tasks_m, F::tasks_n, F::instruction, F::pack_b});
  }

  void check_types(Check& checks, const MatmulCpuConfig& s) const {
    checks.require(!zero_points_, {F::instruction}, "instruction=dot for whole numbers", 0);
    const Dtype type_of_a = s.pack_a == PackedBy::nobody ? c_.access_a().dtype : Dtype::f32;
    const Dtype type_of_b = s.pack_b == PackedBy::nobody ? c_.access_b().dtype : Dtype::f32;
    checks.require(type_of_a == type_of_b, {F::instruction, F::pack_a, F::pack_b},
                   "both operands packed, or neither, where they are not fp32", 1);
  }

  // What dot products ask of operands.
  void check_pairs(Check& checks, const MatmulCpuConfig& s) const {
    const Access& a = c_.access_a();
    checks.require(has_pairs_ || zero_points_, {F::instruction},
                   "instruction=fma, or operands of bf16 and a processor with AVX-512 BF16", 1);
    checks.require(s.pack_b == PackedBy::program, {F::instruction, F::pack_b},
                   "pack_b=program, which makes pairs of rows neighbours, where instruction=dot",
                   1);
    const bool in_place = a.dtype == Dtype::bf16 && a.stride(c_.k[0]) == 1 && depth_ % 2 == 0;
    checks.require(in_place || s.pack_a == PackedBy::program, {F::instruction, F::pack_a},
                   "pack_a=program where instruction=dot and rows of A are no pairs of bf16", 0);
    checks.require(s.step_k <= 0, {F::instruction, F::step_k}, "step_k=0 where instruction=dot",
                   s.step_k);
    checks.require(s.tile_n > 1, {F::instruction, F::tile_n},
                   "two columns at least where instruction=dot", s.tile_n);
  }

  void check_tasks(Check& checks, const MatmulCpuConfig& s) const {
    checks.require(s.tasks_n == 1 || !holds_rows(), {F::tasks_n},
                   "tasks_n=1 where rows of the result are reduced", s.tasks_n);
    const TileLine rows(rows_, s.tile_m, s.tasks_m);
    const TileLine columns(columns_, s.tile_n, s.tasks_n);
    checks.require(rows.tasks() == s.tasks_m, {F::tile_m, F::tasks_m},
                   "tasks along the rows that all have tiles", rows.tasks());
    checks.require(columns.tasks() == s.tasks_n, {F::tile_n, F::tasks_n},
                   "tasks along the columns that all have tiles", columns.tasks());
    const int64_t outer = outer_count(c_, c_.nest.outputs[0].place);
    const int64_t parts = s.tasks_m * s.tasks_n;
    const int64_t tasks = outer * parts;
    const int64_t cores = capabilities_.num_sms;
    const bool is_for_cache = holds_rows() && s.tasks_m <= 2 * tasks_in_cache();
    const bool few = parts == 1 || tasks <= 4 * cores || is_for_cache;
    const bool many = parts == 1 || 2 * tasks >= cores;
    checks.require(few && many, {F::tasks_m, F::tasks_n},
                   "one task, or half as many to four times as many as there are cores, or as many "
                   "as hold rows of the result in their caches",
                   tasks);
  }

  Contraction c_;
  std::optional<ZeroPoints> zero_points_;  // of whole numbers
  bool has_pairs_;                         // dot products of two bf16 at once
  bool saturates_;                         // the result, however large the sum is
  cpu_matmul::Constants constants_;
  int64_t rows_;
  int64_t columns_;
  int64_t depth_;
};

// Whether boxes of an access along two axes are matrices: each dimension follows one of them at
// most, forwards and within the tensor.
bool has_boxes(const Access& access, size_t first, size_t second) {
  if (!access.in_bounds || access.is_gathered()) return false;
  return std::ranges::all_of(access.at, [&](const Affine& dim) {
    const bool both = dim.steps[first] != 0 && dim.steps[second] != 0;
    return !both && std::ranges::min(dim.steps) >= 0;
  });
}

bool is_covered(const Contraction& c, bool of_whole_numbers) {
  if (c.k.size() != 1 || c.skips_zeros() || !c.domain_constraints.empty()) return false;
  const Access& a = c.access_a();
  const Access& b = c.access_b();
  const bool floats = a.dtype == b.dtype && is_computed_float(a.dtype);
  if (!floats && !of_whole_numbers) return false;
  if (!has_boxes(a, c.row, c.k[0]) || !has_boxes(b, c.k[0], c.column)) return false;
  const auto operands = epilogue_of(c);
  const auto is_in_boxes = [&](const Access& access) {
    const Dtype dtype = access.dtype;
    const bool computes = is_computed_float(dtype) || (of_whole_numbers && is_computed(dtype));
    return computes && has_boxes(access, c.row, c.column);
  };
  if (!operands || !std::ranges::all_of(c.nest.outputs, is_in_boxes, &LoopNest::Output::place))
    return false;
  const auto fits = [&](int operand) { return is_in_boxes(c.nest.loads[as_size(operand)]); };
  const auto is_index = [](const Expr& value) { return value.kind == Kind::index; };
  const bool one_axis_each = c.m.size() == 1 && c.n.size() == 1;
  if (!one_axis_each && std::ranges::any_of(c.nest.values, is_index)) return false;
  return std::ranges::all_of(*operands, fits);
}
}  // namespace

// What reduces rows of the result is computed behind the product where every core has rows of its
// own, and a cache holds some.
FamilyPtr matmul_cpu_family(const Region& region, const Capabilities& capabilities) {
  constexpr int64_t kLongestRow = 4096;
  if (capabilities.gpu || region.track == Track::fp8) return nullptr;
  auto c = contraction_of(region.nests(), true, Results::several);
  std::optional<ZeroPoints> zero_points;
  if (auto whole = loopnest::whole_product_of(region.nests())) {
    c = std::move(whole->contraction);
    zero_points = std::move(whole->zero_points);
  }
  if (!c || !c->scales.empty() || !is_covered(*c, zero_points.has_value())) return nullptr;
  const auto& axes = c->nest.axes;
  if (axes[c->k[0]] > kLongestSum * kMostBlocks) return nullptr;
  const bool few_rows = axes[c->row] < 16 * int64_t{capabilities.num_sms};
  if (!c->reductions.empty() && (few_rows || axes[c->column] > kLongestRow)) return nullptr;
  return std::make_shared<MatmulCpu>(*std::move(c), std::move(zero_points), region, capabilities);
}
}  // namespace warploom::kernels
