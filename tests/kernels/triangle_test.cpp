// Products of which a triangle is kept, or with triangles for factors: what is recognised, what is
// skipped, and that nothing else is.
#include <gtest/gtest.h>
#include "kernels/gpu_matmul.h"
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"
#include "nets.h"
#include "runtime/emulate.h"
#include "target/capabilities.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind, test::Net;

struct Product {
  int64_t m = 130;
  int64_t n = 140;
  int64_t k = 40;
  std::vector<int64_t> batch = {};

  graph::Shape shape(int64_t x, int64_t y) const {
    graph::Shape out = batch;
    out.insert(out.end(), {x, y});
    return out;
  }
};

graph::TensorId triangle(Net& net, graph::TensorId x, int64_t upper, int64_t diagonal = 0) {
  return net.add(OpKind::Trilu, {x, net.reshape(net.ints({diagonal}), {})}, {{"upper", upper}});
}

graph::Graph kept(const Product& p, int64_t upper, int64_t diagonal, Dtype dtype = Dtype::f32) {
  Net net;
  const auto y =
      net.add(OpKind::MatMul, {net.x(p.shape(p.m, p.k), dtype), net.x(p.shape(p.k, p.n), dtype)});
  return net.with({triangle(net, y, upper, diagonal)});
}
enum class Side : uint8_t { a, b };

graph::Graph times(const Product& p, Side side, int64_t upper, int64_t diagonal,
                   Dtype dtype = Dtype::f32) {
  Net net;
  auto a = net.x(p.shape(p.m, p.k), dtype);
  auto b = net.x(p.shape(p.k, p.n), dtype);
  (side == Side::a ? a : b) = triangle(net, side == Side::a ? a : b, upper, diagonal);
  return net.with({net.add(OpKind::MatMul, {a, b})});
}

Contraction found(const graph::Graph& graph) {
  auto c = contraction_of(nests_of(graph));
  EXPECT_TRUE(c) << to_text(graph);
  return c.value_or(Contraction{});
}

// Whether the bounds hold at these indices along the axes of row, column and k.
bool within(const Contraction& c, int64_t row, int64_t column, int64_t k = 0) {
  return std::ranges::all_of(c.bounds, [&](const Affine& b) {
    return b.begin + b.steps[c.row] * row + b.steps[c.column] * column + b.steps[c.k[0]] * k >= 0;
  });
}

TEST(Triangle, OfAProductBoundsIt) {
  for (const int64_t upper : {0, 1})
    for (const int64_t diagonal : {-70, -1, 0, 1, 70}) {
      const Contraction c = found(kept({}, upper, diagonal));
      ASSERT_EQ(c.bounds.size(), 1u);
      for (const int64_t row : {0, 1, 69, 70, 71, 129})
        for (const int64_t column : {0, 1, 2, 69, 70, 71, 139})
          EXPECT_EQ(within(c, row, column),
                    upper ? column - row >= diagonal : column - row <= diagonal);
    }
}

TEST(Triangle, OfABatchBoundsEveryMatrix) {
  const Contraction c = found(kept({.batch = {3}}, 1, 0));
  ASSERT_EQ(c.bounds.size(), 1u);
  EXPECT_EQ(c.bounds[0].steps[c.batch[0]], 0);
}

TEST(Triangle, StrictComparisonsLeaveTheDiagonalOut) {
  for (const bool exchanged : {false, true}) {
    Net net;
    std::vector<int64_t> rows(130);
    std::vector<int64_t> columns(140);
    std::iota(rows.begin(), rows.end(), 0);
    std::iota(columns.begin(), columns.end(), 0);
    const auto row = net.reshape(net.ints(rows), {130, 1});
    const auto column = net.ints(columns);
    const auto mask = net.add(OpKind::Less, {row, column});
    const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
    const auto zero = net.number(0);
    const auto chosen = net.add(OpKind::Where, {mask, exchanged ? zero : y, exchanged ? y : zero});
    const Contraction c = found(net.with({chosen}));
    ASSERT_EQ(c.bounds.size(), 1u);
    EXPECT_EQ(within(c, 5, 5), exchanged);
    EXPECT_EQ(within(c, 5, 6), !exchanged);
    EXPECT_EQ(within(c, 6, 5), exchanged);
  }
}

TEST(Triangle, OfATransposedProductBoundsItTheOtherWay) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const Contraction c = found(net.with({triangle(net, net.transpose(y, {1, 0}), 1)}));
  ASSERT_EQ(c.bounds.size(), 1u);
  EXPECT_EQ(c.nest.axes[c.row], 140);
  EXPECT_TRUE(within(c, 3, 7));
  EXPECT_FALSE(within(c, 7, 3));
}

TEST(Triangle, WithinATriangleIsABand) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const Contraction c = found(net.with({triangle(net, triangle(net, y, 1, -2), 0, 2)}));
  EXPECT_EQ(c.bounds.size(), 2u);
  for (const int64_t d : {-3, -2, 0, 2, 3}) EXPECT_EQ(within(c, 50, 50 + d), std::abs(d) <= 2);
}

TEST(Triangle, BoundsNothingWhereTheProductIsNeededBesides) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  EXPECT_TRUE(found(net.with({net.add(OpKind::Add, {triangle(net, y, 1), y})})).bounds.empty());
}

TEST(Triangle, BoundsNothingWhereAnInputChooses) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const auto mask = net.add(OpKind::Less, {net.x({130, 140}), net.number(0)});
  EXPECT_TRUE(found(net.with({net.add(OpKind::Where, {mask, y, net.number(0)})})).bounds.empty());
}

TEST(Triangle, OfRowsThatAreReducedBoundsThemOnlyBefore) {
  for (const bool before : {false, true}) {
    Net net;
    const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
    const auto soft = net.add(OpKind::Softmax, {before ? triangle(net, y, 1) : y});
    const auto c =
        contraction_of(nests_of(net.with({before ? soft : triangle(net, soft, 1)})), true);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->bounds.size(), before ? 1u : 0u);
  }
}

TEST(Triangle, AsAFactorBoundsTheSum) {
  const Product p{130, 140, 150};
  for (const Side side : {Side::a, Side::b})
    for (const int64_t upper : {0, 1}) {
      const Contraction c = found(times(p, side, upper, 4));
      ASSERT_EQ(c.bounds.size(), 1u);
      EXPECT_EQ(c.triangles.size(), 1u);
      for (const int64_t at : {0, 50, 53, 54, 55, 129})
        for (const int64_t k : {0, 46, 50, 54, 58, 149}) {
          const int64_t above = side == Side::a ? k - at : at - k;
          EXPECT_EQ(within(c, side == Side::a ? at : 7, side == Side::a ? 7 : at, k),
                    upper ? above >= 4 : above <= 4);
        }
    }
}

TEST(Triangle, FilledWithAnotherNumberIsNoFactor) {
  Net net;
  std::vector<int64_t> places(150);
  std::iota(places.begin(), places.end(), 0);
  const auto mask =
      net.add(OpKind::Less, {net.ints(places), net.reshape(net.ints(places), {150, 1})});
  const auto a = net.add(OpKind::Where, {mask, net.x({150, 150}), net.number(1)});
  EXPECT_FALSE(
      contraction_of(nests_of(net.with({net.add(OpKind::MatMul, {a, net.x({150, 20})})}))));
}

// Every slot of every tile, for shapes, diagonals and tiles at random, against all its terms;
// ragged tiles count as whole ones.
TEST(Triangle, SkipsTheSlotsWithoutTermsAndNoOthers) {
  Random random(1, "slots");
  const auto any = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() + random.below(values.size()));
  };
  int bounded = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Product p{any({129, 150, 200, 256}), any({130, 160, 190, 256}), any({129, 144, 256})};
    const int64_t upper = any({0, 1});
    const int64_t diagonal = static_cast<int64_t>(random.below(300)) - 150;
    const int64_t kind = any({0, 1, 2});
    const Contraction c =
        found(kind == 0 ? kept(p, upper, diagonal)
                        : times(p, kind == 1 ? Side::a : Side::b, upper, diagonal));
    if (c.bounds.empty()) continue;  // all of it, or nothing
    ++bounded;
    const int64_t bm = any({16, 32, 64, 128});
    const int64_t bn = any({24, 32, 64, 96});
    const int64_t bk = any({8, 32, 64});
    TileCoord tile(c.nest, {{c.row, bm}, {c.column, bn}, {c.k[0], bk}});
    const int64_t slots = ceil_div(p.k, bk);
    const auto holds = [&](int64_t m, int64_t n, int64_t k) {
      for (int64_t i = m; i < m + bm; ++i)
        for (int64_t j = n; j < n + bn; ++j)
          for (const int64_t last : {k, k + bk - 1})
            if (within(c, i, j, last)) return true;
      return false;
    };
    for (int64_t m = 0; m < p.m; m += bm)
      for (int64_t n = 0; n < p.n; n += bn) {
        tile.origin[c.row] = m;
        tile.origin[c.column] = n;
        const auto [begin, end] = tile.slots_within(c.bounds, c.k[0], 0, slots);
        for (int64_t slot = 0; slot < slots; ++slot)
          ASSERT_EQ(slot >= begin.constant().value_or(-1) && slot < end.constant().value_or(-1),
                    holds(m, n, slot * bk))
              << fmt::format(
                     "{}x{}x{} upper {} diagonal {} kind {} tiles {}x{}x{} at {} {} slot {}: {} to "
                     "{}",
                     p.m, p.n, p.k, upper, diagonal, kind, bm, bn, bk, m, n, slot, begin.text(),
                     end.text());
      }
  }
  EXPECT_GE(bounded, 200);
}

TEST(Triangle, PartWithinIsThatOfAllTiles) {
  for (const int64_t upper : {0, 1})
    for (const int64_t diagonal : {-40, 0, 25}) {
      const Contraction c = found(kept({}, upper, diagonal));
      double kept = 0;
      for (int64_t i = 0; i < 130; ++i)
        for (int64_t j = 0; j < 140; ++j) kept += within(c, i, j);
      EXPECT_NEAR(part_within(c), kept / (130 * 140), 2e-3);
    }
}

TEST(Triangle, NeedsHalfTheWorkOfTheWhole) {
  const Product p{256, 256, 64};
  const double whole = 2.0 * 256 * 256 * 64;
  const auto flops = [](graph::Graph graph) {
    return work_of(Region(std::move(graph), Track::fp32)).flops;
  };
  EXPECT_NEAR(flops(kept(p, 1, 0)) / whole, 257.0 / 512, 2e-3);
  EXPECT_NEAR(flops(times({256, 64, 256}, Side::a, 0, 0)) / whole, 257.0 / 512, 2e-3);
}

TEST(Triangle, TurnsFromBothEndsTakeEveryTileOnce) {
  for (int64_t count = 1; count < 200; count += 3)
    for (const int64_t workers : {1, 2, 7, 66, 132}) {
      std::vector<bool> taken(at(count));
      for (int64_t turn = 0; turn < count; ++turn) {
        const auto number = from_both_ends(turn, count, std::min(workers, count)).constant();
        ASSERT_TRUE(number && *number >= 0 && *number < count && !taken[at(*number)]);
        taken[at(*number)] = true;
      }
    }
}

// 1056 of 2048 tiles among 132 blocks: 8 each.
TEST(Triangle, IsSharedEvenlyByPersistentBlocks) {
  for (const int64_t upper : {0, 1}) {
    const Contraction c = found(kept({8192, 8192, 64}, upper, 0));
    const TileScheduler order(c, TileCoord(c.nest, {{c.row, 128}, {c.column, 256}}), 8);
    std::vector<int> work(132);
    for (int64_t turn = 0; turn < order.count(); ++turn) {
      const TileCoord tile = order.at(from_both_ends(turn, order.count(), 132));
      work[at(turn % 132)] += tile.slots_within(c.bounds, c.k[0], 0, 1).first.constant() == 0;
    }
    EXPECT_LE(std::ranges::max(work), 9);
  }
}

Result<LaunchList> built(const graph::Graph& graph, const std::string& target, Track track,
                         const KernelConfig& schedule) {
  return build(Region(graph, track), schedule, *target::capabilities_of(target));
}

const KernelConfig kWgmma = test::config_of("matmul_wgmma", {{"block_m", 128},
                                                             {"block_n", 256},
                                                             {"block_k", 64},
                                                             {"stages", 3},
                                                             {"consumers", 2},
                                                             {"through_shared", 1},
                                                             {"group", 8}});
const KernelConfig kMma = test::config_of("matmul_mma", {{"block_m", 128},
                                                         {"block_n", 128},
                                                         {"block_k", 32},
                                                         {"stages", 3},
                                                         {"warps", 8},
                                                         {"group", 8}});

TEST(Triangle, IsPredictedToTakeAboutHalfTheTime) {
  const Product p{4096, 4096, 4096};
  for (const auto& [target, schedule] :
       {std::pair<std::string, KernelConfig>{"sm_90a", kWgmma}, {"sm_80", kMma}}) {
    Net net;
    const auto y =
        net.add(OpKind::MatMul, {net.x({p.m, p.k}, Dtype::bf16), net.x({p.k, p.n}, Dtype::bf16)});
    const auto whole = built(net.with({y}), target, Track::bf16, schedule);
    ASSERT_TRUE(whole) << describe(whole.error());
    for (const auto& graph : {kept(p, 1, 0, Dtype::bf16), kept(p, 0, 0, Dtype::bf16),
                              times(p, Side::b, 0, 0, Dtype::bf16)}) {
      const auto half = built(graph, target, Track::bf16, schedule);
      ASSERT_TRUE(half) << describe(half.error());
      EXPECT_GT(half->predicted_us, 0.4 * whole->predicted_us) << target;
      EXPECT_LT(half->predicted_us, 0.7 * whole->predicted_us) << target;
    }
  }
}

TEST(Triangle, WithNothingLeftHasAKernel) {
  for (const auto& [target, schedule] :
       {std::pair<std::string, KernelConfig>{"sm_90a", kWgmma}, {"sm_80", kMma}}) {
    const auto list =
        built(kept({256, 256, 64}, 0, -256, Dtype::bf16), target, Track::bf16, schedule);
    EXPECT_TRUE(list) << describe(list.error());
  }
}

TEST(Triangle, IsNotSharedByPartsOfK) {
  KernelConfig schedule = kWgmma;
  schedule.set("stream", 1);
  const auto list =
      built(kept({4096, 4096, 512}, 1, 0, Dtype::bf16), "sm_90a", Track::bf16, schedule);
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(describe(list.error()).find("stream=0 where a triangle"), std::string::npos)
      << describe(list.error());
}

// Tiles of zeros do nothing with shared memory but fill the ring's first slot with zeros: each of
// four warps once for a and once for b.
TEST(Triangle, IsReadAsMuchLessAsThereIsLessOfIt) {
  const Product p{256, 256, 64};
  const auto reads = [&](const graph::Graph& graph) {
    const KernelConfig schedule = test::config_of(
        "matmul_mma",
        {{"block_m", 32}, {"block_n", 32}, {"block_k", 32}, {"stages", 2}, {"warps", 4}});
    const auto list = built(graph, "sm_80", Track::bf16, schedule);
    EXPECT_TRUE(list) << describe(list.error());
    std::vector<std::byte> a(256 * 64 * 2);
    std::vector<std::byte> b(a);
    std::vector<std::byte> y(256 * 256 * 2);
    runtime::EmulatedBuffers buffers = {
        {list->inputs[0].name, a}, {list->inputs[1].name, b}, {list->outputs[0].name, y}};
    runtime::EmulateOptions options;
    options.banks = true;
    const auto used = runtime::emulate(*list, buffers, options);
    EXPECT_TRUE(used) << describe(used.error());
    int64_t instructions = 0;
    for (const auto& line : *used) instructions += line.instructions;
    return instructions;
  };
  Net net;
  const auto y =
      net.add(OpKind::MatMul, {net.x({256, 64}, Dtype::bf16), net.x({64, 256}, Dtype::bf16)});
  const auto half = reads(kept(p, 1, 0, Dtype::bf16));
  const auto whole = reads(net.with({net.add(OpKind::Relu, {y})}));
  // those on or above the diagonal
  const int64_t tiles = 64;
  const int64_t kept_tiles = 36;
  EXPECT_EQ(half, whole / tiles * kept_tiles + (tiles - kept_tiles) * 8);
}
}  // namespace
}  // namespace warploom::kernels
