// Not a gate on a busy machine: prints what a K-step of a 128 x 128 x 64 tile costs, and fails only
// when it is far off.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>
#include "emulator.h"
#include "harness.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
namespace {
double milliseconds(Entry entry, int k) {
  std::vector<uint16_t> a(static_cast<size_t>(128 * k));
  std::vector<uint16_t> b(a.size());
  std::vector<uint16_t> c(128 * 128);
  wl::TensorMap ma = matrix_map(a.data(), 2, 128, k, k, 128, 64, 1);
  wl::TensorMap mb = matrix_map(b.data(), 2, k, 128, 128, 64, 64, 1);
  wl::TensorMap mc = matrix_map(c.data(), 2, 128, 128, 128, 64, 64, 1);
  void* args[] = {&ma, &mb, &mc, &k};
  Launch l;
  l.entry = entry;
  l.block = 384;
  l.shared_bytes = 3 * 32768 + 32768 + 64;
  l.args = args;
  l.allocations = {{a.data(), a.size() * 2, "a"},
                   {b.data(), b.size() * 2, "b"},
                   {c.data(), c.size() * 2, "c", true, false}};
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t t0 = std::clock();  // CPU time: the machine may be busy
    run(l);
    best = std::min(best, 1e3 * static_cast<double>(std::clock() - t0) / CLOCKS_PER_SEC);
  }
  return best;
}

TEST(Speed, AStepOfAMatmulTileTakesAboutAMillisecond) {
  const Library lib({read_kernel("gemm_sm90")});
  const Entry e = lib.entry("gemm_sm90");
  const double few = milliseconds(e, 256);
  const double many = milliseconds(e, 256 + 32 * 64);
  const double step = (many - few) / 32;
  printf("%.3f ms a K-step, %.2f ms for 4 steps\n", step, few);
  EXPECT_LT(step, 10);
}
}  // namespace
}  // namespace warploom::emulator::testing
