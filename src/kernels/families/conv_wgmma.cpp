// Convolution for sm_90a as a matmul, its operands in window order (window_order.h): rows are
// output channels, columns a patch of pixels, tile_p of them along the second axis; or the other
// way round.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>
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
#include "kernels/pieces/window_order.h"

namespace warploom::kernels {
namespace {
class ConvWgmma final : public WgmmaFamily {
 public:
  ConvWgmma(WindowOrder windows, const Precision& precision, const Capabilities& capabilities)
      : WgmmaFamily(ConvWgmmaConfig::type(),
                    WgmmaProduct(windows.contraction, true, precision, capabilities)),
        windows_(std::move(windows)) {}

  Space space() const override {
    const bool swaps = product_.c.nest.axes[product_.c.row] < 128;
    const Values splits = split_values();
    Space space{name(), {}};
    space.offer<Table>(Field::block_m, {128, 256, 64});
    space.offer<Table>(Field::block_n, columns());
    space.offer<Table>(Field::block_k, depths());
    space.offer<Table>(Field::stages, {4, 3, 2, 5, 6, 8});
    space.offer<Table>(Field::num_math_warpgroups, {2, 1});
    space.offer<Table>(Field::ctas_per_sm, {1, 2});
    space.offer<Table>(Field::raster_group_m, {8, 16, 4, 1});
    space.offer<Table>(Field::split_k, splits);
    space.offer<Table>(Field::scheduler, schedulers(splits));
    space.offer<Table>(Field::swap_ab, choices(swaps, !swaps));
    space.offer<Table>(Field::epilogue, epilogues());
    if (product_.promotes()) space.offer<Table>(Field::promotion_interval, {1, 4, 8});
    space.offer<Table>(Field::tile_p, pixel_rows());
    return space;
  }

  SpecialValues special_values(const KernelConfig&) const override { return SpecialValues::finite; }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const WgmmaChoices s = choices_of(config);
    FailedConstraints failed;
    for (const FailedConstraint& one : product_.constraints(s))
      failed.push_back(of_table(one));
    Checks<Table> checks;
    const int64_t pixels = s.swap_ab ? s.block_m : s.block_n;
    const int64_t along = pixels / std::max<int64_t>(s.tile_p, 1);
    const bool has_pixel_rows = s.tile_p == 1 || product_.second_pixels;
    checks.require(s.tile_p >= 1 && has_pixel_rows, {Field::tile_p},
                   "tile_p=1 where pixels are of one axis", s.tile_p);
    const bool whole_groups = along * s.tile_p == pixels && along % 8 == 0;
    checks.require(whole_groups, {Field::tile_p, Field::swap_ab, Field::block_m, Field::block_n},
                   "patches of whole groups of 8 pixels", along);
    std::ranges::move(std::move(checks).failed(), std::back_inserter(failed));
    return failed;
  }

 private:
  using Table = ConvWgmmaConfig;
  using Field = Table::Field;

  WgmmaChoices choices_of(const KernelConfig& config) const override {
    const auto& s = config.as<ConvWgmmaConfig>();
    MatmulWgmmaConfig matmul;
    matmul.block_m = s.block_m;
    matmul.block_n = s.block_n;
    matmul.block_k = s.block_k;
    matmul.stages = s.stages;
    matmul.num_math_warpgroups = s.num_math_warpgroups;
    matmul.ctas_per_sm = s.ctas_per_sm;
    matmul.raster_group_m = s.raster_group_m;
    matmul.split_k = s.split_k;
    matmul.scheduler = s.scheduler;
    matmul.swap_ab = s.swap_ab;
    matmul.epilogue = s.epilogue;
    matmul.promotion_interval = s.promotion_interval;
    const bool emulates = product_.precision.terms > 1;
    matmul.fp32_emulation = emulates ? Emulation::tf32x3 : Emulation::none;
    return {matmul, s.tile_p};
  }

  Prepared prepared(Programs& out, const Contraction&, bool, bool is_a,
                    const WgmmaChoices&) const override {
    const WindowOrder::Operand& operand = is_a ? windows_.a : windows_.b;
    return operand.lay({out, is_a ? "a" : "b", product_.precision, capabilities_});
  }

  // The kernel's constraint by this family's fields; of a tile tile_p says where it lies.
  static FailedConstraint of_table(const FailedConstraint& one) {
    FailedConstraint out = one;
    out.fields = {as_size(Field::tile_p)};
    for (const size_t field : one.fields) {
      const auto& name = MatmulWgmmaConfig::type().fields[field].name;
      if (const auto same = Table::type().find(name)) out.fields.push_back(*same);
    }
    return out;
  }

  Values columns() const {
    const int64_t m = product_.c.nest.axes[product_.c.row];
    Values columns = {128, 256, 64, 192, 96, 112, 224, 32};
    if (m % 8 == 0 && m <= 256) once(columns, m);
    return columns;
  }

  // Those that cover the run with the least beyond it.
  Values depths() const {
    if (!product_.c.scales.empty()) return depths_of_scales();
    const int64_t bytes = bytes_of(product_.precision.operand);
    const int64_t run = product_.c.nest.axes[*product_.c.channel];
    Values depths = {128 / bytes, 64 / bytes, 32 / bytes};
    if (run * bytes <= 512) once(depths, round_up(run, 32 / bytes));
    const auto beyond = [&](int64_t depth) {
      return round_up(run, depth) * 64 + ceil_div(run, depth);
    };
    std::ranges::stable_sort(depths, {}, beyond);
    depths.resize(std::min<size_t>(depths.size(), 3));
    return depths;
  }

  Values pixel_rows() const {
    const int64_t rows = product_.second_pixels ? product_.c.nest.axes[*product_.second_pixels] : 1;
    Values ys = {8, 16, 4, 1, 2, 32};
    std::erase_if(ys, [&](int64_t y) { return y > 1 && y >= 2 * rows; });
    for (const int64_t part : {1, 2, 4})
      if (rows % part == 0 && rows / part <= 32) once(ys, rows / part);
    return ys;
  }

  WindowOrder windows_;
};
}  // namespace

FamilyPtr conv_wgmma_family(const Region& region, const Capabilities& capabilities) {
  const auto c = wgmma_contraction_of(region, capabilities);
  if (!c || !wants_windows(*c) || !c->triangular_operands.empty() || !c->reductions.empty())
    return nullptr;
  auto windows = window_order_of(*c);
  const Dtype a = c->nest.loads[c->a].dtype;
  const Dtype b = c->nest.loads[c->b].dtype;
  const auto precision = precision_of(a, b, region.track, false);
  if (!windows || !precision) return nullptr;
  return std::make_shared<ConvWgmma>(*std::move(windows), *precision, capabilities);
}
}  // namespace warploom::kernels
