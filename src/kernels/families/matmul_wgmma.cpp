// Matmul for sm_90a by TMA and wgmma (pieces/wgmma_kernel.h).
//
// Where rows of the result are reduced behind the sums (softmax, norms), the CTAs of a cluster hold
// whole rows, beside each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/families/wgmma_family.h"
#include "kernels/family.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
using F = MatmulWgmmaConfig::Field;

class MatmulWgmma final : public WgmmaFamily {
 public:
  MatmulWgmma(const Contraction& contraction, const Precision& precision,
              const Capabilities& capabilities)
      : WgmmaFamily(MatmulWgmmaConfig::type(),
                    WgmmaProduct(contraction, false, precision, capabilities)) {}

  bool reduces_rows() const {
    const int64_t columns = std::min<int64_t>(256, 2 * product_.most_accumulators({}));
    return fuses_rows(product_.c, product_.precision, kMostRowCtas * columns, capabilities_);
  }

  Space space() const override {
    const bool reduces = !product_.c.reductions.empty();
    const bool transposes = product_.can_transpose(product_.c);
    const bool transposes_swapped = product_.can_transpose(product_.swapped);
    const bool swaps = !reduces && (skinny() || (transposes_swapped && !transposes));
    const Values splits = split_values();
    Space space{name(), {}};
    space.offer<Table>(F::block_m, {128, 256, 64});
    space.offer<Table>(F::block_n, reduces ? columns_of_rows() : columns());
    space.offer<Table>(F::block_k, depths());
    space.offer<Table>(F::stages, {4, 3, 2, 5, 6, 8});
    space.offer<Table>(F::num_math_warpgroups, {2, 1});
    space.offer<Table>(F::ctas_per_sm, {1, 2});
    space.offer<Table>(F::raster_group_m, {8, 16, 4, 1});
    space.offer<Table>(F::cluster_m, reduces ? Values{1} : Values{1, 2});
    space.offer<Table>(F::split_k, splits);
    const Values plain = choices(Scheduler::data_parallel);
    space.offer<Table>(F::scheduler, reduces ? plain : schedulers(splits));
    space.offer<Table>(F::swap_ab, swap_values(swaps));
    space.offer<Table>(F::epilogue, epilogues());
    if (transposes || transposes_swapped)
      space.offer<Table>(F::a_source, sources(swaps ? transposes_swapped : transposes));
    if (product_.promotes()) space.offer<Table>(F::promotion_interval, {1, 4, 8});
    if (product_.precision.is_fp16_split()) space.offer<Table>(F::fp32_emulation, emulations());
    return space;
  }

  SpecialValues special_values(const KernelConfig&) const override {
    const bool skips = product_.c.skips_zeros();
    return skips ? SpecialValues::finite : product_.precision.special_values();
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const WgmmaChoices s = choices_of(config);
    FailedConstraints failed = product_.constraints(s);
    Checks<Table> checks;
    check_rows(checks, s);
    check_source(checks, s);
    check_cluster(checks, s);
    std::ranges::move(std::move(checks).failed(), std::back_inserter(failed));
    return failed;
  }

 private:
  using Table = MatmulWgmmaConfig;

  WgmmaChoices choices_of(const KernelConfig& config) const override {
    return {config.as<MatmulWgmmaConfig>()};
  }

  Prepared prepared(Programs& out, const Contraction& sides, bool first, bool,
                    const WgmmaChoices& s) const override {
    const Access& from = sides.nest.loads[first ? sides.a : sides.b];
    if (first && s.transposes_a()) return {from, {}};
    const char* name = first ? "a" : "b";
    const size_t across = first ? sides.row : sides.column;
    const OperandPacking packing{out, name, product_.precision_of(s), capabilities_};
    return packing.pack_for_tma(from, across, *sides.channel);
  }

  // Where the first operand's elements come from: registers first where these can transpose it.
  static Values sources(bool transposes) {
    if (transposes) return choices(OperandSource::registers, OperandSource::smem);
    return choices(OperandSource::smem, OperandSource::registers);
  }

  Values emulations() const {
    if (enough_for_is_fp16_split()) return choices(Emulation::fp16x3, Emulation::tf32x3);
    return choices(Emulation::tf32x3, Emulation::fp16x3);
  }

  Values swap_values(bool first) const {
    if (!product_.c.reductions.empty()) return choices(false);
    return first ? choices(true, false) : choices(false, true);
  }

  // Few rows: weights on the matrix unit's 64-row side, rows on its narrow side.
  bool skinny() const {
    const int64_t m = product_.c.nest.axes[product_.c.row];
    return m < 128 && m < product_.c.nest.axes[product_.c.column];
  }

  Values columns() const {
    if (skinny()) return {16, 32, 64, 128, 8, 256};
    Values columns = {256, 128, 192, 64, 32, 160, 96};
    // And one whose tiles leave the fewest multiprocessors without work in the last wave. A tile is
    // some 24 columns' time besides its own.
    const Contraction& c = product_.c;
    const auto work = [&](int64_t width) {
      const int64_t down = ceil_div(c.nest.axes[c.row], 128);
      const int64_t across = ceil_div(c.nest.axes[c.column], width);
      const int64_t tiles = down * across * product_.outer_axes().second;
      return ceil_div(tiles, capabilities_.num_sms) * (width + 24);
    };
    int64_t best = product_.promotes() ? 192 : 256;
    for (int64_t width = best; width >= 96; width -= 16)
      best = work(width) < work(best) ? width : best;
    once(columns, best);
    return columns;
  }

  // Parts of a row that is reduced, one a CTA of a cluster.
  Values columns_of_rows() const {
    const int64_t n = product_.c.nest.axes[product_.c.column];
    Values columns;
    for (int64_t blocks = 1; blocks <= kMostRowCtas; ++blocks) {
      const int64_t width = round_up(ceil_div(n, blocks), 16);
      const bool wide_enough = width >= 64 || blocks == 1;
      if (width <= 256 && wide_enough) once(columns, width);
    }
    return columns;
  }

  Values depths() const {
    const int64_t bytes = bytes_of(product_.precision.operand);
    if (!product_.c.scales.empty()) return depths_of_scales();
    if (product_.precision.is_fp16_split()) return {64, 32};
    return bytes == 2 ? Values{64, 128} : Values{128 / bytes};
  }

  // Whether multiplying takes longer than measuring the operands' rows before, some 10 µs.
  bool enough_for_is_fp16_split() const {
    double flops = 2;
    for (const int64_t size : product_.c.nest.axes)
      flops *= as_double(size);
    return flops > 2e9;
  }

  // Where rows of the result are reduced.
  void check_rows(Checks<Table>& checks, const WgmmaChoices& s) const {
    const int64_t beside = product_.row_ctas(s);
    checks.require(beside <= kMostRowCtas, {F::block_n},
                   "whole rows in a cluster of at most 8 CTAs", beside);
    const bool reduces = !product_.c.reductions.empty();
    const bool plain = !s.swap_ab && s.scheduler == Scheduler::data_parallel && s.cluster_m == 1;
    checks.require(!reduces || plain, {F::swap_ab, F::scheduler, F::cluster_m},
                   "swap_ab=0 scheduler=data_parallel cluster_m=1 where rows are reduced", beside);
  }

  void check_source(Checks<Table>& checks, const WgmmaChoices& s) const {
    if (!s.transposes_a()) return;
    const bool along_rows = product_.can_transpose(product_.sides(s));
    checks.require(along_rows, {F::a_source, F::swap_ab},
                   "a_source=smem where the first operand does not lie along rows", s.swap_ab);
    const int64_t patch = s.block_m + kTransposePadding;
    checks.require(patch <= 256, {F::a_source, F::block_m}, "a patch of at most 256 elements",
                   patch);
  }

  void check_cluster(Checks<Table>& checks, const WgmmaChoices& s) const {
    if (s.cluster_m <= 1) return;
    const Contraction& c = product_.sides(s);
    const int64_t tiles = ceil_div(c.nest.axes[c.row], s.block_m);
    const bool fill_clusters = tiles >= s.cluster_m && c.m.size() <= 1;
    checks.require(fill_clusters, {F::cluster_m, F::block_m, F::swap_ab},
                   "cluster_m=1 where fewer tiles lie below each other", tiles);
    const bool equal_parts = s.block_n % (8 * s.cluster_m) == 0;
    checks.require(equal_parts, {F::cluster_m, F::block_n},
                   "cluster_m=1 where tiles are too narrow to share", s.block_n);
  }
};
}  // namespace

FamilyPtr matmul_wgmma_family(const Region& region, const Capabilities& capabilities) {
  const auto c = wgmma_contraction_of(region, capabilities);
  if (!c || wants_windows(*c)) return nullptr;
  const Access& a = c->nest.loads[c->a];
  const Access& b = c->nest.loads[c->b];
  const auto precision = precision_of(a.dtype, b.dtype, region.track, true);
  if (!precision || std::max(a.at.size(), b.at.size()) > 5 || !is_whole(a) || !is_whole(b))
    return nullptr;
  auto family = std::make_shared<MatmulWgmma>(*c, *precision, capabilities);
  return c->reductions.empty() || family->reduces_rows() ? family : nullptr;
}
}  // namespace warploom::kernels
