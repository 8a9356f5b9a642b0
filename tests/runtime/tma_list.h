#pragma once
#include "fixtures.h"

namespace warploom::runtime {
// A 100 x 40 float matrix through boxes of 32 x 8, in clusters of two blocks, back out by ordinary
// stores.
inline LaunchList tma_list(const std::string& arch) {
  Kernel kernel;
  kernel.name = "boxes";
  kernel.grid = {2, 14, 1};
  kernel.cluster = {2, 1, 1};
  kernel.threads = 256;
  kernel.shared_bytes = 2048;
  kernel.source = R"(
#include "wl.h"
extern "C" __global__ void __launch_bounds__(256) boxes(WL_TENSOR_MAP x, float* y) {
  const unsigned smem = wl::shared_base(), bar = smem + 1024;
  if (wl::thread() == 0) {
    wl::mbarrier_init(bar, 1);
    wl::fence_mbarrier_init();
    wl::mbarrier_arrive_expect_tx(bar, 1024);
    wl::tma_load(smem, x, bar, wl::block_x() * 32, wl::block_y() * 8);
  }
  wl::sync_threads();
  wl::mbarrier_wait(bar, 0);
  const int row = wl::block_y() * 8 + wl::thread() / 32;
  const int col = wl::block_x() * 32 + wl::thread() % 32;
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(smem + wl::thread() * 4));
  if (row < 100 && col < 40) y[row * 40 + col] = value;
}
)";
  Argument x{.buffer = "x", .tensor_map = true};
  x.map = {.dtype = Dtype::f32,
           .dims = {40, 100},
           .strides_bytes = {160},
           .box = {32, 8},
           .swizzle_bytes = 0};
  kernel.args = {x, {.buffer = "y"}};
  LaunchList list;
  list.engine = Engine::cuda;
  list.arch = arch;
  list.inputs = {{"x", Dtype::f32, {100, 40}}};
  list.outputs = {{"y", Dtype::f32, {100, 40}}};
  list.kernels = {kernel};
  return list;
}
}  // namespace warploom::runtime
