// Matmul for sm_90a by TMA and wgmma (pieces/wgmma_kernel.h).
//
// Where rows of the result are reduced behind the sums (softmax, norms), the CTAs of a cluster hold
// whole rows, beside each other.
#include "kernels/families/wgmma_family.h"

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
    const int64_t columns = std::min<int64_t>(256, 2 * product_.most_accumulators(false));
    return fuses_rows(product_.c, product_.precision, kMostRowCtas * columns, capabilities_);
  }

  Space space() const override {
    const bool reduces = !product_.c.reductions.empty();
    const bool swaps = !reduces && (skinny() || (product_.can_transpose(product_.swapped) &&
                                                 !product_.can_transpose(product_.c)));
    const Values splits = split_values();
    Space space{
        name(),
        {offered<Table>(F::block_m, {128, 256, 64}),
         offered<Table>(F::block_n, reduces ? columns_of_rows() : columns()),
         offered<Table>(F::block_k, depths()), offered<Table>(F::stages, {4, 3, 2, 5, 6, 8}),
         offered<Table>(F::num_math_warpgroups, {2, 1}), offered<Table>(F::ctas_per_sm, {1, 2}),
         offered<Table>(F::raster_group_m, {8, 16, 4, 1}),
         offered<Table>(F::cluster_m, reduces ? Values{1} : Values{1, 2}),
         offered<Table>(F::split_k, splits),
         offered<Table>(F::scheduler,
                        reduces ? choices(Scheduler::data_parallel) : schedulers(splits)),
         offered<Table>(F::swap_ab, swap_values(swaps)), offered<Table>(F::epilogue, epilogues())}};
    if (product_.can_transpose(product_.c) || product_.can_transpose(product_.swapped))
      space.fields.push_back(offered<Table>(
          F::a_source, product_.can_transpose(swaps ? product_.swapped : product_.c)
                           ? choices(OperandSource::registers, OperandSource::smem)
                           : choices(OperandSource::smem, OperandSource::registers)));
    if (product_.promotes())
      space.fields.push_back(offered<Table>(F::promotion_interval, {1, 4, 8}));
    if (product_.precision.is_fp16_split())
      space.fields.push_back(
          offered<Table>(F::fp32_emulation, enough_for_is_fp16_split()
                                                ? choices(Emulation::fp16x3, Emulation::tf32x3)
                                                : choices(Emulation::tf32x3, Emulation::fp16x3)));
    return space;
  }

  SpecialValues special_values(const KernelConfig&) const override {
    return product_.precision.special_values();
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
    return OperandPacking{out, first ? "a" : "b", product_.precision_of(s), capabilities_}
        .pack_for_tma(from, first ? sides.row : sides.column, *sides.channel);
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
    const auto work = [&](int64_t width) {
      const int64_t tiles = ceil_div(product_.c.nest.axes[product_.c.row], 128) *
                            ceil_div(product_.c.nest.axes[product_.c.column], width) *
                            product_.outer_axes().second;
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
    for (int64_t blocks = 1; blocks <= kMostRowCtas; ++blocks)
      if (const auto width = round_up(ceil_div(n, blocks), 16);
          width <= 256 && (width >= 64 || blocks == 1))
        once(columns, width);
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
    for (const int64_t size : product_.c.nest.axes) flops *= static_cast<double>(size);
    return flops > 2e9;
  }

  // Where rows of the result are reduced.
  void check_rows(Checks<Table>& checks, const WgmmaChoices& s) const {
    const int64_t beside = product_.row_ctas(s);
    checks.require(beside <= kMostRowCtas, {F::block_n},
                   "whole rows in a cluster of at most 8 CTAs", beside);
    const bool plain = !s.swap_ab && s.scheduler == Scheduler::data_parallel && s.cluster_m == 1;
    checks.require(product_.c.reductions.empty() || plain, {F::swap_ab, F::scheduler, F::cluster_m},
                   "swap_ab=0 scheduler=data_parallel cluster_m=1 where rows are reduced", beside);
  }

  void check_source(Checks<Table>& checks, const WgmmaChoices& s) const {
    if (!s.transposes_a()) return;
    checks.require(product_.can_transpose(product_.sides(s)), {F::a_source, F::swap_ab},
                   "a_source=smem where the first operand does not lie along rows", s.swap_ab);
    checks.require(s.block_m + kTransposePadding <= 256, {F::a_source, F::block_m},
                   "a patch of at most 256 elements", s.block_m + kTransposePadding);
  }

  void check_cluster(Checks<Table>& checks, const WgmmaChoices& s) const {
    if (s.cluster_m <= 1) return;
    const Contraction& c = product_.sides(s);
    const int64_t tiles = ceil_div(c.nest.axes[c.row], s.block_m);
    checks.require(tiles >= s.cluster_m && c.m.size() <= 1, {F::cluster_m, F::block_m, F::swap_ab},
                   "cluster_m=1 where fewer tiles lie below each other", tiles);
    checks.require(s.block_n % (8 * s.cluster_m) == 0, {F::cluster_m, F::block_n},
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
