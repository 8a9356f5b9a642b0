#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
struct Softmax {
  int rows = 2;
  int n;
  std::vector<float> x;
  std::vector<float> y;

  explicit Softmax(int n_) : n(n_), x(static_cast<size_t>(2 * n_)), y(x.size(), NAN) {
    const auto bits = random_bf16(x.size(), 9);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = 4 * from_bf16(bits[i]);
  }

  Report run(Entry entry, Options options) {
    const void* px = x.data();
    void* py = y.data();
    void* args[] = {&px, &py, &n};
    Launch l;
    l.entry = entry;
    l.grid[0] = 2 * rows;
    l.cluster[0] = 2;
    l.block = 128;
    l.shared_bytes = 64;
    l.args = args;
    l.options = options;
    l.allocations = {{x.data(), x.size() * 4, "x"}, {y.data(), y.size() * 4, "y", true, false}};
    return emulator::run(l);
  }

  double error() const {
    double worst = 0;
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      for (int i = 0; i < n; ++i)
        sum += std::exp(double(x[static_cast<size_t>(r * n + i)]));
      for (int i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(r * n + i);
        const double off = std::abs(double(y[at]) * sum / std::exp(double(x[at])) - 1);
        if (std::isnan(off)) return HUGE_VAL;
        worst = std::max(worst, off);
      }
    }
    return worst;
  }
};

TEST(SoftmaxCluster, IsRightAndCleanOverSeeds) {
  const Library lib({read_kernel("softmax_cluster")});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Softmax s(seed % 2 ? 4096 : 1024);
    const Report r = s.run(lib.entry("softmax_cluster"), {.seed = seed});
    ASSERT_TRUE(r.clean()) << r.text();
    ASSERT_LT(s.error(), 1e-5);
  }
}

TEST(SoftmaxCluster, EveryMutantIsCaughtForEverySeed) {
  const std::vector<Mutant> mutants = {
      {"no barrier in the block's reduction", "wl::sync_threads();", "", 0},
      {"no cluster barrier before remote access", "  wl::cluster_sync();\n  float m", "  float m",
       0},
      {"no cluster barrier after remote access", "  wl::cluster_sync();\n  wl::ld_shared<4>",
       "  wl::ld_shared<4>", 0},
      {"one block arrives", "wl::cluster_sync();\n  wl::ld_shared<4>",
       "if (peer) wl::cluster_sync();\n  wl::ld_shared<4>", 0},
      {"a stage used twice", "other_half(smem + 36, sum)", "other_half(smem + 32, sum)", 0},
      {"remote address without mapa", "wl::mapa(stage, peer)", "stage + (2u << 20)", 0},
      {"mapa to no block", "wl::mapa(stage, peer)", "wl::mapa(stage, peer + 2)", 0},
      {"every thread writes the stage", "if (wl::thread() == 0) wl::st_shared_cluster",
       "wl::st_shared_cluster", 0},
      {"one lane does not shuffle", "const float y = wl::shfl_xor(x, d);",
       "float y = x; if (wl::lane() != 3) y = wl::shfl_xor(x, d);", 0},
      {"load not predicated", "i * 512 < half, -1e30f", "true, -1e30f", 0},
      {"store not predicated", "wl::at(v, 4 * i), i * 512 < half", "wl::at(v, 4 * i)", 0},
  };
  expect_every_one_caught("softmax_cluster", mutants, [](Entry entry, Options options) {
    return !Softmax(1024).run(entry, options).clean();
  });
}

TEST(SoftmaxCluster, ReusingScratchAcrossAClusterBarrierIsClean) {
  const Library lib({replaced(read_kernel("softmax_cluster"), "block_reduce(smem + 16, sum, false)",
                              "block_reduce(smem, sum, false)")});
  Softmax s(1024);
  const Report r = s.run(lib.entry("softmax_cluster"), {});
  EXPECT_TRUE(r.clean()) << r.text();
}

TEST(SoftmaxCluster, EndingWhileAPeerStillReadsIsReported) {
  // The peer's stage is read remotely, and nothing keeps the peer alive until then.
  std::string text =
      replaced(read_kernel("softmax_cluster"), "  const float scale",
               "  WL_REG(float, late, 1);\n  wl::ld_shared_cluster<4>(wl::at(late, 0), "
               "wl::mapa(smem + 36, wl::cluster_rank() ^ 1));\n"
               "  const float scale");
  const Library lib({text});
  Softmax s(1024);
  const Report r = s.run(lib.entry("softmax_cluster"), {});
  EXPECT_FALSE(r.clean());
}
}  // namespace
}  // namespace warploom::emulator::testing
