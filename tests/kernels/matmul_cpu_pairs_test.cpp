// Products on a CPU that take several terms at once: by dot products of pairs, and by tiles.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "matmul_cpu_trials.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
using namespace matmul_cpu_trials;  // graphs and trials of these tests

// Odd numbers of terms, rows and columns, each orientation, batches, what follows, whole rows.
void add_pairs(Trials& trials) {
  for (int i = 0; i < 4; ++i) {
    const Form form{(i & 1) != 0, (i & 2) != 0, i, Dtype::bf16};
    trials.add_pairs(matmul(37, 83, 300, form));
    trials.add_pairs(matmul(21, 50, 41, form));
  }
  trials.add_pairs(matmul(40, 70, 130, {.behind = 1}));
  trials.add_pairs(matmul(1, 700, 90, {.dtype = Dtype::bf16}));
  trials.add_pairs(matmul(9, 5, 1301, {.dtype = Dtype::bf16}));
  trials.add_pairs(batched({3, 10, 20}, {20, 30}, Dtype::bf16));
  trials.add_pairs(batched({2, 1, 5, 9}, {3, 9, 6}, Dtype::bf16));
  trials.add_pairs(with_reduced_rows(70, 90, 40, true));
}

TEST(MatmulCpu, DotProductsAgreeWithTheReference) {
  Trials trials(0);
  add_pairs(trials);
  EXPECT_GE(trials.run(), 14u);
}

TEST(MatmulCpu, DotProductsAgreeOnNarrowerVectors) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  Trials trials(32);
  add_pairs(trials);
  EXPECT_GE(trials.run({"-mavx2", "-mfma", "-mf16c"}), 14u);
}

// Terms that fill steps and that do not, rows and columns that fill tiles and that do not, each
// orientation, batches, what follows, whole rows.
void add_tiles(Trials& trials) {
  for (int i = 0; i < 4; ++i) {
    const Form form{(i & 1) != 0, (i & 2) != 0, i, Dtype::bf16};
    trials.add_tiles(matmul(37, 83, 320, form));
    trials.add_tiles(matmul(50, 50, 41, form));
  }
  trials.add_tiles(matmul(40, 70, 130, {.behind = 1}));
  trials.add_tiles(matmul(64, 96, 1301, {.dtype = Dtype::bf16}));
  trials.add_tiles(batched({3, 40, 64}, {64, 33}, Dtype::bf16));
  trials.add_tiles(with_reduced_rows(70, 90, 40, true));
}

TEST(MatmulCpu, TilesAgreeWithTheReference) {
  if (!machine().has_bf16_tiles) GTEST_SKIP() << "no vectors of 64 bytes here";
  Trials trials(0);
  add_tiles(trials);
  EXPECT_GE(trials.run(), 24u);
}

TEST(MatmulCpu, TilesAgreeWhereACompilerKnowsOfNone) {
  if (!machine().has_bf16_tiles) GTEST_SKIP() << "no vectors of 64 bytes here";
  Trials trials(0);
  add_tiles(trials);
  EXPECT_GE(trials.run({"-march=x86-64-v4"}), 24u);
}

TEST(MatmulCpu, DotProductsWantAProcessorThatHasThem) {
  const Region region(matmul(64, 64, 64, {.dtype = Dtype::bf16}), Track::bf16);
  const MatmulCpuConfig config{.tile_m = 6,
                               .tile_n = 64,
                               .block_k = 64,
                               .instruction = CpuInstruction::dot,
                               .pack_b = PackedBy::program};
  target::Capabilities capabilities = machine();
  EXPECT_TRUE(matmul_cpu_family(region, capabilities)->legal(config));
  capabilities.has_bf16_dot = false;
  const auto status = matmul_cpu_family(region, capabilities)->legal(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, TilesWantAProcessorThatHasThemAndMoreSumsThanRegistersHold) {
  if (!machine().has_bf16_tiles) GTEST_SKIP() << "no vectors of 64 bytes here";
  const Region region(matmul(64, 64, 64, {.dtype = Dtype::bf16}), Track::bf16);
  const auto is_legal = [&](int64_t rows, int64_t columns, bool has_tiles) {
    target::Capabilities capabilities = machine();
    capabilities.has_bf16_tiles = has_tiles;
    const MatmulCpuConfig config{.tile_m = rows,
                                 .tile_n = columns,
                                 .block_k = 64,
                                 .instruction = CpuInstruction::tile,
                                 .pack_b = PackedBy::program};
    return static_cast<bool>(matmul_cpu_family(region, capabilities)->legal(config));
  };
  EXPECT_TRUE(is_legal(32, 32, true));
  EXPECT_FALSE(is_legal(32, 32, false));
  EXPECT_FALSE(is_legal(6, 32, true));   // dot products hold these sums in registers
  EXPECT_FALSE(is_legal(48, 32, true));  // six tiles of sums, and five of operands
}

TEST(MatmulCpu, DotProductsAreNotForWhatTheTrackMayNotRound) {
  const MatmulCpuConfig config{.tile_m = 6,
                               .tile_n = 64,
                               .block_k = 64,
                               .instruction = CpuInstruction::dot,
                               .pack_a = PackedBy::program,
                               .pack_b = PackedBy::program};
  const graph::Graph graph = matmul(64, 64, 64);
  EXPECT_TRUE(matmul_cpu_family(Region(graph, Track::bf16), machine())->legal(config));
  const auto status = matmul_cpu_family(Region(graph, Track::fp32), machine())->legal(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, GuessesDotProductsBeforeMultiplyAdds) {
  const Region region(matmul(512, 512, 512, {.dtype = Dtype::bf16}), Track::bf16);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256};
  const double by_fma = family->guess(config);
  config.instruction = CpuInstruction::dot;
  config.pack_b = PackedBy::program;
  EXPECT_LT(family->guess(config), by_fma);
}
}  // namespace
}  // namespace warploom::kernels
