// Matmul for sm_90a: one producer warpgroup drives the copy engine through a ring of shared-memory slots, one or two consumer
// warpgroups multiply from shared memory. Blocks are persistent: each takes tile after tile, and the producer runs ahead into the
// next tile while the consumers still store the last one.

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
    const auto matmul = match_matmul(region.nests());
    return matmul && matmul->batch.size() <= 2 && precision_of(*matmul, region.track);
  }

  Space space(const Region& region, const target::Capabilities& capabilities) const override {
    const auto matmul = *match_matmul(region.nests());
    const auto precision = *precision_of(matmul, region.track);
    const int bytes = bytes_of(precision.operand);
    // Few rows: weights on the matrix unit's 64-row side, rows on its narrow side.
    const bool skinny = matmul.m < 128 && matmul.m < matmul.n;
    std::vector<std::int64_t> splits = {1};
    const auto steps = ceil_div(matmul.k, 128 / bytes);
    for (std::int64_t s = 2; s <= 32 && s * 4 <= steps && is_float(precision.operand); s *= 2)
      if (s * ceil_div(matmul.m, 128) * ceil_div(matmul.n, 128) * matmul.batch_count() <= 2 * capabilities.processors)
        splits.push_back(s);
    return {
        name(),
        {{"block_m", {128, 256, 64}, "rows of an output tile"},
         {"block_n",
          skinny ? std::vector<std::int64_t>{16, 32, 64, 128, 8, 256} : std::vector<std::int64_t>{256, 128, 192, 64, 32, 160, 96},
          "columns of an output tile"},
         {"block_k", bytes == 2 ? std::vector<std::int64_t>{64, 128} : std::vector<std::int64_t>{128 / bytes},
          "depth of one slot"},
         {"stages", {4, 3, 2, 5, 6, 8}, "slots of the ring"},
         {"consumers", {2, 1}, "warpgroups that multiply"},
         {"group", {8, 16, 4, 1}, "rows of tiles taken together"},
         {"cluster", {1, 2}, "blocks below each other that fetch one tile of the second operand together"},
         {"split", splits, "parts of k computed apart and summed by a program of its own"},
         {"exchange", skinny ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0, 1},
          "1: the transposed product, second operand first"},
         {"through_shared", bytes_of(matmul.out.dtype) == 2 ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0, 1},
          "1: results leave through shared memory, whole rows at a time, 0: from registers"}}};
  }

  Status legal(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto given = *match_matmul(region.nests());
    const auto precision = *precision_of(given, region.track);
    const MatmulRegion matmul = field(s, "exchange") ? exchanged(given) : given;
    const auto m = field(s, "block_m"), n = field(s, "block_n"), k = field(s, "block_k"), consumers = field(s, "consumers"),
               split = field(s, "split", 1);
    if (m % (64 * consumers))
      return fail(illegal(s, "block_m a multiple of 64 rows a consumer", fmt::format("block_m={} consumers={}", m, consumers)));
    const auto accumulators = m * n / (128 * consumers);
    const auto most = precision.promotes() ? 64 : 128;  // a second set
    if (accumulators > most)
      return fail(illegal(s, fmt::format("at most {} accumulators a thread", most), fmt::format("{}", accumulators)));
    const auto cluster = field(s, "cluster", 1);
    if (cluster > 1 && (ceil_div(matmul.m, m) < cluster || n % (8 * cluster)))
      return fail(illegal(s, "cluster=1 where there are fewer tiles below each other, or tiles too narrow to share",
                          fmt::format("{} tiles of {} columns", ceil_div(matmul.m, m), n)));
    if (precision.operand == Dtype::i8 && n % 16 && n > 24)
      return fail(illegal(s, "block_n a multiple of 16 for integers", fmt::format("block_n={}", n)));
    if (matmul.b.fast_axis() == 1 && bytes_of(precision.operand) == 2 && n % 16)
      return fail(illegal(s, "block_n of whole 32-byte panels", fmt::format("block_n={}", n)));
    if (split > 1 && (split - 1) * ceil_div(ceil_div(matmul.k, k), split) >= ceil_div(matmul.k, k))
      return fail(illegal(s, "a split that leaves every part some of k", fmt::format("split={}", split)));
    const Dtype stored = split > 1 ? Dtype::f32 : matmul.out.dtype;
    if (field(s, "through_shared") && n * bytes_of(stored) % 32)
      return fail(illegal(s, "through_shared=0 for narrow tiles", fmt::format("block_n={}", n)));
    const auto slot = (m + n) * k * bytes_of(precision.operand) * (precision.terms > 1 ? 2 : 1);
    const auto staging = field(s, "through_shared") ? m * n * bytes_of(stored) : 0;
    const auto bytes = slot * field(s, "stages") + staging + 1024;
    return fits_shared(s, bytes, capabilities);
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto given = *match_matmul(region.nests());
    const auto precision = *precision_of(given, region.track);
    const MatmulRegion matmul = field(s, "exchange") ? exchanged(given) : given;
    Programs out;
    // b as [batch…, n, k], so that k is its last axis as it is a's.
    const Prepared a = prepare_operand(out, "a", matmul.a, precision);
    const Prepared b = prepare_operand(out, "b", matmul.b.transposed(), precision);
    const auto split = field(s, "split", 1);
    if (split == 1) {
      multiply(out, matmul, precision, a, b, s, capabilities);
      return out;
    }
    // Parts lie as the result does, whichever of the two ways the product is computed.
    const auto row = round_up(given.n, 4), batch = given.batch_count();
    const View parts{graph::kAbsent, "parts", Dtype::f32, {split * batch, given.m, given.n}, {row * given.m, row, 1}};
    out.workspaces.push_back({"parts", parts.dtype, {split * batch * given.m * row}});
    MatmulRegion part = matmul;
    part.operands.clear(), part.has_epilogue = false;
    part.out = field(s, "exchange") ? parts.transposed() : parts;
    multiply(out, part, precision, a, b, s, capabilities);
    sum_parts(out, given, parts, split);
    return out;
  }

 private:
  static void multiply(Programs& out, const MatmulRegion& region, const Precision& precision, const Prepared& a,
                       const Prepared& b, const Schedule& s, const target::Capabilities& capabilities) {
    const auto bm = field(s, "block_m"), bn = field(s, "block_n"), bk = field(s, "block_k");
    const int consumers = static_cast<int>(field(s, "consumers"));
    const bool split = precision.terms > 1, through_shared = field(s, "through_shared") != 0;
    // The blocks of a cluster take tiles below each other, so that one tile of b serves them all.
    const auto cluster = field(s, "cluster", 1);
    const TileOrder order{ceil_div(ceil_div(region.m, bm), cluster), ceil_div(region.n, bn), region.batch_count(),
                          field(s, "group")};
    const std::int64_t parts = field(s, "split", 1), steps = ceil_div(region.k, bk), part_steps = ceil_div(steps, parts),
                       count = order.count() * parts, workers = std::min<std::int64_t>(count, capabilities.processors / cluster);

    Draft draft("matmul");
    auto& t = draft.b;
    t.grid(workers * cluster).cluster(cluster);
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

    // Tile after tile; with parts of k, all tiles of one part, then of the next.
    using OneTile = std::function<void(const TileOrder::Position&, const Index& part, const Index& begin, const Index& end)>;
    auto tiles = [&](const char* variable, const OneTile& body) {
      t.for_(variable, tile::block(0) / cluster, count, workers, [&](const Index& linear) {
        TileOrder::Position at = order.at(parts == 1 ? linear : linear % order.count());
        if (cluster > 1) at.m = at.m * cluster + tile::cluster_rank();
        if (parts == 1) return body(at, 0, 0, steps);
        const Index part = linear / order.count(), begin = part * part_steps;
        body(at, part, begin, tile::min(begin + part_steps, Index(steps)));
      });
    };
    t.roles([&] {
      t.role("producer", 4, consumers > 1 ? 40 : 0, [&] {
        tiles("tile", [&](const TileOrder::Position& at, const Index&, const Index& begin, const Index& end) {
          t.for_("k", begin, end, 1, [&](const Index& k) {
            t.produce(ring, [&] {
              auto load = [&](TensorId from, const View& view, const Index& row, std::int64_t rows, TensorId to) {
                const auto source = t.tile(from, offsets(view, region.batch, at.batch, row, k * bk), box(view, rows, bk));
                if (cluster > 1 && (to == sb || to == sb2)) t.multicast(source, t.all(to), "x");
                else t.copy(source, t.all(to));
              };
              load(A, a.high, at.m * bm, bm, sa);
              load(B, b.high, at.n * bn, bn, sb);
              if (split) load(A2, a.low, at.m * bm, bm, sa2), load(B2, b.low, at.n * bn, bn, sb2);
            });
          });
        });
      });
      t.role("consumer", 4 * consumers, consumers > 1 ? 232 : 0, [&] {
        const TensorId acc = t.reg("acc", precision.accumulator(), {bm, bn});
        const bool promotes = precision.promotes();
        const TensorId part_sum = promotes ? t.reg("part", Dtype::f32, {bm, bn}) : acc;
        tiles("tile", [&](const TileOrder::Position& at, const Index& part, const Index& begin, const Index& end) {
          t.fill(acc, 0);
          t.for_("k", begin, end, 1, [&](const Index&) {
            if (promotes) t.fill(part_sum, 0);
            t.consume(ring, promotes ? 0 : 1, [&] {
              if (split) t.mma(part_sum, t.all(sa2), t.all(sb), false, true), t.mma(part_sum, t.all(sa), t.all(sb2), false, true);
              t.mma(part_sum, t.all(sa), t.all(sb), false, true);
            });
            if (promotes) t.map(acc, t.value(acc) + t.value(part_sum));
          });
          const TensorId result = epilogue(draft, region, operands, acc, at, bm, bn);
          const auto where = parts > 1 ? std::vector<Index>{at.batch + part * order.batch, at.m * bm, at.n * bn}
                                       : offsets(region.out, region.batch, at.batch, at.m * bm, at.n * bn);
          const auto destination = t.tile(C, where, box(region.out, bm, bn));
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
