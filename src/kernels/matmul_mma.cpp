// Sums of products for any GPU since sm_80, matmuls and convolutions alike: all threads copy,
// through a ring of shared-memory slots filled by asynchronous copies, and all multiply: with
// mma.sync (matmul_mma) or with fused multiply-adds (matmul_simt).
//
// RowReduction are A's axis m (of a convolution its output channels), columns a block_n · y patch
// of B's (pixels of one image; of a matmul y is 1). A slot holds block_k · taps of the sum's terms:
// so many input channels at so many places of the window. Nothing is unfolded in memory: a patch at
// a place of the window is a box of the input, and what padding adds lies outside and counts as 0.
// With pack=1 a program of its own first lays the weights so that the channels of one place are
// neighbours.
#include "kernels/gpu_matmul.h"

namespace warploom::kernels {
namespace {
// Added to the index along an axis it puts every coordinate that steps along it outside its tensor.
int64_t outside(const Contraction& c) {
  int64_t far = 1;
  for (const Access* access : {&c.nest.loads[c.a], &c.nest.loads[c.b]})
    for (size_t d = 0; d < access->at.size(); ++d)
      far = std::max(far, 2 * (access->shape[d] + std::abs(access->at[d].begin)));
  return far;
}

// With mma.sync, or with fused multiply-adds.
template <Config Table> class MatmulThreads final : public Family {
 public:
  static constexpr bool kTensorCores = std::same_as<Table, MatmulMmaConfig>;
  using F = Table::Field;

  MatmulThreads(Contraction contraction, const Precision& precision,
                const Capabilities& capabilities)
      : Family(Table::type(), capabilities, Specialization::made),
        c_(std::move(contraction)),
        p_(precision) {}

  static FamilyPtr bind(const Region& region, const Capabilities& capabilities) {
    auto c = capabilities.gpu ? contraction_of(region.nests(), kTensorCores) : std::nullopt;
    if (!c || !epilogue_of(*c) || !computes(*c)) return nullptr;
    const Dtype a = c->nest.loads[c->a].dtype;
    const Dtype b = c->nest.loads[c->b].dtype;
    auto p = precision_of(a, b, region.track);
    if (!kTensorCores)
      p = a == Dtype::f32 && b == Dtype::f32 ? std::optional(Precision{Dtype::f32, 1})
                                             : std::nullopt;
    const bool fp8 = p && is_float(p->operand) && bits_of(p->operand) == 8;
    if (!p || (!c->reductions.empty() && !fuses_rows(*c, *p, 256, capabilities)) ||
        (fp8 && capabilities.fp8_tflops == 0))
      return nullptr;
    return std::make_shared<MatmulThreads>(*std::move(c), *p, capabilities);
  }

  Space space() const override {
    const bool plain = c_.channel && (c_.k.size() == 1 || in_blocks_) && !second_;  // a matmul
    Space space{
        Family::name(),
        {offered<Table>(F::block_m, rows(plain)), offered<Table>(F::block_n, columns(plain)),
         offered<Table>(F::block_k, depths(plain)),
         offered<Table>(F::stages, plain && kTensorCores ? Values{3, 4, 2} : Values{3, 2, 4}),
         offered<Table>(F::warps, {8, 4}),
         offered<Table>(F::raster_group_m, plain ? Values{8, 1} : Values{8}),
         offered<Table>(F::layout_candidate, {0, 1, 2})}};
    if (plain) return space;
    space.fields.push_back(offered<Table>(F::tile_p, pixel_rows()));
    space.fields.push_back(offered<Table>(F::filter_taps_per_stage, taps()));
    space.fields.push_back(
        offered<Table>(F::pack_weights, c_.channel ? choices(true, false) : choices(false)));
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const Table& s = config.as<Table>();
    const int64_t n = s.block_n * s.tile_p;
    const int64_t k = s.block_k * s.filter_taps_per_stage;
    // Tensor cores truncate: sums of split products are promoted stage by stage.
    const int64_t deepest = p_.terms > 1 ? 32 : 64;
    const int64_t accumulators = s.block_m * n / (s.warps * 32);
    Checks<Table> checks;
    checks.require(
        k % k_step() == 0 && k <= deepest, {F::block_k, F::filter_taps_per_stage},
        "block_k · filter_taps_per_stage of whole instructions, at most 64, 32 of split operands",
        k);
    checks.require(n >= 32 && n <= 256, {F::block_n, F::tile_p}, "tiles of 32 to 256 columns", n);
    checks.require(c_.reductions.empty() || n >= c_.nest.axes[c_.column], {F::block_n, F::tile_p},
                   "tiles of whole rows where these are reduced", n);
    checks.require(accumulators <= (promotes() ? 64 : 128) && accumulators >= 4,
                   {F::block_m, F::block_n, F::tile_p, F::warps},
                   "4 to 128 accumulators a thread, 64 when operands are split", accumulators);
    checks.require(!s.pack_weights || c_.channel, {F::pack_weights},
                   "pack_weights=0 where nothing is a channel", 1);
    checks.require_fits(
        (s.block_m + n) * k * bytes_of(c_.nest.loads[c_.a].dtype) * s.stages,
        Family::capabilities_.shared_bytes,
        {F::block_m, F::block_n, F::block_k, F::stages, F::tile_p, F::filter_taps_per_stage});
    return std::move(checks).failed();
  }

  size_t layout_candidate(const KernelConfig& config) const override {
    return static_cast<size_t>(config.as<Table>().layout_candidate);
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const Table& s = config.as<Table>();
    Programs out;
    const Contraction c = filled(out, c_, capabilities_);
    Access a = c.nest.loads[c.a];
    if (s.pack_weights)
      a = OperandPacking{out, "a", {a.dtype, 1}, capabilities_}
              .laid_anew(a, c_.row, *c_.channel, true)
              .high;
    const LoopNest& nest = c.nest;
    const auto bm = s.block_m;
    const auto channels = s.block_k;
    const auto taps = s.filter_taps_per_stage;
    const auto bk = channels * taps;
    const auto bn = s.block_n * s.tile_p;
    const auto step = static_cast<int64_t>(k_step());
    const int stages = static_cast<int>(s.stages);
    // The axes that a block has several elements of, in the order of the matrices' rows and
    // columns.
    const auto result = axes_of({c.row, second_, c.column});
    const auto a_axes = axes_of({c.row, c.channel});
    const auto b_axes = axes_of({c.channel, second_, c.column});
    TileCoord tile(
        nest, {{c.row, bm}, {c.column, s.block_n}, {second_, s.tile_p}, {c.channel, channels}});

    KernelBuilder draft("matmul");
    auto& t = draft.b;
    const TileScheduler order{c, tile, s.raster_group_m};
    tile = order.at(tile::block(0));
    t.grid(order.count()).warps(static_cast<int>(s.warps));

    const Access& b = nest.loads[c.b];
    const TensorTile A(draft, "A", nest, a, a_axes);
    const TensorTile B(draft, "B", nest, b, b_axes);
    const TensorId sa = t.shared("a", a.dtype, {bm, bk});
    const TensorId sb = t.shared("b", b.dtype, {bk, bn});
    const auto ring = t.pipeline("ring", stages, {sa, sb});
    const TensorId acc = t.reg("acc", in_blocks_ ? Dtype::f32 : p_.accumulator(), {bm, bn});
    const TensorId part = promotes() ? t.reg("part", p_.accumulator(), {bm, bn}) : acc;
    const TensorId fa = t.reg("fa", a.dtype, {bm, step});
    const TensorId fb = t.reg("fb", b.dtype, {step, bn});

    // Slots go through the window, taps of its last axis together, at one set of channels after
    // another.
    const std::vector<size_t> summed = slot_axes(c);
    TileCoord slot = tile;
    if (c.window) slot.extent[*c.window] = taps;
    const int64_t slots = slot.count(nest, summed);
    const int64_t far = outside(c);
    const auto produce = [&](const Index& k) {
      slot.place(nest, summed, k);
      tile.origin = slot.origin;
      t.produce(ring, [&] {
        const Index first = c.window ? tile.origin[*c.window] : Index(0);
        for (int64_t tap = 0; tap < taps; ++tap) {
          if (c.window) {
            const Index place = first + tap;
            const bool over = nest.axes[*c.window] % taps !=
                              0;  // places beyond the window lie outside every tensor
            tile.origin[*c.window] = over ? place + place / nest.axes[*c.window] * far : place;
          }
          t.copy(A.at(tile), t.tile(sa, {0, tap * channels}, {bm, channels}));
          t.copy(B.at(tile), t.tile(sb, {tap * channels, 0}, {channels, bn}));
        }
      });
    };
    t.fill(acc, 0);
    const auto [begin, end] =
        slot.slots_within(c.domain_constraints, c.channel.value_or(c.k[0]), 0, slots);
    for (int stage = 0; stage + 1 < stages; ++stage) produce(begin + stage);
    t.for_("k", begin, end, 1, [&](const Index& k) {
      TileCoord here = tile;
      here.place(nest, summed, k);
      const std::vector<TensorId> scales = load_scales(draft, c, here, result);
      if (promotes()) t.fill(part, 0);
      t.consume(ring, 0, [&] {
        for (int64_t inner = 0; inner < bk; inner += step) {
          t.copy(t.tile(sa, {0, inner}, {bm, step}), t.all(fa));
          t.copy(t.tile(sb, {inner, 0}, {step, bn}), t.all(fb));
          // part += fa · fb: as they are, rounded to tf32, or as three products of two-part splits.
          if (p_.operand != Dtype::tf32) {
            t.mma(part, t.all(fa), t.all(fb));
            continue;
          }
          const TensorId ra = draft.reg("fa_tf32", Dtype::tf32, {bm, step});
          const TensorId rb = draft.reg("fb_tf32", Dtype::tf32, {step, bn});
          t.copy(t.all(fa), t.all(ra));
          t.copy(t.all(fb), t.all(rb));
          if (p_.terms > 1) {
            const TensorId a_rest = draft.reg("fa_rest", Dtype::tf32, {bm, step});
            const TensorId b_rest = draft.reg("fb_rest", Dtype::tf32, {step, bn});
            t.map(a_rest, t.value(fa) - t.value(ra));
            t.map(b_rest, t.value(fb) - t.value(rb));
            t.mma(part, t.all(a_rest), t.all(rb));
            t.mma(part, t.all(ra), t.all(b_rest));
          }
          t.mma(part, t.all(ra), t.all(rb));
        }
      });
      if (promotes()) t.map(acc, promoted(draft, acc, part, scales));
      produce(k + (stages - 1));
    });
    store(draft, c, acc, tile, result);
    draft.finish(out);
    return out;
  }

 private:
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
    for (int64_t t = 2; t < 2 * places && t <= 16; t *= 2) counts.push_back(t);
    if (channels() < 8) std::ranges::reverse(counts);
    return counts;
  }

  int64_t channels() const { return c_.channel ? c_.nest.axes[*c_.channel] : 1; }

  bool promotes() const { return p_.terms > 1 || in_blocks_; }

  int k_step() const { return kTensorCores ? 32 / bytes_of(p_.operand) : 4; }

  // Whether every tensor is read as boxes, behind whose last channel nothing lies, of types to
  // compute with; factors of 8 bits where nothing is outside.
  static bool computes(const Contraction& c) {
    for (size_t i = 0; i < c.nest.loads.size(); ++i) {
      const Access& load = c.nest.loads[i];
      const bool factor = i == c.a || i == c.b;
      const bool narrow = factor && load.in_bounds && bits_of(load.dtype) == 8;
      if (load.gather_dim >= 0 || (factor && load.padding_value != 0) ||
          !(narrow || is_computed_float(load.dtype)))
        return false;
      for (const Affine& dim : load.at) {
        const bool alone = std::ranges::count(dim.steps, 0) + 1 >= std::ssize(dim.steps);
        const bool channels = c.channel && dim.steps[*c.channel] != 0;
        const bool both = dim.steps[c.row] != 0 && dim.steps[c.column] != 0;
        if (both || (channels && !alone && c.scales.empty()) || std::ranges::min(dim.steps) < 0)
          return false;
      }
    }
    return is_computed_float(c.nest.outputs[0].place.dtype);
  }

  Contraction c_;
  Precision p_;
  bool in_blocks_ = !c_.scales.empty();
  std::optional<size_t> second_ =
      in_blocks_ || !c_.reductions.empty() ? std::nullopt : second_column(c_);
};
}  // namespace

FamilyPtr matmul_mma_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads<MatmulMmaConfig>::bind(region, capabilities);
}

FamilyPtr matmul_simt_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads<MatmulSimtConfig>::bind(region, capabilities);
}
}  // namespace warploom::kernels
