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

class MatmulThreads final : public Family {
 public:
  MatmulThreads(Contraction contraction, const Precision& precision, bool tensor_cores,
                const Capabilities& capabilities)
      : Family(tensor_cores ? "matmul_mma" : "matmul_simt", capabilities, Specialization::made),
        c_(std::move(contraction)),
        p_(precision),
        tensor_cores_(tensor_cores) {}

  static FamilyPtr bind(const Region& region, bool tensor_cores, const Capabilities& capabilities) {
    auto c = capabilities.gpu ? contraction_of(region.nests(), tensor_cores) : std::nullopt;
    if (!c || !epilogue_of(*c) || !computes(*c)) return nullptr;
    const Dtype a = c->nest.loads[c->a].dtype;
    const Dtype b = c->nest.loads[c->b].dtype;
    auto p = precision_of(a, b, region.track);
    if (!tensor_cores)
      p = a == Dtype::f32 && b == Dtype::f32 ? std::optional(Precision{Dtype::f32, 1})
                                             : std::nullopt;
    const bool fp8 = p && is_float(p->operand) && bits_of(p->operand) == 8;
    if (!p || (!c->reductions.empty() && !fuses_rows(*c, *p, 256, capabilities)) ||
        (fp8 && capabilities.fp8_tflops == 0))
      return nullptr;
    return std::make_shared<MatmulThreads>(*std::move(c), *p, tensor_cores, capabilities);
  }

  Space space() const override {
    const Contraction& c = c_;
    const bool plain = c.channel && (c.k.size() == 1 || in_blocks_) && !second_;  // a matmul
    const int64_t channels = c.channel ? c.nest.axes[*c.channel] : 1;
    const int64_t taps = c.window ? c.nest.axes[*c.window] : 1;
    Values ys = {1};
    Values tap_counts = {1};
    Values depths = tensor_cores_ ? Values{32, 64, 16} : Values{16, 8, 32};
    for (int64_t y = 2; y <= 32 && second_ && y < 2 * c.nest.axes[*second_]; y *= 2)
      ys.insert(ys.begin() + (y > 8), y);
    if (!plain) depths = {16, 32, 8, 64, 4, 2, 1};
    if (!plain) std::erase_if(depths, [&](auto n) { return n >= 2 * channels; });
    for (int64_t t = 2; t < 2 * taps && t <= 16; t *= 2) tap_counts.push_back(t);
    if (channels < 8) std::ranges::reverse(tap_counts);
    Values rows = {128, 64, 32};
    Values columns = rows;
    if (tensor_cores_) {
      rows = {128, 64, 256, 32, 16};
      columns = {128, 64, 256, 32};
    }
    if (!plain) {
      rows = {64, 128, 32, 16, 256};
      columns = {16, 32, 8, 64, 128};
    }
    Space space{
        name(),
        {{"block_m", rows, "rows of an output tile"},
         {"block_n", columns, "columns of an output tile, along the output's fastest axis"},
         {"block_k", depths, "depth of one slot; of a convolution input channels"},
         {"stages", plain && tensor_cores_ ? Values{3, 4, 2} : Values{3, 2, 4},
          "slots of the ring"},
         {"warps", {8, 4}, "warps a block"},
         {"group", plain ? Values{8, 1} : Values{8}, "rows of tiles taken together"},
         {"solution", {0, 1, 2}, "which of synthesis's solutions, cheapest predicted first"}}};
    if (plain) return space;
    space.fields.push_back(
        {"y", ys, "columns of an output tile, along the axis before the fastest"});
    space.fields.push_back({"taps", tap_counts, "places of the window of a slot"});
    space.fields.push_back(
        {"pack", c.channel ? Values{1, 0} : Values{0},
         "1: a program of its own makes the channels of one place of the window neighbours"});
    return space;
  }

  Status legal(const Schedule& s) const override {
    const auto m = field(s, "block_m");
    const auto n = field(s, "block_n") * field(s, "y", 1);
    const auto threads = field(s, "warps") * 32;
    const auto k = field(s, "block_k") * field(s, "taps", 1);
    const int deepest =
        p_.terms > 1
            ? 32
            : 64;  // tensor cores truncate: sums of split products are promoted slot by slot
    const auto accumulators = m * n / threads;
    WARPLOOM_CHECK(check_constraints(
        s, {{k % k_step() != 0 || k > deepest,
             "block_k · taps of whole instructions, at most 64, 32 when operands are split", k},
            {n < 32 || n > 256, "tiles of 32 to 256 columns", n},
            {!c_.reductions.empty() && n < c_.nest.axes[c_.column],
             "tiles of whole rows where these are reduced", n},
            {accumulators > (promotes() ? 64 : 128) || accumulators < 4,
             "4 to 128 accumulators a thread, 64 when operands are split", accumulators},
            {field(s, "pack") && !c_.channel, "pack=0 where nothing is a channel", 1}}));
    return fits(s, (m + n) * k * bytes_of(c_.nest.loads[c_.a].dtype) * field(s, "stages"));
  }

  Result<Programs> programs(const Schedule& s) const override {
    Programs out;
    const Contraction c = filled(out, c_, capabilities_);
    Access a = c.nest.loads[c.a];
    if (field(s, "pack"))
      a = OperandPacking{out, "a", {a.dtype, 1}, capabilities_}
              .laid_anew(a, c_.row, *c_.channel, true)
              .high;
    const LoopNest& nest = c.nest;
    const auto bm = field(s, "block_m");
    const auto channels = field(s, "block_k");
    const auto taps = field(s, "taps", 1);
    const auto bk = channels * taps;
    const auto bn = field(s, "block_n") * field(s, "y", 1);
    const auto step = static_cast<int64_t>(k_step());
    const int stages = static_cast<int>(field(s, "stages"));
    // The axes that a block has several elements of, in the order of the matrices' rows and
    // columns.
    const auto result = axes_of({c.row, second_, c.column});
    const auto a_axes = axes_of({c.row, c.channel});
    const auto b_axes = axes_of({c.channel, second_, c.column});
    TileCoord tile(nest, {{c.row, bm},
                          {c.column, field(s, "block_n")},
                          {second_, field(s, "y", 1)},
                          {c.channel, channels}});

    KernelBuilder draft("matmul");
    auto& t = draft.b;
    const TileScheduler order{c, tile, field(s, "group", 8)};
    tile = order.at(tile::block(0));
    t.grid(order.count()).warps(static_cast<int>(field(s, "warps")));

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
  bool promotes() const { return p_.terms > 1 || in_blocks_; }

  int k_step() const { return tensor_cores_ ? 32 / bytes_of(p_.operand) : 4; }

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
  bool tensor_cores_;
  bool in_blocks_ = !c_.scales.empty();
  std::optional<size_t> second_ =
      in_blocks_ || !c_.reductions.empty() ? std::nullopt : second_column(c_);
};
}  // namespace

FamilyPtr matmul_mma_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads::bind(region, true, capabilities);
}

FamilyPtr matmul_simt_family(const Region& region, const Capabilities& capabilities) {
  return MatmulThreads::bind(region, false, capabilities);
}
}  // namespace warploom::kernels
