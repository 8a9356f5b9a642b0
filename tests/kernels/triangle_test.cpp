// Products of which a triangle is kept, or with triangles for factors: what is skipped, and that
// nothing else is.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/tile_scheduler.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/triangle_nets.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "target/capabilities.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::found, test::kept, test::Net, test::Product, test::Side, test::times, test::within;

struct TileSize {
  int64_t m;
  int64_t n;
  int64_t k;
};

// Whether the tile with that origin has a term.
bool has_term(const Contraction& c, const TileSize& size, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = m; i < m + size.m; ++i)
    for (int64_t j = n; j < n + size.n; ++j)
      for (const int64_t last : {k, k + size.k - 1})
        if (within(c, i, j, last)) return true;
  return false;
}

void expect_stages_with_terms(const Product& p, const Contraction& c, const TileSize& size,
                              const std::string& what) {
  TileCoord tile(c.nest, {{c.row, size.m}, {c.column, size.n}, {c.k[0], size.k}});
  const int64_t stages = ceil_div(p.k, size.k);
  for (int64_t m = 0; m < p.m; m += size.m)
    for (int64_t n = 0; n < p.n; n += size.n) {
      tile.origin[c.row] = m;
      tile.origin[c.column] = n;
      const auto [begin, end] = tile.stages_within(c.domain_constraints, c.k[0], 0, stages);
      for (int64_t stage = 0; stage < stages; ++stage)
        ASSERT_EQ(stage >= begin.constant().value_or(-1) && stage < end.constant().value_or(-1),
                  has_term(c, size, m, n, stage * size.k))
            << fmt::format("{} at {} {} stage {}: {} to {}", what, m, n, stage, begin.text(),
                           end.text());
    }
}

// Every stage of every tile, for shapes, diagonals and tiles at random, against all its terms;
// ragged tiles count as whole ones.
TEST(Triangle, SkipsTheSlotsWithoutTermsAndNoOthers) {
  Random random(1, "stages");
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
    if (c.domain_constraints.empty()) continue;  // all of it, or nothing
    ++bounded;
    const int64_t bm = any({16, 32, 64, 128});
    const int64_t bn = any({24, 32, 64, 96});
    const int64_t bk = any({8, 32, 64});
    const std::string what = fmt::format("{}x{}x{} upper {} diagonal {} kind {} tiles {}x{}x{}",
                                         p.m, p.n, p.k, upper, diagonal, kind, bm, bn, bk);
    ASSERT_NO_FATAL_FAILURE(expect_stages_with_terms(p, c, {bm, bn, bk}, what));
  }
  EXPECT_GE(bounded, 200);
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
        const auto number = paired_order(turn, count, std::min(workers, count)).constant();
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
      const TileCoord tile = order.at(paired_order(turn, order.count(), 132));
      work[at(turn % 132)] +=
          tile.stages_within(c.domain_constraints, c.k[0], 0, 1).first.constant() == 0;
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
                                                             {"num_math_warpgroups", 2},
                                                             {"epilogue", 1},
                                                             {"raster_group_m", 8}});
const KernelConfig kMma = test::config_of("matmul_mma", {{"block_m", 128},
                                                         {"block_n", 128},
                                                         {"block_k", 32},
                                                         {"stages", 3},
                                                         {"warps", 8},
                                                         {"raster_group_m", 8}});

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
  test::set_field(schedule, "scheduler", static_cast<int64_t>(Scheduler::stream_k));
  const auto list =
      built(kept({4096, 4096, 512}, 1, 0, Dtype::bf16), "sm_90a", Track::bf16, schedule);
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(describe(list.error()).find("where a triangle bounds the sum"), std::string::npos)
      << describe(list.error());
}

// Tiles of zeros do nothing with shared memory but fill the pipeline's first stage with zeros: each
// of four warps once for a and once for b.
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
    for (const auto& line : *used)
      instructions += line.instructions;
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
