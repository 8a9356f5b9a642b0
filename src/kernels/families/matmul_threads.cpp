// The families matmul_mma and matmul_simt: sums of products for any GPU since sm_80, matmuls and
// convolutions alike (pieces/threads_kernel.h), with mma.sync or with fused multiply-adds. With
// pack_weights=1 a program of its own first lays a convolution's weights so that the channels of
// one place of the filter are neighbours.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/promotion.h"
#include "kernels/pieces/threads_kernel.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/pool.h"

namespace warploom::kernels {
namespace {
// With mma.sync, or with fused multiply-adds.
template <Config Table> class MatmulThreads final : public Family {
 public:
  static constexpr bool kTensorCores = std::same_as<Table, MatmulMmaConfig>;
  using F = Table::Field;

  MatmulThreads(Contraction contraction, std::optional<PooledContraction> pooled,
                const Precision& precision, const Capabilities& capabilities)
      : Family(Table::type(), capabilities, Specialization::made),
        c_(std::move(contraction)),
        pooled_(std::move(pooled)),
        p_(precision) {}

  static FamilyPtr bind(const Region& region, const Capabilities& capabilities) {
    if (!capabilities.gpu) return nullptr;
    auto c = contraction_of(region.nests(), kTensorCores, Results::several);
    std::optional<PooledContraction> pooled;
    if (!c && region.nests().size() == 1) {
      pooled = pooled_contraction_of(region.nests()[0], kMostPlaces);
      if (pooled) c = pooled->c;
    }
    if (!c || (!pooled && !epilogue_of(*c)) || !computes(*c)) return nullptr;
    const auto p = precision_for(*c, region.track);
    if (!p) return nullptr;
    const bool reduces = !c->reductions.empty();
    if (reduces && !fuses_rows(*c, *p, 256, capabilities)) return nullptr;
    const bool fp8 = is_float(p->operand) && bits_of(p->operand) == 8;
    if (fp8 && capabilities.fp8_tflops == 0) return nullptr;
    return std::make_shared<MatmulThreads>(*std::move(c), std::move(pooled), *p, capabilities);
  }

  Space space() const override {
    const bool plain = c_.channel && (c_.k.size() == 1 || in_blocks_) && !second_;  // a matmul
    const bool hides_more = plain && kTensorCores;
    Space space{Family::name(), {}};
    space.offer<Table>(F::block_m, rows(plain));
    space.offer<Table>(F::block_n, columns(plain));
    space.offer<Table>(F::block_k, depths(plain));
    space.offer<Table>(F::stages, hides_more ? Values{3, 4, 2} : Values{3, 2, 4});
    space.offer<Table>(F::warps, {8, 4});
    space.offer<Table>(F::raster_group_m, plain ? Values{8, 1} : Values{8});
    space.offer<Table>(F::layout_candidate, {0, 1, 2});
    if (plain) return space;
    space.offer<Table>(F::tile_p, pixel_rows());
    space.offer<Table>(F::filter_taps_per_stage, taps());
    space.offer<Table>(F::pack_weights, c_.channel ? choices(true, false) : choices(false));
    return space;
  }

  SpecialValues special_values(const KernelConfig&) const override {
    return c_.skips_zeros() ? SpecialValues::finite : p_.special_values();
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const Table& s = config.as<Table>();
    const int64_t n = s.block_n * s.tile_p;
    const int64_t k = s.block_k * s.filter_taps_per_stage;
    // Tensor cores truncate: sums of split products are promoted stage by stage.
    const int64_t deepest = p_.terms > 1 ? 32 : 64;
    const int64_t accumulators = s.block_m * n * places() / (s.warps * 32);
    Checks<Table> checks;
    const bool whole_instructions = k % k_step() == 0 && k <= deepest;
    checks.require(
        whole_instructions, {F::block_k, F::filter_taps_per_stage},
        "block_k · filter_taps_per_stage of whole instructions, at most 64, 32 of split operands",
        k);
    checks.require(n >= 32 && n <= 256, {F::block_n, F::tile_p}, "tiles of 32 to 256 columns", n);
    const bool whole_rows = n >= c_.nest.axes[c_.column];
    checks.require(c_.reductions.empty() || whole_rows, {F::block_n, F::tile_p},
                   "tiles of whole rows where these are reduced", n);
    const int64_t most = most_accumulators(s);
    const bool fit_registers = accumulators >= 4 && accumulators <= most;
    checks.require(
        fit_registers,
        {F::block_m, F::block_n, F::tile_p, F::warps, F::block_k, F::filter_taps_per_stage},
        "4 to 128 accumulators a thread, 64 when operands are split or sums long, 48 when "
        "both, of all places of a pool",
        accumulators);
    checks.require(!s.pack_weights || c_.channel, {F::pack_weights},
                   "pack_weights=0 where nothing is a channel", 1);
    const int64_t element = bytes_of(c_.nest.loads[c_.a].dtype);
    const int64_t bytes = (s.block_m + n * places()) * k * element * s.stages;
    checks.require_fits(
        bytes, Family::capabilities_.shared_bytes,
        {F::block_m, F::block_n, F::block_k, F::stages, F::tile_p, F::filter_taps_per_stage});
    return std::move(checks).failed();
  }

  size_t layout_candidate(const KernelConfig& config) const override {
    return as_size(config.as<Table>().layout_candidate);
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const Table& s = config.as<Table>();
    Programs out;
    const Contraction c = filled(out, c_, Family::capabilities_);
    const PooledContraction* const pooled = pooled_ ? &*pooled_ : nullptr;
    Access a = c.nest.loads[c.a];
    if (s.pack_weights) {
      const OperandPacking packing{out, "a", {a.dtype, 1}, Family::capabilities_};
      a = packing.repack(a, c_.row, *c_.channel, true).high;
    }
    const ThreadsMath math{p_, k_step(), promotes()};
    ThreadsKernel(c, pooled, a, second_, math, threads_choices(s)).add_to(out);
    return out;
  }

 private:
  static std::optional<Precision> precision_for(const Contraction& c, Track track) {
    const Dtype a = c.nest.loads[c.a].dtype;
    const Dtype b = c.nest.loads[c.b].dtype;
    if (kTensorCores) return precision_of(a, b, track);
    if (a != Dtype::f32 || b != Dtype::f32) return std::nullopt;
    return Precision{Dtype::f32, 1};
  }

  Values rows(bool plain) const {
    if (!plain) return {64, 128, 32, 16, 256};
    return kTensorCores ? Values{128, 64, 256, 32, 16} : Values{128, 64, 32};
  }

  Values columns(bool plain) const {
    if (!plain) return {16, 32, 8, 64, 128};
    return kTensorCores ? Values{128, 64, 256, 32} : Values{128, 64, 32};
  }

  Values depths(bool plain) const {
    if (plain) return kTensorCores ? Values{32, 64, 16} : Values{16, 8, 32};
    Values depths = {16, 32, 8, 64, 4, 2, 1};
    std::erase_if(depths, [&](int64_t depth) { return depth >= 2 * channels(); });
    return depths;
  }

  Values pixel_rows() const {
    Values ys = {1};
    for (int64_t y = 2; y <= 32 && second_ && y < 2 * c_.nest.axes[*second_]; y *= 2)
      ys.insert(ys.begin() + (y > 8), y);
    return ys;
  }

  Values taps() const {
    const int64_t places = c_.window ? c_.nest.axes[*c_.window] : 1;
    Values counts = {1};
    for (int64_t t = 2; t < 2 * places && t <= 16; t *= 2)
      counts.push_back(t);
    if (channels() < 8) std::ranges::reverse(counts);
    return counts;
  }

  // Places of a pool's windows, each with accumulators of its own.
  int64_t places() const { return pooled_ ? pooled_->pool.place_count() : 1; }

  int64_t channels() const { return c_.channel ? c_.nest.axes[*c_.channel] : 1; }

  bool promotes() const { return p_.terms > 1 || in_blocks_ || chains(); }

  int64_t most_accumulators(const Table& s) const {
    TileCoord stage(c_.nest, {{c_.channel, s.block_k}});
    if (c_.window) stage.extent[*c_.window] = s.filter_taps_per_stage;
    const int64_t depth = s.block_k * s.filter_taps_per_stage;
    const int64_t stages = stage.count(c_.nest, c_.k);
    if (p_.terms > 1 && promotion::compensates(stages, depth)) return 48;
    return promotes() ? 64 : 128;
  }

  // Whether sums of fused multiply-adds are so long that one after another they would lose too
  // much.
  bool chains() const {
    const int64_t terms = TileCoord(c_.nest).count(c_.nest, c_.k);
    return !kTensorCores && terms > 2 * promotion::kLongestChain;
  }

  int64_t k_step() const { return kTensorCores ? 32 / bytes_of(p_.operand) : 4; }

  // Whether every tensor is read as boxes, behind whose last channel nothing lies, of types to
  // compute with; factors of 8 bits where nothing is outside.
  static bool computes(const Contraction& c) {
    for (size_t i = 0; i < c.nest.loads.size(); ++i) {
      const Access& load = c.nest.loads[i];
      const bool factor = i == c.a || i == c.b;
      const bool narrow = factor && load.in_bounds && bits_of(load.dtype) == 8;
      if (!narrow && !is_computed_float(load.dtype)) return false;
      if (load.gather_dim >= 0 || (factor && load.padding_value != 0)) return false;
      for (const Affine& dim : load.at) {
        const bool alone = std::ranges::count(dim.steps, 0) + 1 >= std::ssize(dim.steps);
        const bool channels = c.channel && dim.steps[*c.channel] != 0;
        const bool both = dim.steps[c.row] != 0 && dim.steps[c.column] != 0;
        if (both || (channels && !alone && c.scales.empty())) return false;
        if (std::ranges::min(dim.steps) < 0) return false;
      }
    }
    return std::ranges::all_of(c.nest.outputs, [](const LoopNest::Output& output) {
      return is_computed_float(output.place.dtype);
    });
  }

  std::optional<size_t> second_pixels() const {
    if (pooled_) return pooled_->second();
    return in_blocks_ || !c_.reductions.empty() ? std::nullopt : second_column(c_);
  }

  static constexpr int64_t kMostPlaces = 16;  // of a pool's windows

  Contraction c_;
  std::optional<PooledContraction> pooled_;  // of the same contraction
  Precision p_;
  bool in_blocks_ = !c_.scales.empty();
  std::optional<size_t> second_ = second_pixels();
};
}  // namespace

FamilyPtr matmul_mma_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads<MatmulMmaConfig>::bind(region, capabilities);
}

FamilyPtr matmul_simt_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads<MatmulSimtConfig>::bind(region, capabilities);
}
}  // namespace warploom::kernels
