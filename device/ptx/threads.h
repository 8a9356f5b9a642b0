// Who am I; exchange inside a warp, registers moved between warpgroups, and launches that overlap.
// Blocks are one-dimensional.
#pragma once

namespace wl {
WL_FN int thread() {
  return static_cast<int>(threadIdx.x);
}

WL_FN int lane() {
  return static_cast<int>(threadIdx.x & 31u);
}

WL_FN int warp() {
  return static_cast<int>(threadIdx.x >> 5);
}

WL_FN int block_x() {
  return static_cast<int>(blockIdx.x);
}

WL_FN int block_y() {
  return static_cast<int>(blockIdx.y);
}

WL_FN int block_z() {
  return static_cast<int>(blockIdx.z);
}

WL_FN int cluster_rank() {
  int r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

// All 32 lanes take part.
WL_FN float shfl_xor(float x, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, x, lane_mask);
}

WL_FN int shfl_xor(int x, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, x, lane_mask);
}

// The value of lane `source`.
WL_FN float shfl(float x, int source) {
  return __shfl_sync(0xffffffffu, x, source);
}

WL_FN int shfl(int x, int source) {
  return __shfl_sync(0xffffffffu, x, source);
}

template <int BYTES> WL_FN auto word() {
  if constexpr (BYTES == 4)
    return 0u;
  else if constexpr (BYTES == 2)
    return static_cast<unsigned short>(0);
  else
    return static_cast<unsigned char>(0);
}

// BYTES in 1, 2, 4 of registers of lane `source`, into those of the lanes where take holds.
template <int BYTES, class T> WL_FN void shfl(T* dst, const T* src, int source, bool take = true) {
  static_assert(BYTES == 1 || BYTES == 2 || BYTES == 4, "a shuffle moves 1, 2 or 4 bytes");
  using Word = decltype(word<BYTES>());
  const unsigned moved =
      __shfl_sync(0xffffffffu, static_cast<unsigned>(*reinterpret_cast<const Word*>(src)), source);
  if (take) *reinterpret_cast<Word*>(dst) = static_cast<Word>(moved);
}

// Registers a thread of this warpgroup may use from now on; N a multiple of 8, 24 to 256.
template <int N> WL_FN void reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> WL_FN void reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// Waiting comes before the first access to memory: the kernels before this one on the stream may
// still write it, or read it.
WL_FN void griddepcontrol_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Behind the wait: blocks of the next kernel on the stream may start when all of this one's have
// come here, and wait in their turn.
WL_FN void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;");
}
}  // namespace wl
