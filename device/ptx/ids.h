// Who am I. Blocks are one-dimensional.
#pragma once

namespace wl {

WL_FN int thread() { return static_cast<int>(threadIdx.x); }
WL_FN int lane() { return static_cast<int>(threadIdx.x & 31u); }
WL_FN int warp() { return static_cast<int>(threadIdx.x >> 5); }
WL_FN int block_x() { return static_cast<int>(blockIdx.x); }
WL_FN int block_y() { return static_cast<int>(blockIdx.y); }
WL_FN int block_z() { return static_cast<int>(blockIdx.z); }
WL_FN int grid_x() { return static_cast<int>(gridDim.x); }
WL_FN int grid_y() { return static_cast<int>(gridDim.y); }
WL_FN int grid_z() { return static_cast<int>(gridDim.z); }
WL_FN int cluster_rank() {
  int r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
WL_FN int cluster_size() {
  int r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return r;
}

}  // namespace wl
