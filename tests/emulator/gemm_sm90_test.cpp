#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
namespace {
constexpr int kShared = 3 * 32768 + 32768 + 64;

struct Gemm {
  int m;
  int n;
  int k;
  std::vector<uint16_t> a;
  std::vector<uint16_t> b;
  std::vector<uint16_t> c;
  bool a_written = true;

  Gemm(int m_, int n_, int k_) : m(m_), n(n_), k(k_) {
    a = random_bf16(static_cast<size_t>(m) * pitch(k), 1);
    b = random_bf16(static_cast<size_t>(k) * pitch(n), 2);
    c.assign(static_cast<size_t>(m) * pitch(n), 0x7fc0);
  }

  static size_t pitch(int x) { return static_cast<size_t>((x + 7) / 8 * 8); }

  Report run(Entry entry, Options options) {
    wl::TensorMap ma = matrix_map(a.data(), 2, m, k, int(pitch(k)), 128, 64, 1);
    wl::TensorMap mb = matrix_map(b.data(), 2, k, n, int(pitch(n)), 64, 64, 1);
    wl::TensorMap mc = matrix_map(c.data(), 2, m, n, int(pitch(n)), 64, 64, 1);
    void* args[] = {&ma, &mb, &mc, &k};
    Launch l;
    l.entry = entry;
    l.grid[0] = (n + 127) / 128;
    l.grid[1] = (m + 127) / 128;
    l.block = 384;
    l.shared_bytes = kShared;
    l.args = args;
    l.options = options;
    l.allocations = {{a.data(), a.size() * 2, "a", !a_written, a_written},
                     {b.data(), b.size() * 2, "b"},
                     {c.data(), c.size() * 2, "c", true, false}};
    return emulator::run(l);
  }

  double error() const {
    return matmul_error(m, n, k, a, int(pitch(k)), b, int(pitch(n)), [&](int i, int j) {
      return from_bf16(c[static_cast<size_t>(i) * pitch(n) + static_cast<size_t>(j)]);
    });
  }
};

TEST(GemmSm90, IsRightOnWholeTilesWheneverEffectsHappen) {
  const Library lib({read_kernel("gemm_sm90")});
  for (Timing timing : {Timing::early, Timing::late, Timing::random}) {
    Gemm g(256, 256, 256);
    const Report r = g.run(lib.entry("gemm_sm90"), {.timing = timing});
    EXPECT_TRUE(r.clean()) << r.text();
    EXPECT_LT(g.error(), 4e-3);
  }
}

TEST(GemmSm90, IsRightOnRaggedEdges) {
  const Library lib({read_kernel("gemm_sm90")});
  Gemm g(200, 136, 100);
  const Report r = g.run(lib.entry("gemm_sm90"), {.seed = 5});
  EXPECT_TRUE(r.clean()) << r.text();
  EXPECT_LT(g.error(), 4e-3);
}

TEST(GemmSm90, GivesNoFalseAlarmOverSeeds) {
  const Library lib({read_kernel("gemm_sm90")});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Gemm g(128, 128, 320);
    const Report r = g.run(lib.entry("gemm_sm90"), {.seed = seed});
    ASSERT_TRUE(r.clean()) << "seed " << seed << "\n" << r.text();
  }
}

const std::vector<Mutant> kMutants = {
    {"full barrier not made", "wl::mbarrier_init(full + 8 * s, 1);", ""},
    {"full count 2", "wl::mbarrier_init(full + 8 * s, 1);", "wl::mbarrier_init(full + 8 * s, 2);"},
    {"empty count 255", "wl::mbarrier_init(empty + 8 * s, 256);",
     "wl::mbarrier_init(empty + 8 * s, 255);"},
    {"empty count 128", "wl::mbarrier_init(empty + 8 * s, 256);",
     "wl::mbarrier_init(empty + 8 * s, 128);"},
    {"empty count 257", "wl::mbarrier_init(empty + 8 * s, 256);",
     "wl::mbarrier_init(empty + 8 * s, 257);"},
    {"no init fence", "wl::fence_mbarrier_init();", ""},
    {"no barrier after init", "wl::sync_threads();", ""},
    {"every thread makes the barriers", "if (wl::thread() == 0) {", "{"},
    {"no wait for an empty stage", "wl::mbarrier_wait(empty + 8 * s, ((i / kStages) & 1) ^ 1);",
     ""},
    {"wrong parity for empty", "((i / kStages) & 1) ^ 1", "((i / kStages) & 1)"},
    {"parity of empty never flips", "((i / kStages) & 1) ^ 1", "1"},
    {"no expected bytes", "wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes);",
     "wl::mbarrier_arrive(full + 8 * s);"},
    {"too few expected bytes", "wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes);",
     "wl::mbarrier_arrive_expect_tx(full + 8 * s, kBytesA);"},
    {"too many expected bytes", "wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes);",
     "wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes + 16);"},
    {"expect removed", "wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes);", ""},
    {"load signals the wrong barrier", "map_a, full + 8 * s", "map_a, empty + 8 * s"},
    {"one load missing",
     "wl::tma_load(stage + kBytesA + 8192, map_b, full + 8 * s, n0 + 64, i * 64);", ""},
    {"load into the wrong place", "stage + kBytesA + 8192", "stage + kBytesA"},
    {"load into an unaligned place", "wl::tma_load(stage, map_a",
     "wl::tma_load(stage + 128, map_a"},
    {"no wait for a full stage", "wl::mbarrier_wait(full + 8 * s, (i / kStages) & 1);", ""},
    {"only one thread waits for a full stage",
     "wl::mbarrier_wait(full + 8 * s, (i / kStages) & 1);",
     "if (wl::thread() % 128 == 0) wl::mbarrier_wait(full + 8 * s, (i / kStages) & 1);"},
    {"wrong parity for full", "wl::mbarrier_wait(full + 8 * s, (i / kStages) & 1);",
     "wl::mbarrier_wait(full + 8 * s, ((i / kStages) & 1) ^ 1);"},
    {"no wgmma fence", "wl::wgmma_fence();", ""},
    {"no wgmma commit", "wl::wgmma_commit();", ""},
    {"no wgmma wait", "wl::wgmma_wait<0>();", ""},
    {"wgmma wait leaves one group", "wl::wgmma_wait<0>();", "wl::wgmma_wait<1>();"},
    {"accumulators not zeroed", "acc[j] = 0.0f;", ";"},
    {"stage released before the wait",
     "wl::wgmma_wait<0>();\n      wl::wgmma_fence_regs<64>(wl::at(acc, 0));\n      "
     "wl::mbarrier_arrive(empty + 8 * s);",
     "wl::mbarrier_arrive(empty + 8 * s);\n      wl::wgmma_wait<0>();\n      "
     "wl::wgmma_fence_regs<64>(wl::at(acc, "
     "0));"},
    {"stage never released", "wl::mbarrier_arrive(empty + 8 * s);", ""},
    {"stage released by one thread", "wl::mbarrier_arrive(empty + 8 * s);",
     "if (wl::thread() % 128 == 0) wl::mbarrier_arrive(empty + 8 * s);"},
    {"wrong stage multiplied", "const unsigned b = smem + s * kStageBytes + kBytesA;",
     "const unsigned b = smem + ((s + 1) % kStages) * kStageBytes + kBytesA;"},
    {"no proxy fence", "wl::fence_async_shared();", ""},
    {"proxy fence after the barrier",
     "wl::fence_async_shared();\n    wl::sync_named(1 + group, 128);",
     "wl::sync_named(1 + group, 128);\n    wl::fence_async_shared();"},
    {"proxy fence by one thread", "wl::fence_async_shared();",
     "if (wl::thread() % 128 == 0) wl::fence_async_shared();"},
    {"no barrier before the store", "wl::sync_named(1 + group, 128);", ""},
    {"barrier for too few", "wl::sync_named(1 + group, 128);", "wl::sync_named(1 + group, 96);"},
    {"barrier for too many", "wl::sync_named(1 + group, 128);", "wl::sync_named(1 + group, 160);"},
    {"every thread stores", "if (wl::thread() % 128 == 0) {\n      wl::tma_store",
     "{\n      wl::tma_store"},
    {"stores not committed", "wl::bulk_commit();", ""},
    {"stores not waited for", "wl::bulk_wait_read<0>();", ""},
    {"one group of stores not waited for", "wl::bulk_wait_read<0>();", "wl::bulk_wait_read<1>();"},
    {"output over the stages' barriers", "const unsigned out = smem + kOut + group * 16384;",
     "const unsigned out = smem + kOut + group * 16384 + 1024;"},
    {"output over a stage", "const unsigned out = smem + kOut + group * 16384;",
     "const unsigned out = smem + group * 16384;"},
    {"registers beyond the pool", "wl::reg_dealloc<40>();", ""},
};

TEST(GemmSm90, EveryMutantIsCaughtForEverySeed) {
  expect_every_one_caught("gemm_sm90", kMutants, [](Entry entry, Options options) {
    return !Gemm(128, 128, 448).run(entry, options).clean();
  });
}

TEST(GemmSm90, LoadingATensorThatNobodyWroteIsReported) {
  const Library lib({read_kernel("gemm_sm90")});
  Gemm g(128, 128, 64);
  g.a_written = false;
  const Report r = g.run(lib.entry("gemm_sm90"), {});
  ASSERT_FALSE(r.clean());
  EXPECT_EQ(r.hazards[0].kind, "uninitialised");
}

TEST(GemmSm90, OneThreadMayReleaseTheStage) {
  std::string text = replaced(read_kernel("gemm_sm90"), "wl::mbarrier_init(empty + 8 * s, 256);",
                              "wl::mbarrier_init(empty + 8 * s, 2);");
  text = replaced(text, "wl::mbarrier_arrive(empty + 8 * s);",
                  "wl::sync_named(1 + group, 128);\n if (wl::thread() % 128 == 0) "
                  "wl::mbarrier_arrive(empty + 8 * s);");
  const Library lib({text});
  Gemm g(128, 128, 448);
  const Report r = g.run(lib.entry("gemm_sm90"), {});
  EXPECT_TRUE(r.clean()) << r.text();
}
}  // namespace
}  // namespace warploom::emulator::testing
