// Products on a CPU: kernels of matmul_cpu, with the programs that pack their operands, against the
// FP64 reference and the interpreter.
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "../codegen/cpu_run.h"
#include "../graph/builder.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "matmul_cpu_trials.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
using namespace matmul_cpu_trials;  // graphs and trials of these tests

void add_matmuls(Trials& trials) {
  for (int i = 0; i < 4; ++i) {
    Form form{(i & 1) != 0, (i & 2) != 0, i};
    trials.add(matmul(37, 83, 300, form));
    form.dtype = i < 2 ? Dtype::bf16 : Dtype::f16;
    trials.add(matmul(20, 48, 40, form));
  }
}

TEST(MatmulCpu, AgreesWithTheReference) {
  Trials trials(0);
  add_matmuls(trials);
  trials.add(matmul(1, 700, 90, {.behind = 1}));
  trials.add(matmul(5, 530, 600, {.behind = 3}));
  trials.add(matmul(9, 5, 1300));
  trials.add(batched({3, 10, 20}, {20, 30}));
  trials.add(batched({3, 10, 20}, {3, 20, 30}));
  trials.add(batched({2, 1, 5, 8}, {3, 8, 6}));
  trials.add(saturating(20, 70, 150));
  trials.add(with_reduced_rows(70, 90, 40, true));
  trials.add(with_reduced_rows(65, 33, 140, false));
  trials.add(saturating(20, 70, 70));
  EXPECT_GE(trials.run(), 50u);
}

TEST(MatmulCpu, AgreesOnNarrowerVectors) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  Trials trials(32);
  add_matmuls(trials);
  EXPECT_GE(trials.run({"-mavx2", "-mfma", "-mf16c"}), 30u);
}

// Stores an infinity in a row of x and a NaN in a column of w, and sees where they come.
void expect_special_values_apart(const MatmulCpuConfig& config, Track track) {
  constexpr int64_t m = 13;
  constexpr int64_t n = 35;
  constexpr int64_t k = 21;
  Trial trial(matmul(m, n, k), config, machine(), as_int(track), track);
  auto* x = reinterpret_cast<float*>(trial.buffer("x").data());
  auto* w = reinterpret_cast<float*>(trial.buffer("w").data());
  x[12 * k + 20] = HUGE_VALF;
  w[20 * n + 34] = NAN;
  CpuLibrary library;
  for (const Kernel& kernel : trial.kernels())
    library.add(kernel);
  ASSERT_TRUE(library.compile());
  trial.call(library);
  const auto* y = reinterpret_cast<const float*>(trial.result().data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float value = y[i * n + j];
      EXPECT_EQ(std::isnan(value), j == 34) << i << ", " << j;
      EXPECT_EQ(std::isinf(value), i == 12 && j != 34) << i << ", " << j;
    }
}

// An infinity reaches its row alone, and NaN its column: nothing is multiplied by what is padded.
TEST(MatmulCpu, KeepsInfinitiesAndNanToTheirRowsAndColumns) {
  MatmulCpuConfig config{.tile_m = 6,
                         .tile_n = 32,
                         .block_k = 11,
                         .pack_a = PackedBy::program,
                         .pack_b = PackedBy::program};
  expect_special_values_apart(config, Track::fp32);
  config.block_k = 12;
  config.instruction = CpuInstruction::dot;
  expect_special_values_apart(config, Track::bf16);
}

TEST(MatmulCpu, LongSumsOfOneSignStayWithinTheTrack) {
  constexpr int64_t k = 16384;
  const auto capabilities = machine();
  for (const int64_t block : {256, 512}) {
    const MatmulCpuConfig config{.tile_m = 4, .tile_n = 16, .block_k = block};
    Trial trial(matmul(4, 16, k), config, capabilities, as_int(block));
    for (const auto* name : {"x", "w"}) {
      auto* own = reinterpret_cast<float*>(trial.buffer(name).data());
      for (size_t i = 0; i < trial.buffer(name).size() / 4; ++i)
        own[i] = std::abs(own[i]);
    }
    CpuLibrary library;
    for (const Kernel& kernel : trial.kernels())
      library.add(kernel);
    ASSERT_TRUE(library.compile());
    trial.call(library);
    const auto want = trial.wanted();
    ASSERT_TRUE(want) << describe(want.error());
    double wrong = 0;
    double all = 0;
    for (size_t i = 0; i < (*want)[0].size(); ++i) {
      const double meant = (*want)[0][i];
      wrong += std::pow(load_as_double(Dtype::f32, trial.result().data(), i) - meant, 2);
      all += meant * meant;
    }
    EXPECT_LT(std::sqrt(wrong / all), 4.8e-7) << config.block_k;
  }
}

TEST(MatmulCpu, SumsBehindWhichTheResultSaturatesAreMadeInParts) {
  const Region region(saturating(40, 90, 300), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 4, .tile_n = 32, .block_k = 300, .step_k = 32};
  const double in_parts = family->guess(config);
  EXPECT_TRUE(family->legal(config));
  config.step_k = 0;
  EXPECT_LT(in_parts, family->guess(config));
  const FamilyPtr plain = matmul_cpu_family(Region(matmul(40, 90, 300), Track::fp32), machine());
  config.step_k = 32;
  EXPECT_FALSE(plain->legal(config));
}

TEST(MatmulCpu, SaysWhatATileThatRegistersDoNotHoldLacks) {
  const Region region(matmul(64, 64, 64), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  const auto status = family->legal(MatmulCpuConfig{.tile_m = 32, .tile_n = 64, .block_k = 64});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, SaysThatPanelsBeyondTheCacheExceedTheResources) {
  const Region region(matmul(65536, 64, 1024), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  const auto status = family->legal(MatmulCpuConfig{.tile_m = 6, .tile_n = 64, .block_k = 256});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceLimit);
}

// Several products, as attention's, and rows of which few fit: fusion counts on the family here.
TEST(MatmulCpu, HasAConfigWhereverRowsOfTheResultAreReduced) {
  graph::Builder b("scores");
  const auto q = b.input("q", Dtype::f32, {12, 512, 64});
  const auto k = b.input("k", Dtype::f32, {12, 64, 512});
  const auto scores = b.add(OpKind::MatMul, {q, k});
  b.output(b.add(OpKind::Softmax, {scores}, {{"axis", int64_t{-1}}}));
  const graph::Graph many = *graph::decompose(*b.finish());
  for (const graph::Graph& graph : {many, with_reduced_rows(8192, 4096, 64, false)})
    for (const int cores : {2, 4, 16}) {
      target::Capabilities capabilities = machine();
      capabilities.num_sms = cores;
      const FamilyPtr family = matmul_cpu_family(Region(graph, Track::fp32), capabilities);
      ASSERT_TRUE(family);
      bool is_found = false;
      SpaceWalk(*family).all([&](const KernelConfig&) {
        is_found = true;
        return false;
      });
      EXPECT_TRUE(is_found) << cores << " cores";
    }
}

TEST(MatmulCpu, LeavesWindowsAndTrianglesToLoops) {
  graph::Builder b("conv");
  const auto x = b.input("x", Dtype::f32, {1, 8, 12, 12});
  b.output(b.add(OpKind::Conv, {x, b.input("w", Dtype::f32, {8, 8, 3, 3})},
                 {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  const Region region(*graph::decompose(*b.finish()), Track::fp32);
  EXPECT_FALSE(matmul_cpu_family(region, machine()));
}

TEST(MatmulCpu, GuessesThatRowsAPageApartArePacked) {
  const Region region(matmul(1024, 1024, 1024), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256};
  const double in_place = family->guess(config);
  config.pack_b = PackedBy::task;
  EXPECT_LT(family->guess(config), in_place);
}

TEST(MatmulCpu, GuessesATileOfManyRowsBeforeOneOfFew) {
  const Region region(matmul(512, 512, 512), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256, .pack_b = PackedBy::task};
  const double large = family->guess(config);
  config.tile_m = 2;
  EXPECT_LT(large, family->guess(config));
}
}  // namespace
}  // namespace warploom::kernels
