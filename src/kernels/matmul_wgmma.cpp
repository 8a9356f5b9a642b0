// Matmul for sm_90a: one producer warpgroup drives the copy engine through a ring of shared-memory slots, one or two consumer
// warpgroups multiply from shared memory. Blocks are persistent: each takes tile after tile, and the producer runs ahead into the
// next tile while the consumers still store the last one.

#include <fmt/format.h>

#include <cmath>

#include "kernels/gpu_matmul.h"

namespace warploom::kernels {
namespace {

using tile::Index;
using tile::TensorId;

class MatmulWgmma : public Family {
 public:
  std::string name() const override { return "matmul_wgmma"; }

  bool covers(const Region& region, const target::Capabilities& capabilities) const override {
    if (!capabilities.warpgroup_mma || !capabilities.tensor_copy) return false;
    const auto matmul = match_matmul(region.graph);
    if (!matmul || matmul->batch.size() > 2) return false;
    const auto precision = precision_of(*matmul, region.track);
    if (!precision) return false;
    // tf32 operands can be made ready by a program; 16-bit ones are read as they are.
    return precision->operand == Dtype::tf32 || (engine_reads(matmul->a) && engine_reads(matmul->b));
  }

  Space space(const Region& region, const target::Capabilities&) const override {
    const auto matmul = *match_matmul(region.graph);
    const auto precision = *precision_of(matmul, region.track);
    const bool half = precision.operand != Dtype::tf32;
    return {
        name(),
        {{"block_m", {128, 256, 64}, "rows of an output tile"},
         {"block_n", {256, 128, 192, 64, 32}, "columns of an output tile"},
         {"block_k", half ? std::vector<std::int64_t>{64, 128} : std::vector<std::int64_t>{32}, "depth of one slot"},
         {"stages", {4, 3, 2, 5, 6}, "slots of the ring"},
         {"consumers", {2, 1}, "warpgroups that multiply"},
         {"group", {8, 16, 4, 1}, "rows of tiles taken together"},
         {"through_shared", half ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0, 1},
          "1: results leave through shared memory and the copy engine, 0: from registers"}}};
  }

  Status legal(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto matmul = *match_matmul(region.graph);
    const auto precision = *precision_of(matmul, region.track);
    const auto m = field(s, "block_m"), n = field(s, "block_n"), k = field(s, "block_k"),
               consumers = field(s, "consumers");
    if (m % (64 * consumers))
      return fail(
          illegal(s, "block_m a multiple of 64 rows a consumer", fmt::format("block_m={} consumers={}", m, consumers)));
    const auto accumulators = m * n / (128 * consumers);
    const auto most = precision.terms > 1 ? 64 : 128;  // split products keep a second set
    if (accumulators > most)
      return fail(illegal(s, fmt::format("at most {} accumulators a thread", most), fmt::format("{}", accumulators)));
    if (n * bytes_of(precision.operand) % 32)
      return fail(illegal(s, "block_n of whole 32-byte panels", fmt::format("block_n={}", n)));
    if (field(s, "through_shared") && !engine_writes(matmul.out))
      return fail(illegal(s, "an output whose rows start at multiples of 16 bytes", "through_shared=1"));
    const auto slot = (m + n) * k * bytes_of(precision.operand) * (precision.terms > 1 ? 2 : 1);
    const auto staging = field(s, "through_shared") ? m * n * bytes_of(matmul.out.dtype) : 0;
    const auto bytes = slot * field(s, "stages") + staging + 1024;
    if (bytes > capabilities.shared_bytes)
      return fail({ErrorCode::kResourceLimit, "a block needs more shared memory than the target has", s.text(),
                   fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", bytes),
                   "use fewer stages or a smaller tile"});
    return ok();
  }

  // Time of the waves of tiles, each bound by multiplying or by filling slots, plus storing.
  double guess(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto matmul = *match_matmul(region.graph);
    const auto precision = *precision_of(matmul, region.track);
    const double m = static_cast<double>(field(s, "block_m")), n = static_cast<double>(field(s, "block_n"));
    const double tiles = static_cast<double>(ceil_div(matmul.m, field(s, "block_m")) *
                                             ceil_div(matmul.n, field(s, "block_n")) * matmul.batch_count());
    const double waves = std::ceil(tiles / capabilities.processors);
    const double k = static_cast<double>(round_up(matmul.k, field(s, "block_k")));
    const double rate = (precision.operand == Dtype::tf32 ? capabilities.tf32_tflops : capabilities.half_tflops) * 1e6 /
                        capabilities.processors;
    const double multiply = 2 * m * n * k * precision.terms / rate;
    // The tensor core reads b (and a) from shared memory: narrow tiles starve it.
    const double starve = n < 128 ? 128 / n : 1;
    const double fill = (m + n) * k * bytes_of(precision.operand) * (precision.terms > 1 ? 2 : 1) /
                        (5500.0 * 1e3 / capabilities.processors);
    const double depth = field(s, "stages") < 3 ? 1.3 : 1.0;
    const double alone = field(s, "consumers") == 1 ? 1.15 : 1.0;
    // Pairs of 16-bit results leave half of every 32-byte sector to another store; the copy engine writes whole lines.
    const bool direct = !field(s, "through_shared");
    const double store = m * n * bytes_of(matmul.out.dtype) / (4000.0 * 1e3 / capabilities.processors) *
                         (!direct                           ? 0.5
                          : bytes_of(matmul.out.dtype) == 2 ? 2.5
                                                            : 0.7);
    return waves * (std::max(multiply * starve * alone, fill) * depth + store);
  }

  Result<Programs> programs(const Region& region, const Schedule& s,
                            const target::Capabilities& capabilities) const override {
    const auto matmul = *match_matmul(region.graph);
    const auto precision = *precision_of(matmul, region.track);
    Programs out;
    // b as [batch…, n, k], so that k is its last axis as it is a's.
    const Prepared a = prepare_operand(out, "a", matmul.a, precision);
    const Prepared b = prepare_operand(out, "b", matmul.b.transposed(), precision);
    multiply(out, matmul, precision, a, b, s, capabilities);
    return out;
  }

 private:
  static bool engine_reads(const View& view) {
    const std::size_t rank = view.batch_rank();
    const auto fast = static_cast<std::size_t>(view.fast_axis()) + rank;
    for (std::size_t i = 0; i < rank + 2; ++i)
      if (i != fast && view.shape[i] > 1 && view.strides[i] * bytes_of(view.dtype) % 16) return false;
    return view.strides[fast] == 1;
  }
  static bool engine_writes(const View& view) { return engine_reads(view) && view.fast_axis() == 1; }

  static void multiply(Programs& out, const MatmulRegion& region, const Precision& precision, const Prepared& a,
                       const Prepared& b, const Schedule& s, const target::Capabilities& capabilities) {
    const auto bm = field(s, "block_m"), bn = field(s, "block_n"), bk = field(s, "block_k");
    const int consumers = static_cast<int>(field(s, "consumers"));
    const bool split = precision.terms > 1, through_shared = field(s, "through_shared") != 0;
    const TileOrder order{ceil_div(region.m, bm), ceil_div(region.n, bn), region.batch_count(), field(s, "group")};

    Draft draft("matmul");
    auto& t = draft.b;
    t.grid(std::min<std::int64_t>(order.count(), capabilities.processors));
    t.warps(4 + 4 * consumers);
    const TensorId A = draft.input("A", a.high), B = draft.input("B", b.high);
    const TensorId A2 = split ? draft.input("A_rest", a.low) : -1, B2 = split ? draft.input("B_rest", b.low) : -1;
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < region.operands.size(); ++i)
      operands.push_back(draft.input(fmt::format("E{}", i), region.operands[i]));
    const TensorId C = draft.output("C", region.out);

    // Slots hold a as [m, k] and b as [n, k], whichever of the two axes is contiguous.
    const TensorId sa = t.shared("a", precision.operand, {bm, bk}), sb = t.shared("b", precision.operand, {bn, bk});
    std::vector<TensorId> slots = {sa, sb};
    TensorId sa2 = -1, sb2 = -1;
    if (split) {
      sa2 = t.shared("a_rest", precision.operand, {bm, bk}), sb2 = t.shared("b_rest", precision.operand, {bn, bk});
      slots.push_back(sa2), slots.push_back(sb2);
    }
    const auto ring = t.pipeline("ring", static_cast<int>(field(s, "stages")), slots);
    const TensorId staging = through_shared ? t.shared("staging", region.out.dtype, {bm, bn}) : -1;
    const Index k_end = ceil_div(region.k, bk);

    auto tiles = [&](const char* variable, const std::function<void(const TileOrder::Position&)>& body) {
      t.for_(variable, tile::block(0), order.count(), std::min<std::int64_t>(order.count(), capabilities.processors),
             [&](const Index& linear) { body(order.at(linear)); });
    };
    t.roles([&] {
      t.role("producer", 4, consumers > 1 ? 40 : 0, [&] {
        tiles("tile", [&](const TileOrder::Position& at) {
          t.for_("k", 0, k_end, 1, [&](const Index& k) {
            t.produce(ring, [&] {
              auto load = [&](TensorId from, const View& view, const Index& row, std::int64_t rows, TensorId to) {
                t.copy(t.tile(from, offsets(view, region.batch, at.batch, row, k * bk), box(view, rows, bk)),
                       t.all(to));
              };
              load(A, a.high, at.m * bm, bm, sa);
              load(B, b.high, at.n * bn, bn, sb);
              if (split) load(A2, a.low, at.m * bm, bm, sa2), load(B2, b.low, at.n * bn, bn, sb2);
            });
          });
        });
      });
      t.role("consumer", 4 * consumers, consumers > 1 ? 232 : 0, [&] {
        const TensorId acc = t.reg("acc", Dtype::f32, {bm, bn});
        // The tensor core truncates as it adds, an error that grows with k. Split products therefore add up one slot at a time,
        // and the threads add the slots, rounding to nearest.
        const TensorId part = split ? t.reg("part", Dtype::f32, {bm, bn}) : acc;
        tiles("tile", [&](const TileOrder::Position& at) {
          t.fill(acc, 0);
          t.for_("k", 0, k_end, 1, [&](const Index&) {
            if (split) t.fill(part, 0);
            t.consume(ring, split ? 0 : 1, [&] {
              if (split)
                t.mma(part, t.all(sa2), t.all(sb), false, true), t.mma(part, t.all(sa), t.all(sb2), false, true);
              t.mma(part, t.all(sa), t.all(sb), false, true);
            });
            if (split) t.map(acc, t.value(acc) + t.value(part));
          });
          const TensorId result = epilogue(draft, region, operands, acc, at, bm, bn);
          const auto destination =
              t.tile(C, offsets(region.out, region.batch, at.batch, at.m * bm, at.n * bn), box(region.out, bm, bn));
          if (through_shared) {
            t.copy(t.all(result), t.all(staging));
            t.copy(t.all(staging), destination);
          } else {
            t.copy(t.all(result), destination);
          }
        });
      });
    });
    out.programs.push_back(t.finish());
    out.buffers.push_back(draft.buffers);
  }
};

}  // namespace

const Family& matmul_wgmma_family() {
  static const MatmulWgmma family;
  return family;
}

}  // namespace warploom::kernels
