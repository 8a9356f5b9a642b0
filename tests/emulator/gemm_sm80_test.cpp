#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "emulator.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
struct Gemm {
  int m;
  int n;
  int k;
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
  std::vector<float> c;

  Gemm(int m_, int n_, int k_) : m(m_), n(n_), k(k_) {
    a = random_bf16(static_cast<size_t>(m * k), 3);
    b = random_bf16(static_cast<size_t>(k * n), 4);
    c.assign(static_cast<size_t>(m * n), NAN);
  }

  Report run(Entry entry, Options options) {
    const void* pa = a.data();
    const void* pb = b.data();
    void* pc = c.data();
    void* args[] = {&pa, &pb, &pc, &m, &n, &k};
    Launch l;
    l.entry = entry;
    l.grid[0] = (n + 63) / 64;
    l.grid[1] = (m + 63) / 64;
    l.block = 128;
    l.shared_bytes = 3 * 8192;
    l.args = args;
    l.options = options;
    l.allocations = {{a.data(), a.size() * 2, "a"},
                     {b.data(), b.size() * 2, "b"},
                     {c.data(), c.size() * 4, "c", true, false}};
    return emulator::run(l);
  }

  double error() const {
    return matmul_error(m, n, k, a, k, b, n,
                        [&](int i, int j) { return c[static_cast<size_t>(i * n + j)]; });
  }
};

TEST(GemmSm80, IsRightWheneverCopiesLand) {
  const Library lib({read_kernel("gemm_sm80")});
  for (Timing timing : {Timing::early, Timing::late, Timing::random}) {
    Gemm g(128, 128, 128);
    Gemm ragged(100, 72, 88);
    Report r = g.run(lib.entry("gemm_sm80"), {.timing = timing});
    EXPECT_TRUE(r.clean()) << r.text();
    EXPECT_LT(g.error(), 1e-5);
    r = ragged.run(lib.entry("gemm_sm80"), {.timing = timing});
    EXPECT_TRUE(r.clean()) << r.text();
    EXPECT_LT(ragged.error(), 1e-5);
  }
}

TEST(GemmSm80, GivesNoFalseAlarmOverSeeds) {
  const Library lib({read_kernel("gemm_sm80")});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Gemm g(64, 64, 160);
    const Report r = g.run(lib.entry("gemm_sm80"), {.seed = seed});
    ASSERT_TRUE(r.clean()) << "seed " << seed << "\n" << r.text();
  }
}

const std::vector<Mutant> kMutants = {
    {"no wait for copies", "wl::cp_async_wait<kStages - 2>();", ""},
    {"wait leaves one group more", "wl::cp_async_wait<kStages - 2>();",
     "wl::cp_async_wait<kStages - 1>();"},
    {"one thread waits for copies", "wl::cp_async_wait<kStages - 2>();",
     "if (wl::thread() == 0) wl::cp_async_wait<kStages - 2>();"},
    {"no barrier", "wl::sync_threads();", ""},
    {"barrier before the wait", "wl::cp_async_wait<kStages - 2>();\n    wl::sync_threads();",
     "wl::sync_threads();\n    wl::cp_async_wait<kStages - 2>();"},
    {"barrier of the warp alone", "wl::sync_threads();", "wl::sync_warp();"},
    {"no commit in the loop", "    wl::cp_async_commit();\n    const unsigned tile_a",
     "    const unsigned tile_a"},
    {"no commit in the prologue", "    wl::cp_async_commit();\n  }\n  for", "  }\n  for"},
    {"ring of two stages", "smem + next % kStages * kStageBytes", "smem + next % 2 * kStageBytes"},
    {"reads the next stage", "smem + i % kStages * kStageBytes",
     "smem + (i + 1) % kStages * kStageBytes"},
    {"loads into the stage in use", "smem + next % kStages", "smem + i % kStages"},
    {"accumulators not zeroed", "acc[i] = 0.0f;", ";"},
    {"copy beyond the tensor", "a + (in_a ? (m0 + row_a) * k + k0 + col_a : 0), in_a",
     "a + (m0 + row_a) * k + k0 + col_a, true"},
    {"copy from an unaligned address", "(m0 + row_a) * k + k0 + col_a",
     "(m0 + row_a) * k + k0 + col_a + 1"},
    {"copy to an unaligned address", "stage + wl::swizzle<2, 4, 3>(c * 16)",
     "stage + 4 + wl::swizzle<2, 4, 3>(c * 16)"},
    {"half of B not copied", "wl::cp_async<16>(stage + kBytesA",
     "if (i == 0) wl::cp_async<16>(stage + kBytesA"},
    {"reads past the ring", "smem + i % kStages * kStageBytes", "smem + i * kStageBytes"},
    {"fragment not loaded", "wl::ldmatrix<4, false>", "if (t == 0) wl::ldmatrix<4, false>"},
    {"fragment index too large", "wl::at(acc, 4 * t + 2)", "wl::at(acc, 4 * t + 4)"},
    {"half a warp loads", "wl::ldmatrix<4, true>", "if (lane < 16) wl::ldmatrix<4, true>"},
    {"store not predicated", "row < m && col < n);", "true);"},
    {"both halves stored to one place", "c + (row + 8) * n + col", "c + row * n + col + 1"},
    {"part of the output not stored", "row + 8 < m && col < n", "row + 8 < m && col < n - 8"},
    {"blocks write the same tile", "wl::block_x() * 64", "wl::block_x() * 32"},
    {"leaves before its copies land",
     "  WL_UNROLL for (int t = 0; t < 8; ++t) {\n    const int row = m0",
     "  load_stage(smem, a, b, m0, n0, 0, m, n, k);\n  WL_UNROLL for (int t = 0; t < 8; ++t) {\n   "
     " const "
     "int row = m0"},
};

TEST(GemmSm80, EveryMutantIsCaughtForEverySeed) {
  expect_every_one_caught("gemm_sm80", kMutants, [](Entry entry, Options options) {
    Gemm g(100, 72, 160);
    // An element that nobody writes is no hazard: the numbers tell.
    return !g.run(entry, options).clean() || g.error() > 1e-3;
  });
}
}  // namespace
}  // namespace warploom::emulator::testing
