// Which configs of `matmul_cpu` there are kernels for.
#include <algorithm>
#include <cstdint>
#include <utility>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/families/matmul_cpu.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "target/cpu_tiles.h"

namespace warploom::kernels::cpu_matmul {
namespace {
using F = MatmulCpuConfig::Field;
using Check = Checks<MatmulCpuConfig>;

class Constraints {
 public:
  explicit Constraints(const Problem& problem) : p_(problem) {}

  FailedConstraints failed(const MatmulCpuConfig& s) const {
    Check checks;
    const int64_t least = std::min({s.tile_m, s.tile_n, s.block_k, s.tasks_m, s.tasks_n});
    checks.require(least >= 1, {F::tile_m, F::tile_n, F::block_k, F::tasks_m, F::tasks_n},
                   "tiles, blocks and tasks of at least 1", least);
    if (least < 1) return std::move(checks).failed();
    check_tile(checks, s);
    check_sums(checks, s);
    if (s.instruction == CpuInstruction::fma)
      check_types(checks, s);
    else
      check_pairs(checks, s);
    check_packing(checks, s);
    check_tasks(checks, s);
    return std::move(checks).failed();
  }

 private:
  void check_tile(Check& checks, const MatmulCpuConfig& s) const {
    const int64_t vectors = p_.vectors_of(s.tile_n);
    const bool within = s.tile_m <= p_.rows && s.tile_n <= p_.columns;
    checks.require(within, {F::tile_m, F::tile_n}, "a tile within the result", s.tile_n);
    const bool fits = vectors <= kMostVectors && s.tile_m * vectors + vectors < p_.registers();
    if (s.instruction == CpuInstruction::tile) return check_tiles(checks, s);
    checks.require(fits || s.step_k > 0, {F::tile_m, F::tile_n, F::step_k, F::instruction},
                   "a tile that registers hold, or step_k above 0", s.tile_m * vectors);
    const bool is_wide = s.tile_m == p_.rows && !fits && s.tile_m * s.tile_n <= 8192;
    const bool is_exact = p_.saturates && fits && s.step_k >= kFewTerms;
    checks.require(s.step_k <= 0 || is_wide || is_exact,
                   {F::tile_m, F::tile_n, F::step_k, F::instruction},
                   "step_k=0, or all rows in a tile of at most 8192 elements that registers do not "
                   "hold, or of 32 on where the result saturates",
                   s.tile_m * s.tile_n);
  }

  // What vector registers hold is multiplied by them: the emitter goes by that.
  void check_tiles(Check& checks, const MatmulCpuConfig& s) const {
    const target::CpuTiles tiles(s.tile_m, s.tile_n);
    checks.require(tiles.fit(), {F::instruction, F::tile_m, F::tile_n},
                   "at most eight tiles of 16 rows: of sums, and of each operand, where "
                   "instruction=tile",
                   tiles.all());
    const int64_t vectors = p_.vectors_of(s.tile_n);
    checks.require(
        (s.tile_m + 1) * vectors >= p_.registers(), {F::instruction, F::tile_m, F::tile_n},
        "more sums than vector registers hold where instruction=tile", s.tile_m * vectors);
  }

  void check_sums(Check& checks, const MatmulCpuConfig& s) const {
    const int64_t one_by_one = s.step_k > 0 ? ceil_div(s.block_k, s.step_k) : s.block_k;
    const bool by_terms = s.instruction == CpuInstruction::fma;
    const int64_t longest = by_terms ? kLongestSum : kLongestSumOfPairs;
    checks.require(one_by_one <= longest && s.step_k <= longest,
                   {F::block_k, F::step_k, F::instruction},
                   "sums of at most 512 terms one after another, of pairs 4096", one_by_one);
    const int64_t step = terms_of_step(s.instruction);
    const int64_t depth = round_up(p_.depth, step);
    const int64_t blocks = ceil_div(depth, s.block_k);
    checks.require(blocks <= kMostBlocks, {F::block_k, F::instruction}, "at most 200 blocks of k",
                   blocks);
    const bool whole = round_up(ceil_div(depth, blocks), step) == s.block_k;
    checks.require(whole, {F::block_k, F::instruction},
                   "blocks of k of equal size, of whole pairs where instruction=dot, of 32 terms "
                   "where instruction=tile",
                   s.block_k);
  }

  void check_packing(Check& checks, const MatmulCpuConfig& s) const {
    const Access& b = p_.c.access_b();
    checks.require(s.pack_a != PackedBy::task, {F::pack_a}, "pack_a by nobody or a program", 1);
    const bool whole_vectors = s.tile_n % p_.lanes() == 0 || b.dtype == Dtype::f32;
    const bool in_place = b.stride(p_.c.column) == 1 && whole_vectors;
    checks.require(in_place || s.pack_b != PackedBy::nobody, {F::pack_b, F::tile_n},
                   "pack_b by a task or a program where columns are apart, or halves end within a "
                   "vector",
                   s.tile_n);
    const int64_t floats = p_.product(s).scratch_floats();
    checks.require_fits(
        4 * floats + 4096, p_.capabilities.shared_bytes,
        {F::tile_m, F::tile_n, F::block_k, F::tasks_m, F::tasks_n, F::instruction, F::pack_b});
  }

  void check_types(Check& checks, const MatmulCpuConfig& s) const {
    checks.require(!p_.zero_points, {F::instruction}, "instruction=dot for whole numbers", 0);
    const Dtype type_of_a = s.pack_a == PackedBy::nobody ? p_.c.access_a().dtype : Dtype::f32;
    const Dtype type_of_b = s.pack_b == PackedBy::nobody ? p_.c.access_b().dtype : Dtype::f32;
    checks.require(type_of_a == type_of_b, {F::instruction, F::pack_a, F::pack_b},
                   "both operands packed, or neither, where they are not fp32", 1);
  }

  // What dot products and tiles ask of operands.
  void check_pairs(Check& checks, const MatmulCpuConfig& s) const {
    const Access& a = p_.c.access_a();
    const bool by_tiles = s.instruction == CpuInstruction::tile;
    checks.require(by_tiles || p_.has_pairs || p_.zero_points, {F::instruction},
                   "instruction=fma, or operands of bf16 and a processor with AVX-512 BF16", 1);
    checks.require(!by_tiles || p_.has_tiles, {F::instruction},
                   "instruction=fma or dot, or operands of bf16 and a processor with AMX", 2);
    checks.require(s.pack_b == PackedBy::program, {F::instruction, F::pack_b},
                   "pack_b=program, which makes pairs of rows neighbours, but where "
                   "instruction=fma",
                   1);
    const int64_t step = terms_of_step(s.instruction);
    const bool in_place =
        a.dtype == Dtype::bf16 && a.stride(p_.c.k[0]) == 1 && p_.depth % step == 0;
    checks.require(in_place || s.pack_a == PackedBy::program, {F::instruction, F::pack_a},
                   "pack_a=program where rows of A are no bf16 in whole steps of the instruction",
                   0);
    checks.require(s.step_k <= 0, {F::instruction, F::step_k}, "step_k=0 but where instruction=fma",
                   s.step_k);
    checks.require(s.tile_n > 1, {F::instruction, F::tile_n},
                   "two columns at least but where instruction=fma", s.tile_n);
  }

  void check_tasks(Check& checks, const MatmulCpuConfig& s) const {
    checks.require(s.tasks_n == 1 || !p_.holds_rows(), {F::tasks_n},
                   "tasks_n=1 where rows of the result are reduced", s.tasks_n);
    const TileLine rows(p_.rows, s.tile_m, s.tasks_m);
    const TileLine columns(p_.columns, s.tile_n, s.tasks_n);
    checks.require(rows.tasks() == s.tasks_m, {F::tile_m, F::tasks_m},
                   "tasks along the rows that all have tiles", rows.tasks());
    checks.require(columns.tasks() == s.tasks_n, {F::tile_n, F::tasks_n},
                   "tasks along the columns that all have tiles", columns.tasks());
    const int64_t outer = outer_count(p_.c, p_.c.nest.outputs[0].place);
    const int64_t parts = s.tasks_m * s.tasks_n;
    const int64_t tasks = outer * parts;
    const int64_t cores = p_.capabilities.num_sms;
    const bool is_for_cache = p_.holds_rows() && s.tasks_m <= 2 * p_.tasks_in_cache();
    const bool few = parts == 1 || tasks <= 4 * cores || is_for_cache;
    const bool many = parts == 1 || 2 * tasks >= cores;
    checks.require(few && many, {F::tasks_m, F::tasks_n},
                   "one task, or half as many to four times as many as there are cores, or as many "
                   "as hold rows of the result in their caches",
                   tasks);
  }

  const Problem& p_;
};
}  // namespace

FailedConstraints constraints_of(const Problem& problem, const MatmulCpuConfig& config) {
  return Constraints(problem).failed(config);
}
}  // namespace warploom::kernels::cpu_matmul
