// The constraints of the wgmma kernel, each with the fields that it reads.
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/pieces/promotion.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
using F = MatmulWgmmaConfig::Field;
}

FailedConstraints WgmmaProduct::constraints(const WgmmaChoices& s) const {
  Kernel checks;
  check_tile(checks, s);
  check_loop(checks, s);
  check_epilogue(checks, s);
  check_scheduler(checks, s);
  check_memory(checks, s);
  return std::move(checks).failed();
}

void WgmmaProduct::check_tile(Kernel& checks, const WgmmaChoices& s) const {
  const Contraction& of = sides(s);
  const Access& b = of.nest.loads[of.b];
  const int64_t n = s.block_n;
  const int64_t accumulators = s.block_m * n / (128 * s.num_math_warpgroups);
  const int bytes = bytes_of(precision_of(s).operand);
  const bool n_contiguous = b.stride(of.column) == 1 || b.stride(*of.channel) != 1;
  const bool along_n = !windows && n_contiguous;
  const bool whole_atoms = s.block_m % (64 * s.num_math_warpgroups) == 0;
  checks.require(whole_atoms, {F::block_m, F::num_math_warpgroups},
                 "block_m a multiple of 64 rows a math warpgroup", s.block_m);
  const bool fit_registers = accumulators <= most_accumulators(s);
  checks.require(
      fit_registers,
      {F::block_m, F::block_n, F::block_k, F::num_math_warpgroups, F::promotion_interval,
       F::a_source, F::split_k},
      "at most 128 accumulators a thread, 96 with a second set, 64 with a third, 48 with a fourth",
      accumulators);
  checks.require(n % 8 == 0 && n <= 256, {F::block_n}, "8 to 256 columns, a multiple of 8", n);
  const bool for_integers = n % 16 == 0 || n <= 24;
  checks.require(precision.operand != Dtype::i8 || for_integers, {F::block_n},
                 "block_n a multiple of 16 for integers", n);
  const bool whole_rows = !along_n || bytes != 2 || n % 16 == 0;
  checks.require(whole_rows, {F::block_n, F::swap_ab, F::fp32_emulation},
                 "block_n of whole 32-byte panels", n);
  const bool alone = s.num_math_warpgroups <= 1 && s.cluster_m * row_ctas(s) <= 1;
  checks.require(s.ctas_per_sm <= 1 || alone,
                 {F::ctas_per_sm, F::num_math_warpgroups, F::cluster_m, F::block_n},
                 "ctas_per_sm=1 with two math warpgroups or a cluster", s.ctas_per_sm);
}

void WgmmaProduct::check_loop(Kernel& checks, const WgmmaChoices& s) const {
  const int64_t steps = stages_of(s.block_k);
  const int64_t interval = s.promotion_interval;
  const Precision used = precision_of(s);
  const bool whole_rounds = steps >= interval && (!windows || steps % interval == 0);
  checks.require(whole_rounds, {F::block_k, F::promotion_interval},
                 "promotion_interval=1 where k has fewer stages, or windows no whole runs",
                 interval);
  const bool one_atom = s.block_k * bytes_of(used.operand) <= 128;
  checks.require(used.operand != Dtype::tf32 || one_atom, {F::block_k, F::fp32_emulation},
                 "block_k of at most 128 bytes of tf32", s.block_k);
  checks.require(used.terms == 1 || s.block_k <= promotion::kDeepestPart, {F::block_k},
                 "stages of at most 96 terms of split operands", s.block_k);
  const bool emulates = s.fp32_emulation != Emulation::none;
  checks.require((precision.terms > 1) == emulates, {F::fp32_emulation},
                 "fp32_emulation=tf32x3 or fp16x3 for fp32 products, none for others",
                 precision.terms);
}

void WgmmaProduct::check_epilogue(Kernel& checks, const WgmmaChoices& s) const {
  if (s.epilogue != Epilogue::smem) return;
  const Contraction& of = sides(s);
  const bool whole_sectors = s.block_n * stored_bytes(s) % 32 == 0;
  const bool has_columns = of.nest.outputs[0].place.uses(of.column);
  checks.require(whole_sectors && has_columns, {F::epilogue, F::block_n, F::split_k, F::swap_ab},
                 "epilogue=direct for narrow tiles", s.block_n);
  const bool power_of_two = !s.swap_ab && std::has_single_bit(at(s.block_n));
  checks.require(!windows || power_of_two, {F::epilogue, F::block_n, F::swap_ab},
                 "epilogue=direct where columns are no power of two", s.block_n);
}

void WgmmaProduct::check_scheduler(Kernel& checks, const WgmmaChoices& s) const {
  const int64_t split = s.split_k;
  const int64_t steps = stages_of(s.block_k);
  const int64_t turns = s.stages_per_round();
  const bool splits = s.scheduler == Scheduler::split_k;
  checks.require((split > 1) == splits, {F::split_k, F::scheduler},
                 "split_k=1, or scheduler=split_k and parts of at least 2", split);
  const auto leaves_some = [&] {
    const int64_t part = round_up(ceil_div(steps, split), turns);
    return (split - 1) * part < steps;
  };
  checks.require(split <= 1 || leaves_some(),
                 {F::split_k, F::block_k, F::promotion_interval, F::a_source},
                 "a split_k that leaves every part some of k", split);
  if (s.scheduler != Scheduler::stream_k) return;
  const int64_t count = TileScheduler{sides(s), tile_of(sides(s), s), 1}.count();
  const bool one_cta = s.cluster_m <= 1 && s.ctas_per_sm <= 1;
  checks.require(one_cta, {F::scheduler, F::cluster_m, F::ctas_per_sm},
                 "cluster_m=1 ctas_per_sm=1 with scheduler=stream_k", s.cluster_m);
  checks.require(c.domain_constraints.empty(), {F::scheduler},
                 "another scheduler than stream_k where a triangle bounds the sum", 1);
  const bool part_wave = count >= capabilities.num_sms && count % capabilities.num_sms != 0;
  checks.require(part_wave, {F::scheduler, F::block_m, F::block_n, F::swap_ab},
                 "another scheduler than stream_k where tiles fill every wave, or not even the "
                 "first",
                 count);
}

void WgmmaProduct::check_memory(Kernel& checks, const WgmmaChoices& s) const {
  const Precision used = precision_of(s);
  const auto whole = [&](int64_t rows) {  // swizzle atoms repeat every 1024 bytes
    return round_up(rows * s.block_k * bytes_of(used.operand), 1024);
  };
  const int64_t padding = s.transposes_a() ? kTransposePadding : 0;
  const int64_t operands = whole(s.block_m + padding) + whole(s.block_n);
  const int64_t stage = operands * (used.terms > 1 ? 2 : 1);
  int64_t staging = 0;
  if (s.epilogue == Epilogue::smem) staging = s.block_m * s.block_n * stored_bytes(s);
  const int64_t beside = row_ctas(s);
  int64_t sent = 0;  // by the CTAs of a cluster to each other
  if (beside > 1) sent = std::ssize(c.reductions) * 8 * beside * s.block_m;
  const int64_t bytes = stage * s.stages + staging + sent + 1024;
  checks.require_fits(s.ctas_per_sm * bytes, capabilities.shared_bytes,
                      {F::block_m, F::block_n, F::block_k, F::stages, F::ctas_per_sm, F::split_k,
                       F::epilogue, F::a_source, F::fp32_emulation});
}

// Bytes of an element as the kernel stores it: parts of k are sums.
int64_t WgmmaProduct::stored_bytes(const WgmmaChoices& s) const {
  return s.split_k > 1 ? 4 : bytes_of(c.nest.outputs[0].place.dtype);
}
}  // namespace warploom::kernels
