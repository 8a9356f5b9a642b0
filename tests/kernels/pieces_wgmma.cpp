// wgmma_product: what follows from a config, its constraints one by one, and its footprint in
// shared memory.
#include <gtest/gtest.h>
#include <functional>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/wgmma_kernel.h"
#include "kernels/pieces/wgmma_product.h"
#include "kernels/trials.h"
#include "loopnest/triangle_nets.h"
#include "pieces.h"
#include "support/problems.h"

namespace warploom::kernels {
namespace {
using test::found, test::hopper;

constexpr Precision kBf16{Dtype::bf16, 1};

WgmmaProduct product_of(const test::MatmulShape& shape, Dtype dtype = Dtype::bf16,
                        const Precision& precision = kBf16) {
  return {found(test::matmul_graph(shape, dtype)), false, precision, hopper()};
}

const test::MatmulShape kLarge{4096, 4096, 4096};
// The second operand lies K-major: no panels along its columns.
const test::MatmulShape kTransposed{.m = 4096, .n = 4096, .k = 4096, .transpose_b = true};
const test::MatmulShape kShort{4096, 4096, 256};  // 4 stages of 64

// One constraint, broken by one change of the default choices, which keep them all.
struct Broken {
  std::string expected;
  std::function<void(WgmmaChoices&)> change;
  test::MatmulShape shape = kLarge;
  Dtype dtype = Dtype::bf16;
  Precision precision = kBf16;
};

std::vector<Broken> broken_tiles() {
  return {
      {"block_m a multiple of 64 rows a math warpgroup", [](auto& s) { s.block_m = 96; }},
      {"at most 128 accumulators a thread, 96 with a second set, 64 with a third, 48 with a "
       "fourth",
       [](auto& s) {
         s.block_m = 256;
         s.block_n = 256;
         s.num_math_warpgroups = 1;
         s.stages = 2;
       }},
      {"8 to 256 columns, a multiple of 8", [](auto& s) { s.block_n = 12; }, kTransposed},
      {"block_n a multiple of 16 for integers",
       [](auto& s) { s.block_n = 40; },
       kLarge,
       Dtype::bf16,
       {Dtype::i8, 1}},
      {"block_n of whole 32-byte panels", [](auto& s) { s.block_n = 24; }},
      {"ctas_per_sm=1 with two math warpgroups or a cluster",
       [](auto& s) {
         s.ctas_per_sm = 2;
         s.stages = 2;
       }},
  };
}

std::vector<Broken> broken_loops() {
  return {
      {"promotion_interval=1 where k has fewer stages, or windows no whole runs",
       [](auto& s) { s.promotion_interval = 8; }, kShort},
      {"block_k of at most 128 bytes of tf32",
       [](auto& s) { s.stages = 2; },
       kLarge,
       Dtype::f32,
       {Dtype::tf32, 1}},
      {"stages of at most 96 terms of split operands",
       [](auto& s) {
         s.block_m = 64;
         s.block_n = 64;
         s.block_k = 128;
         s.stages = 2;
         s.num_math_warpgroups = 1;
         s.fp32_emulation = Emulation::fp16x3;
       },
       kLarge,
       Dtype::f32,
       {Dtype::f16, 3}},
      {"fp32_emulation=tf32x3 or fp16x3 for fp32 products, none for others",
       [](auto& s) { s.fp32_emulation = Emulation::tf32x3; }},
      {"epilogue=direct for narrow tiles",
       [](auto& s) {
         s.epilogue = Epilogue::smem;
         s.block_n = 8;
       },
       kTransposed},
  };
}

std::vector<Broken> broken_schedules() {
  return {
      {"split_k=1, or scheduler=split_k and parts of at least 2", [](auto& s) { s.split_k = 2; }},
      {"a split_k that leaves every part some of k",
       [](auto& s) {
         s.scheduler = Scheduler::split_k;
         s.split_k = 3;
       },
       kShort},
      {"cluster_m=1 ctas_per_sm=1 with scheduler=stream_k",
       [](auto& s) {
         s.scheduler = Scheduler::stream_k;
         s.cluster_m = 2;
       }},
      {"another scheduler than stream_k where tiles fill every wave, or not even the first",
       [](auto& s) { s.scheduler = Scheduler::stream_k; },
       {1024, 1024, 4096}},
  };
}

TEST(PieceWgmmaConstraints, EachOneBrokenAloneIsNamedAlone) {
  std::vector<Broken> all = broken_tiles();
  for (const auto& more : {broken_loops(), broken_schedules()})
    all.insert(all.end(), more.begin(), more.end());
  for (const Broken& one : all) {
    WgmmaChoices s;
    one.change(s);
    const FailedConstraints failed = product_of(one.shape, one.dtype, one.precision).constraints(s);
    ASSERT_EQ(failed.size(), 1u) << one.expected << (failed.empty() ? "" : failed[0].expected);
    EXPECT_EQ(failed[0].expected, one.expected);
    EXPECT_EQ(failed[0].code, ErrorCode::kScheduleIllegal);
  }
  EXPECT_TRUE(product_of(kLarge).constraints({}).empty());
}

TEST(PieceWgmmaConstraints, StreamKIsRefusedForATriangle) {
  const graph::Graph upper = test::kept({4096, 4096, 4096}, 1, 0, Dtype::bf16);
  const WgmmaProduct product(found(upper), false, kBf16, hopper());
  WgmmaChoices s;
  s.scheduler = Scheduler::stream_k;
  const FailedConstraints failed = product.constraints(s);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].expected, "another scheduler than stream_k where a triangle bounds the sum");
}

// What the constraint of shared memory counts, seen where it fails.
std::string footprint(const WgmmaProduct& product, const WgmmaChoices& s) {
  for (const FailedConstraint& one : product.constraints(s))
    if (one.code == ErrorCode::kResourceLimit) return one.found;
  return "fits";
}

TEST(PieceWgmmaFootprint, IsStagesStagingAnd1024Bytes) {
  const WgmmaProduct product = product_of(kLarge);
  WgmmaChoices s;
  s.stages = 8;                                      // of 128 · 64 and 128 · 64 elements of 2 bytes
  EXPECT_EQ(footprint(product, s), "263168 bytes");  // 8 · 32768 + 1024
  s.epilogue = Epilogue::smem;
  EXPECT_EQ(footprint(product, s), "295936 bytes");  // and 128 · 128 · 2
  s.split_k = 2;
  s.scheduler = Scheduler::split_k;
  EXPECT_EQ(footprint(product, s), "328704 bytes");  // parts of k are sums of 4 bytes
  s = {};
  EXPECT_EQ(footprint(product, s), "fits");  // 132096
  s.ctas_per_sm = 2;
  s.num_math_warpgroups = 1;
  EXPECT_EQ(footprint(product, s), "264192 bytes");  // twice that
}

TEST(PieceWgmmaFootprint, HasBothPartsOfSplitOperandsAndWholeSwizzleAtoms) {
  const WgmmaProduct split = product_of(kLarge, Dtype::f32, {Dtype::tf32, 3});
  WgmmaChoices s;
  s.block_k = 32;
  s.fp32_emulation = Emulation::tf32x3;
  EXPECT_EQ(footprint(split, s), "263168 bytes");  // 4 · 2 · (128 + 128) · 128 + 1024
  const WgmmaProduct narrow = product_of(kTransposed);
  WgmmaChoices thin;
  thin.block_n = 8;
  thin.block_k = 32;
  thin.stages = 30;
  EXPECT_EQ(footprint(narrow, thin), "277504 bytes");  // 30 · (8192 + 512, as 1024) + 1024
}

TEST(PieceWgmmaProduct, KnowsItsTilesStagesAndAccumulators) {
  const WgmmaProduct product = product_of({4096, 512, 1024});
  WgmmaChoices s;
  s.block_n = 256;
  const TileCoord tile = product.tile_of(product.c, s);
  EXPECT_EQ(tile.extent[product.c.row], 128);
  EXPECT_EQ(tile.extent[product.c.column], 256);
  EXPECT_EQ(tile.extent[*product.c.channel], 64);
  EXPECT_EQ(product.stages_of(64), 16);
  EXPECT_EQ(product.row_ctas(s), 1);
  EXPECT_EQ(product.most_accumulators({}), 128);
  const WgmmaProduct scaled = product_of({4096, 512, 1024}, Dtype::f32, {Dtype::tf32, 3});
  EXPECT_EQ(scaled.most_accumulators({}), 96);
  WgmmaChoices in_rounds;
  in_rounds.promotion_interval = 4;
  EXPECT_EQ(scaled.most_accumulators(in_rounds), 64);
}

TEST(PieceWgmmaProduct, CompensatesLongSumsOfSplitOperandsInRegistersOfTheirOwn) {
  const test::MatmulShape deep = {128, 128, 64 * 130};
  const WgmmaProduct product = product_of(deep, Dtype::f32, {Dtype::f16, 3});
  WgmmaChoices s;
  s.fp32_emulation = Emulation::fp16x3;
  EXPECT_TRUE(product.compensates(s));
  EXPECT_EQ(product.most_accumulators(s), 64);
  s.promotion_interval = 4;
  EXPECT_EQ(product.most_accumulators(s), 48);
  s.split_k = 2;  // 65 stages each
  EXPECT_FALSE(product.compensates(s));
  EXPECT_FALSE(product_of(deep).compensates(s));  // bf16
}

TEST(PieceWgmmaKernel, ComputesAProductFromOperandsAsTheyLie) {
  const graph::Graph graph = test::matmul_graph({192, 144, 160}, Dtype::bf16);
  const WgmmaProduct product(found(graph), false, kBf16, hopper());
  WgmmaChoices s;
  s.block_m = 128;
  s.block_n = 96;
  s.stages = 3;
  const Contraction& c = product.sides(s);
  const Prepared a{c.access_a(), {}};
  const Prepared b{c.access_b(), {}};
  Family::Programs made;
  WgmmaKernel(product, c, a, b, s).add_to(made);
  EXPECT_TRUE(made.workspaces.empty());
  test::expect_fp64(graph, made, test::allowed(Dtype::bf16));
}
}  // namespace
}  // namespace warploom::kernels
