// Matmul for sm_90a: one producer warpgroup drives the copy engine through a ring of shared-memory slots, one or two consumer
// warpgroups multiply from shared memory. Blocks are persistent: each takes tile after tile, and the producer runs ahead into the
// next tile while the consumers still store the last one.

#include "kernels/gpu_matmul.h"
namespace warploom::kernels {
namespace {
using tile::Index;
using tile::TensorId;

// The product with its sides exchanged: outᵀ = bᵀ·aᵀ.
Contraction exchanged(Contraction c) {
  std::swap(c.a, c.b), std::swap(c.m, c.n), std::swap(c.row, c.column);
  return c;
}

class MatmulWgmma : public Family {
 public:
  std::string name() const override { return "matmul_wgmma"; }

  bool covers(const Region& region, const target::Capabilities& capabilities) const override {
    const auto c = contraction_of(region.nests());
    if (!capabilities.warpgroup_mma || !capabilities.tensor_copy || !c || c->k.size() != 1 || c->nest.axes.size() > 5)
      return false;
    const auto epilogue = epilogue_of(*c);
    if (!epilogue || !precision(*c, region.track)) return false;
    const Access &a = c->nest.loads[c->a], &b = c->nest.loads[c->b], &out = c->nest.outputs[0].place;
    std::vector<const Access*> outside = {&out};
    for (const int operand : *epilogue) outside.push_back(&c->nest.loads[at(operand)]);
    if (c->n.size() > 1 && b.stride(c->column) != 1 && b.stride(c->k[0]) != 1) return false;  // a strided convolution
    return is_whole(a) && is_whole(b) && std::ranges::all_of(outside, [](const Access* access) {
             return is_whole(*access) && is_computed_float(access->dtype);
           });
  }

  Space space(const Region& region, const target::Capabilities& capabilities) const override {
    const auto c = *contraction_of(region.nests());
    const Dtype operand = precision(c, region.track)->operand;
    const int bytes = bytes_of(operand);
    const std::int64_t m = c.nest.axes[c.row], n = c.nest.axes[c.column], steps = ceil_div(c.nest.axes[c.k[0]], 128 / bytes);
    // Few rows: weights on the matrix unit's 64-row side, rows on its narrow side.
    const bool skinny = m < 128 && m < n, narrow = bytes_of(c.nest.outputs[0].place.dtype) == 2;
    using Values = std::vector<std::int64_t>;
    Values splits = {1};
    for (std::int64_t s = 2; s <= 32 && s * 4 <= steps && is_float(operand); s *= 2)
      if (s * ceil_div(m, 128) * ceil_div(n, 128) * others_of(c).second <= 2 * capabilities.processors) splits.push_back(s);
    return {name(),
            {{"block_m", {128, 256, 64}, "rows of an output tile"},
             {"block_n", skinny ? Values{16, 32, 64, 128, 8, 256} : Values{256, 128, 192, 64, 32, 160, 96},
              "columns of an output tile"},
             {"block_k", bytes == 2 ? Values{64, 128} : Values{128 / bytes}, "depth of one slot"},
             {"stages", {4, 3, 2, 5, 6, 8}, "slots of the ring"},
             {"consumers", {2, 1}, "warpgroups that multiply"},
             {"group", {8, 16, 4, 1}, "rows of tiles taken together"},
             {"cluster", {1, 2}, "blocks below each other that fetch one tile of the second operand together"},
             {"split", splits, "parts of k computed apart and summed by a program of its own"},
             {"exchange", skinny ? Values{1, 0} : Values{0, 1}, "1: the transposed product, second operand first"},
             {"through_shared", narrow ? Values{1, 0} : Values{0, 1},
              "1: results leave through shared memory, whole rows at a time, 0: from registers"}}};
  }

  Status legal(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto given = *contraction_of(region.nests());
    const Precision p = *precision(given, region.track);
    const Contraction c = field(s, "exchange") ? exchanged(given) : given;
    const Access& b = c.nest.loads[c.b];
    const auto m = field(s, "block_m"), n = field(s, "block_n"), k = field(s, "block_k"), consumers = field(s, "consumers"),
               split = field(s, "split", 1), cluster = field(s, "cluster", 1), accumulators = m * n / (128 * consumers),
               steps = ceil_div(c.nest.axes[c.k[0]], k), tiles = ceil_div(c.nest.axes[c.row], m);
    const int bytes = bytes_of(p.operand), stored = split > 1 ? 4 : bytes_of(c.nest.outputs[0].place.dtype);
    const bool through_shared = field(s, "through_shared") != 0, along_n = b.stride(c.column) == 1 || b.stride(c.k[0]) != 1;
    WARPLOOM_CHECK(first_broken(
        s, {{m % (64 * consumers) != 0, "block_m a multiple of 64 rows a consumer", m},
            {accumulators > (p.promotes() ? 64 : 128), "at most 128 accumulators a thread, 64 with a second set", accumulators},
            {cluster > 1 && (tiles < cluster || c.m.size() > 1), "cluster=1 where fewer tiles lie below each other", tiles},
            {cluster > 1 && n % (8 * cluster) != 0, "cluster=1 where tiles are too narrow to share", n},
            {p.operand == Dtype::i8 && n % 16 && n > 24, "block_n a multiple of 16 for integers", n},
            {along_n && bytes == 2 && n % 16, "block_n of whole 32-byte panels", n},
            {split > 1 && (split - 1) * ceil_div(steps, split) >= steps, "a split that leaves every part some of k", split},
            {through_shared && n * stored % 32, "through_shared=0 for narrow tiles", n}}));
    const auto slot = (m + n) * k * bytes * (p.terms > 1 ? 2 : 1), staging = through_shared ? m * n * stored : 0;
    return fits(s, slot * field(s, "stages") + staging + 1024, capabilities);
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto given = *contraction_of(region.nests());
    const Precision p = *precision(given, region.track);
    Contraction c = field(s, "exchange") ? exchanged(given) : given;
    Programs out;
    const Prepared a = prepare_operand(out, "a", c.nest.loads[c.a], c.row, c.k[0], p),
                   b = prepare_operand(out, "b", c.nest.loads[c.b], c.column, c.k[0], p);
    const auto split = field(s, "split", 1);
    if (split == 1) {
      multiply(out, c, p, a, b, s, capabilities);
      return out;
    }
    // Parts, the last axis, lie one after another, each as the result does, whichever of the two ways the product is computed.
    const auto [others, batch] = others_of(given);
    const std::int64_t m = given.nest.axes[given.row], n = given.nest.axes[given.column], pitch = round_up(n, 4);
    c.nest.axes.push_back(split);
    std::vector<Affine> place(3, Affine{0, std::vector<std::int64_t>(c.nest.axes.size())});
    std::int64_t below = batch;
    for (const std::size_t axis : others) place[0].steps[axis] = below /= given.nest.axes[axis];
    place[0].steps.back() = batch, place[1].steps[given.row] = 1, place[2].steps[given.column] = 1;
    const Access parts{.name = "parts", .shape = {split * batch, m, n}, .strides = {pitch * m, pitch, 1}, .at = place};
    out.workspaces.push_back({"parts", parts.dtype, {split * batch * m * pitch}});
    Contraction part = c;
    part.nest.outputs = {{static_cast<int>(c.sum), parts}};
    multiply(out, part, p, a, b, s, capabilities);
    sum_parts(out, field(s, "exchange") ? exchanged(c) : c, parts);
    return out;
  }

 private:
  static std::optional<Precision> precision(const Contraction& c, Track track) {
    return precision_of(c.nest.loads[c.a].dtype, c.nest.loads[c.b].dtype, track);
  }
  // Whether it is read or written from the first element of its tensor on, each dimension along an axis.
  static bool is_whole(const Access& access) {
    return access.inside && access.lookup_dim < 0 &&
           std::ranges::all_of(access.at, [](const Affine& c) { return c.begin == 0 && std::ranges::min(c.steps) >= 0; });
  }
  // The axes along which a tile is one element, and how many elements there are along them.
  static std::pair<std::vector<std::size_t>, std::int64_t> others_of(const Contraction& c) {
    std::pair<std::vector<std::size_t>, std::int64_t> out{{}, 1};
    for (std::size_t a = 0; a < c.nest.axes.size(); ++a)
      if (a != c.row && a != c.column && a != c.k[0]) out.first.push_back(a), out.second *= c.nest.axes[a];
    return out;
  }

  static void multiply(Programs& out, const Contraction& c, const Precision& precision, const Prepared& a, const Prepared& b,
                       const Schedule& s, const target::Capabilities& capabilities) {
    const Nest& nest = c.nest;
    const auto bm = field(s, "block_m"), bn = field(s, "block_n"), bk = field(s, "block_k"), cluster = field(s, "cluster", 1);
    const int consumers = static_cast<int>(field(s, "consumers"));
    const bool split = precision.terms > 1;
    const std::size_t k_axis = c.k[0];
    NestTile whole(nest);
    whole.extent[c.row] = bm, whole.extent[c.column] = bn, whole.extent[k_axis] = bk;
    // The blocks of a cluster take tiles below each other, so that one tile of b serves them all.
    const TileOrder order(c, whole, field(s, "group"), cluster);
    const std::int64_t parts = field(s, "split", 1), steps = ceil_div(nest.axes[k_axis], bk), part_steps = ceil_div(steps, parts),
                       count = order.count() * parts, workers = std::min<std::int64_t>(count, capabilities.processors / cluster);

    Draft draft("matmul");
    auto& t = draft.b;
    t.grid(workers * cluster).cluster(cluster).warps(4 + 4 * consumers);
    // Slots hold a as [m, k] and b as [n, k], whichever of the two axes is contiguous.
    struct Operand {
      const Access& access;
      std::vector<std::size_t> axes;
      std::string name;
      bool shared;  // by the blocks of a cluster
      TensorId from = -1, slot = -1;
    };
    std::vector<Operand> operands = {{a.high, {c.row, k_axis}, "a", false}, {b.high, {c.column, k_axis}, "b", true}};
    if (split) operands.push_back({a.low, {c.row, k_axis}, "a_rest", false});
    if (split) operands.push_back({b.low, {c.column, k_axis}, "b_rest", true});
    std::vector<TensorId> slots;
    for (Operand& one : operands) {
      one.from = declare(draft, (one.shared ? "B" : "A") + one.name.substr(1), nest, one.access, one.axes);
      slots.push_back(one.slot = t.shared(one.name, precision.operand, {one.shared ? bn : bm, bk}));
    }
    const auto ring = t.pipeline("ring", static_cast<int>(field(s, "stages")), slots);
    const TensorId staging = field(s, "through_shared") ? t.shared("staging", nest.outputs[0].place.dtype, {bm, bn}) : -1;

    // Tile after tile; with parts of k, all tiles of one part, then of the next.
    const auto tiles = [&](const std::function<void(NestTile, const Index& begin, const Index& end)>& body) {
      t.for_("tile", tile::block(0) / cluster, count, workers, [&](const Index& linear) {
        if (parts == 1) return body(order.at(linear), 0, steps);
        NestTile tile = order.at(linear % order.count());
        const Index part = linear / order.count(), begin = part * part_steps;
        tile.origin.back() = part;
        body(tile, begin, tile::min(begin + part_steps, Index(steps)));
      });
    };
    t.roles([&] {
      t.role("producer", 4, consumers > 1 ? 40 : 0, [&] {
        tiles([&](NestTile tile, const Index& begin, const Index& end) {
          t.for_("k", begin, end, 1, [&](const Index& k) {
            tile.origin[k_axis] = k * bk;
            t.produce(ring, [&] {
              for (const Operand& one : operands) {
                const auto source = box(draft, one.from, one.access, one.axes, tile);
                if (cluster > 1 && one.shared) t.multicast(source, t.all(one.slot), "x");
                else t.copy(source, t.all(one.slot));
              }
            });
          });
        });
      });
      t.role("consumer", 4 * consumers, consumers > 1 ? 232 : 0, [&] {
        const TensorId acc = t.reg("acc", precision.accumulator(), {bm, bn});
        const bool promotes = precision.promotes();
        const TensorId part_sum = promotes ? t.reg("part", Dtype::f32, {bm, bn}) : acc;
        const auto add = [&](std::size_t x, std::size_t y) { t.mma(part_sum, t.all(slots[x]), t.all(slots[y]), false, true); };
        tiles([&](const NestTile& tile, const Index& begin, const Index& end) {
          t.fill(acc, 0);
          t.for_("k", begin, end, 1, [&](const Index&) {
            if (promotes) t.fill(part_sum, 0);
            t.consume(ring, promotes ? 0 : 1, [&] {
              if (split) add(2, 1), add(0, 3);
              add(0, 1);
            });
            if (promotes) t.map(acc, t.value(acc) + t.value(part_sum));
          });
          store(draft, c, acc, tile, {c.row, c.column}, staging);
        });
      });
    });
    draft.finish(out);
  }

  // Sums partial products, which lie along the last axis of the nest, in a fixed order, and applies the epilogue.
  static void sum_parts(Programs& out, const Contraction& c, const Access& parts) {
    const std::vector<std::size_t> axes = {c.row, c.column};
    NestTile whole(c.nest);
    const std::int64_t rows = whole.extent[c.row] = c.nest.axes[c.row] < 16 ? 4 : 16, columns = whole.extent[c.column] = 256;
    const TileOrder order(c, whole, 1);
    Draft draft("sum_parts");
    auto& t = draft.b;
    t.grid(order.count()).warps(8);
    const TensorId P = declare(draft, "P", c.nest, parts, axes);
    NestTile tile = order.at(tile::block(0));
    const TensorId acc = t.reg("acc", Dtype::f32, {rows, columns}), x = t.reg("x", Dtype::f32, {rows, columns});
    for (std::int64_t part = 0; part < c.nest.axes.back(); ++part) {
      tile.origin.back() = part;
      t.copy(box(draft, P, parts, axes, tile), t.all(part == 0 ? acc : x), 0, true);
      if (part > 0) t.map(acc, t.value(acc) + t.value(x));
    }
    store(draft, c, acc, tile, axes);
    draft.finish(out);
  }
};
}  // namespace
const Family& matmul_wgmma_family() {
  static const MatmulWgmma family;
  return family;
}
}  // namespace warploom::kernels
