// Convolution for sm_90a from the input as it lies: patches in shared memory, their windows read as
// strided views of them (pieces/im2win_stage.h, im2win_kernel.h).
//
// The idea of window order is im2win's (Lu, Chu, Liu, 2023); here it is a view. Operands are tf32,
// or in the fp32 track pairs of fp16.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/pieces/im2win_kernel.h"
#include "kernels/pieces/im2win_stage.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/promotion.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kMostRows = 256;  // of a box of TMA, and their elements

class Im2win final : public Family {
 public:
  Im2win(Im2winProduct product, const Capabilities& capabilities)
      : Family(Im2winConfig::type(), capabilities, Specialization::fastest),
        product_(std::move(product)) {}

  Space space() const override {
    Space space{name(), {}};
    space.offer<Im2winConfig>(F::tile_q, pixels());
    space.offer<Im2winConfig>(F::tile_p, pixel_rows());
    space.offer<Im2winConfig>(F::block_n, columns());
    space.offer<Im2winConfig>(F::block_c, planes());
    space.offer<Im2winConfig>(F::filter_rows_per_stage, filter_rows());
    space.offer<Im2winConfig>(F::stages, {4, 3, 6, 5, 2});
    space.offer<Im2winConfig>(F::num_math_warpgroups, {2, 3, 1});
    space.offer<Im2winConfig>(F::epilogue, choices(Epilogue::smem, Epilogue::direct));
    space.offer<Im2winConfig>(F::cluster_m, {1, 2});
    space.offer<Im2winConfig>(F::weights_stationary, choices(true, false));
    space.offer<Im2winConfig>(F::staggered_consumers, choices(true, false));
    return space;
  }

  SpecialValues special_values(const KernelConfig&) const override { return SpecialValues::finite; }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<Im2winConfig>();
    const Im2winStage stage(product_, s);
    Checks<Im2winConfig> checks;
    check_tile(checks, s, stage);
    check_patch(checks, s, stage);
    check_sharing(checks, s, stage);
    checks.require_fits(shared_bytes(s, stage), capabilities_.shared_bytes,
                        {F::tile_q, F::tile_p, F::block_n, F::block_c, F::filter_rows_per_stage,
                         F::stages, F::num_math_warpgroups, F::epilogue, F::weights_stationary});
    return std::move(checks).failed();
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const auto& s = config.as<Im2winConfig>();
    const Im2winStage stage(product_, s);
    Programs out;
    const Prepared weights = stage.pack_weights(out, capabilities_);
    Im2winKernel(product_, stage, weights, s, capabilities_).add_to(out);
    return out;
  }

 private:
  using F = Im2winConfig::Field;

  // That a CTA takes: patches and weights of all stages, and results on their way out.
  int64_t shared_bytes(const Im2winConfig& s, const Im2winStage& stage) const {
    const Precision& precision = product_.precision;
    const int64_t patch_bytes = stage.planes * stage.rows * stage.width * 4;
    const int64_t patch = stage.tiles * round_up(patch_bytes, 128);
    const int64_t weight_sets = s.weights_stationary ? stage.count() : 1;
    const int64_t weight_bytes = s.block_n * stage.depth * bytes_of(precision.operand);
    const int64_t operands = precision.terms > 1 ? 2 : 1;
    const int64_t weights = round_up(weight_bytes * weight_sets, 1024) * operands;
    const int64_t pixels = stage.tile_q * stage.tile_p;
    const int64_t results = pixels * s.block_n * stage.tiles * 4;
    const int64_t staging = s.epilogue == Epilogue::smem ? results : 0;
    const int64_t weight_stages = s.weights_stationary ? 1 : s.stages;
    return patch * s.stages + weights * weight_stages + staging + 512;
  }

  // The widest that adds few pixels.
  Values pixels() const {
    const int64_t columns = product_.size(product_.c.row);
    Values out;
    for (const int64_t x : {64, 32, 16, 8})
      if (x == 8 || round_up(columns, x) * 4 <= columns * 5) out.push_back(x);
    return out;
  }

  Values pixel_rows() const {
    const int64_t rows = product_.second ? product_.size(product_.second) : 1;
    Values ys = {2, 4, 3, 6, 8, 12, 16, 1};
    std::erase_if(ys, [&](int64_t y) { return y > 1 && y >= 2 * rows; });
    return ys;
  }

  Values columns() const {
    const int64_t all = round_up(product_.size(product_.c.column), 8);
    Values wide;
    const int64_t most = std::min<int64_t>(all, 256);
    for (const int64_t n : {all, int64_t{128}, int64_t{64}, int64_t{32}})
      if (n <= most && std::ranges::count(wide, n) == 0) wide.push_back(n);
    return wide;
  }

  Values planes() const {
    const bool split = product_.precision.is_fp16_split();
    const int64_t channels = product_.size(product_.c.channel);
    const int64_t neighbours = split ? 16 : 8;  // channels of an instruction
    const int64_t least = neighbours * product_.size(product_.c.window);
    const bool too_deep = split && least > promotion::kDeepestPart;
    const bool by_few = too_deep || channels % neighbours != 0;
    Values deep;
    for (const int64_t each : {16, 32, 8, 1, 2, 4})
      if (channels % each == 0 && (each >= neighbours || by_few)) deep.push_back(each);
    return deep;
  }

  Values filter_rows() const {
    const int64_t down = product_.size(product_.filter_rows);
    Values taps = {down};
    for (int64_t parts = 2; parts <= down; ++parts)
      if (const auto part = ceil_div(down, parts); part < taps.back()) taps.push_back(part);
    for (int64_t part = round_up(down, 4); product_.precision.is_fp16_split() && part > 0;
         part -= 4)
      if (std::ranges::count(taps, part) == 0) taps.push_back(part);
    return taps;
  }

  void check_tile(Checks<Im2winConfig>& checks, const Im2winConfig& s,
                  const Im2winStage& stage) const {
    const int64_t m = stage.tile_q * stage.tile_p;
    const int64_t threads = 128 * s.num_math_warpgroups;
    const int64_t accumulators = m * s.block_n * stage.tiles / threads;
    const int64_t held = m * stage.depth * stage.tiles / threads;
    const bool split = product_.precision.terms > 1;
    const int64_t sets = split ? 2 : 1;
    const bool compensates = split && promotion::compensates(stage.count(), stage.depth);
    const int64_t needed =
        (accumulators + held) * sets + (split ? 0 : held) + (compensates ? accumulators : 0);
    const int64_t unit = 64 * s.num_math_warpgroups;  // pixels
    checks.require(m == 64 || m % unit == 0, {F::tile_q, F::tile_p, F::num_math_warpgroups},
                   "tile_q times tile_p 64, or a multiple of 64 pixels a math warpgroup", m);
    const bool has_pixel_rows = stage.tile_p <= 1 || product_.second.has_value();
    checks.require(has_pixel_rows, {F::tile_p}, "tile_p=1 where rows of pixels lie apart",
                   stage.tile_p);
    checks.require(stage.planes_first || m <= unit,
                   {F::tile_q, F::tile_p, F::num_math_warpgroups, F::block_c},
                   "64 pixels a math warpgroup where stages have few channels", m);
    const bool fits = needed <= im2win_registers(s.num_math_warpgroups) - 16;
    checks.require(fits,
                   {F::tile_q, F::tile_p, F::block_n, F::block_c, F::filter_rows_per_stage,
                    F::num_math_warpgroups},
                   "accumulators and windows that fit in a thread's registers",
                   accumulators + held);
  }

  void check_patch(Checks<Im2winConfig>& checks, const Im2winConfig& s,
                   const Im2winStage& stage) const {
    const Precision& precision = product_.precision;
    const bool divides = product_.size(product_.c.channel) % stage.planes == 0;
    checks.require(divides, {F::block_c}, "a block_c that divides the channels of the input",
                   stage.planes);
    const bool one_box = stage.width <= 256 && stage.planes * stage.rows <= kMostRows;
    checks.require(one_box, {F::tile_q, F::tile_p, F::block_c, F::filter_rows_per_stage},
                   "a patch of at most 256 rows of 256 elements", stage.width);
    const bool whole_steps = stage.planes_first || stage.taps % 4 == 0;
    checks.require(!precision.is_fp16_split() || whole_steps,
                   {F::block_c, F::filter_rows_per_stage},
                   "16 channels, or 4 rows of the filter, in a stage of fp16x3", stage.taps);
    checks.require(precision.terms == 1 || stage.depth <= promotion::kDeepestPart,
                   {F::block_c, F::filter_rows_per_stage},
                   "stages of at most 96 terms of split operands", stage.depth);
    const int64_t k_step = precision.terms > 1 ? 16 : 8;
    const bool whole_instructions = stage.depth % k_step == 0 && s.block_n % 8 == 0;
    checks.require(whole_instructions, {F::block_c, F::filter_rows_per_stage, F::block_n},
                   "stages of whole instructions of the sum, and 8 columns", stage.depth);
  }

  // What CTAs and math warpgroups share, and what each has of its own.
  void check_sharing(Checks<Im2winConfig>& checks, const Im2winConfig& s,
                     const Im2winStage& stage) const {
    const int64_t own = stage.tiles;
    const int64_t cluster = s.cluster_m;
    const int64_t channels = product_.size(product_.c.column);  // of the output
    checks.require(own * cluster <= 1 || s.block_n >= channels,
                   {F::tile_q, F::tile_p, F::num_math_warpgroups, F::cluster_m, F::block_n},
                   "tiles of all output channels where math warpgroups, or CTAs, have their own",
                   s.block_n);
    const bool may_share =
        cluster <= 1 || (!s.weights_stationary && s.block_n % (8 * cluster) == 0);
    checks.require(may_share, {F::cluster_m, F::weights_stationary, F::block_n},
                   "cluster_m=1 where weights are stationary, or are too few", cluster);
    const bool may_stagger =
        !s.staggered_consumers || (own > 1 && stage.count() >= own && s.weights_stationary);
    checks.require(may_stagger,
                   {F::staggered_consumers, F::weights_stationary, F::tile_q, F::tile_p,
                    F::num_math_warpgroups, F::block_c, F::filter_rows_per_stage},
                   "staggered_consumers=0 where math warpgroups share tiles, tiles have fewer "
                   "stages, or weights come with these",
                   own);
    checks.require(!s.weights_stationary || s.block_n == channels,
                   {F::weights_stationary, F::block_n},
                   "weights_stationary=0, or a tile of all output channels", s.block_n);
  }

  Im2winProduct product_;
};
}  // namespace

FamilyPtr im2win_family(const Region& region, const Capabilities& capabilities) {
  if (!capabilities.has_wgmma || !capabilities.has_tma) return nullptr;
  const auto c = contraction_of(region.nests());
  if (!c || !c->channel || !c->window || c->k.size() > 3 || c->m.size() > 1 || !c->batch.empty())
    return nullptr;
  const Access& input = c->nest.loads[c->b];
  const Access& weights = c->nest.loads[c->a];
  const auto precision = precision_of(weights.dtype, input.dtype, region.track, true);
  if (!precision || weights.dtype != Dtype::f32 || !stores_whole(*c)) return nullptr;
  Im2winProduct product(*c, *precision);
  if (!product.reads_patches()) return nullptr;
  return std::make_shared<Im2win>(std::move(product), capabilities);
}
}  // namespace warploom::kernels
