// Matmul for any GPU since sm_80: all threads copy, through a ring of shared-memory slots filled by asynchronous copies, and all
// multiply: with mma.sync (matmul_mma) or with fused multiply-adds (matmul_simt).

#include "kernels/gpu_matmul.h"
namespace warploom::kernels {
namespace {
using tile::Index;
using tile::TensorId;

// The two families differ in what a register fragment is made of and in the shapes of tiles.
struct Flavour {
  std::string name;
  bool tensor_cores;
  int k_step(Dtype operand) const { return tensor_cores ? 32 / bytes_of(operand) : 4; }
};

class MatmulThreads : public Family {
 public:
  explicit MatmulThreads(Flavour flavour) : flavour_(std::move(flavour)) {}
  std::string name() const override { return flavour_.name; }

  bool covers(const Region& region, const target::Capabilities& capabilities) const override {
    if (!capabilities.gpu) return false;
    const auto matmul = match_matmul(region.nests());
    if (!matmul || matmul->a.dtype != matmul->b.dtype || matmul->batch.size() > 3) return false;
    const auto p = precision(*matmul, region.track);
    const bool fp8 = p && is_float(p->operand) && bits_of(p->operand) == 8;
    return p && (!fp8 || capabilities.fp8_tflops > 0);
  }

  Space space(const Region&, const target::Capabilities&) const override {
    if (flavour_.tensor_cores)
      return {name(),
              {{"block_m", {128, 64, 256, 32, 16}, "rows of an output tile"},
               {"block_n", {128, 64, 256, 32}, "columns of an output tile"},
               {"block_k", {32, 64, 16}, "depth of one slot"},
               {"stages", {3, 4, 2}, "slots of the ring"},
               {"warps", {8, 4}, "warps a block"},
               {"group", {8, 1}, "rows of tiles taken together"},
               {"solution", {0, 1, 2}, "which of synthesis's solutions, cheapest predicted first"}}};
    return {name(),
            {{"block_m", {128, 64, 32}, "rows of an output tile"},
             {"block_n", {128, 64, 32}, "columns of an output tile"},
             {"block_k", {16, 8, 32}, "depth of one slot"},
             {"stages", {3, 2, 4}, "slots of the ring"},
             {"warps", {8, 4}, "warps a block"},
             {"group", {8, 1}, "rows of tiles taken together"},
             {"solution", {0, 1, 2}, "which of synthesis's solutions, cheapest predicted first"}}};
  }

  Status legal(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto matmul = *match_matmul(region.nests());
    const Precision p = *precision(matmul, region.track);
    const auto m = field(s, "block_m"), n = field(s, "block_n"), k = field(s, "block_k"), threads = field(s, "warps") * 32;
    if (k % flavour_.k_step(p.operand))
      return fail(illegal(s, "block_k a multiple of the fragment's depth", fmt::format("{}", k)));
    const auto accumulators = m * n / threads;
    if (accumulators > (p.terms > 1 ? 64 : 128) || accumulators < 4)
      return fail(illegal(s, "4 to 128 accumulators a thread (64 when operands are split)", fmt::format("{}", accumulators)));
    const auto bytes = (m + n) * k * bytes_of(matmul.a.dtype) * field(s, "stages");
    return fits_shared(s, bytes, capabilities);
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const target::Capabilities&) const override {
    const auto matmul = *match_matmul(region.nests());
    Programs out;
    multiply(out, matmul, *precision(matmul, region.track), s);
    return out;
  }

 private:
  std::optional<Precision> precision(const MatmulRegion& region, Track track) const {
    if (flavour_.tensor_cores) return precision_of(region, track);
    if (region.a.dtype == Dtype::f32) return Precision{Dtype::f32, 1};
    return std::nullopt;
  }

  void multiply(Programs& out, const MatmulRegion& region, const Precision& precision, const Schedule& s) const {
    const auto bm = field(s, "block_m"), bn = field(s, "block_n"), bk = field(s, "block_k");
    const int stages = static_cast<int>(field(s, "stages"));
    const std::int64_t step = flavour_.k_step(precision.operand);
    const TileOrder order{ceil_div(region.m, bm), ceil_div(region.n, bn), region.batch_count(), field(s, "group")};
    Draft draft("matmul");
    auto& t = draft.b;
    t.grid(order.count());
    t.warps(static_cast<int>(field(s, "warps")));
    const TensorId A = draft.input("A", region.a), B = draft.input("B", region.b);
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < region.operands.size(); ++i)
      operands.push_back(draft.input(fmt::format("E{}", i), region.operands[i]));
    const TensorId C = draft.output("C", region.out);
    const Dtype stored = region.a.dtype;
    const TensorId sa = t.shared("a", stored, {bm, bk}), sb = t.shared("b", stored, {bk, bn});
    const auto ring = t.pipeline("ring", stages, {sa, sb});
    const TensorId acc = t.reg("acc", precision.accumulator(), {bm, bn});
    // As in matmul_wgmma: the tensor core truncates, so split products add up one slot at a time.
    const bool split = precision.terms > 1;
    const TensorId part = split ? t.reg("part", Dtype::f32, {bm, bn}) : acc;
    const TensorId fa = t.reg("fa", stored, {bm, step}), fb = t.reg("fb", stored, {step, bn});
    const TileOrder::Position at = order.at(tile::block(0));

    auto produce = [&](const Index& k) {
      t.produce(ring, [&] {
        t.copy(t.tile(A, offsets(region.a, region.batch, at.batch, at.m * bm, k * bk), box(region.a, bm, bk)), t.all(sa));
        t.copy(t.tile(B, offsets(region.b, region.batch, at.batch, k * bk, at.n * bn), box(region.b, bk, bn)), t.all(sb));
      });
    };
    t.fill(acc, 0);
    for (int stage = 0; stage + 1 < stages; ++stage) produce(stage);
    t.for_("k", 0, ceil_div(region.k, bk), 1, [&](const Index& k) {
      if (split) t.fill(part, 0);
      t.consume(ring, 0, [&] {
        for (std::int64_t inner = 0; inner < bk; inner += step) {
          t.copy(t.tile(sa, {0, inner}, {bm, step}), t.all(fa));
          t.copy(t.tile(sb, {inner, 0}, {step, bn}), t.all(fb));
          fragment_products(draft, precision, part, fa, fb, {bm, step}, {step, bn});
        }
      });
      if (split) t.map(acc, t.value(acc) + t.value(part));
      produce(k + (stages - 1));
    });
    const TensorId result = epilogue(draft, region, operands, acc, at, bm, bn);
    t.copy(t.all(result), t.tile(C, offsets(region.out, region.batch, at.batch, at.m * bm, at.n * bn), box(region.out, bm, bn)));
    out.programs.push_back(t.finish());
    out.buffers.push_back(draft.buffers);
  }

  Flavour flavour_;
};
}  // namespace
const Family& matmul_mma_family() {
  static const MatmulThreads family({"matmul_mma", true});
  return family;
}
const Family& matmul_simt_family() {
  static const MatmulThreads family({"matmul_simt", false});
  return family;
}
}  // namespace warploom::kernels
