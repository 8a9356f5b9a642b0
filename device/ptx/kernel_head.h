// Kernel heads, tensor-map parameters, registers, shared memory and unrolling, for nvcc and NVRTC.
// No CUDA header is used.
#pragma once
#define WL_PURE __device__ __forceinline__
#define WL_FN __device__ __forceinline__

#define WL_KERNEL(name, max_threads, min_blocks) \
  extern "C" __global__ void __launch_bounds__(max_threads, min_blocks) name
#define WL_KERNEL_CLUSTER(name, max_threads, min_blocks, cx, cy, cz)    \
  extern "C" __global__ void __launch_bounds__(max_threads, min_blocks) \
      __cluster_dims__(cx, cy, cz) name
#define WL_EXPORT(name)

#define WL_TENSOR_MAP const __grid_constant__ ::wl::TensorMap
#define WL_REG(T, name, n) alignas(16) T name[n]
#define WL_UNROLL _Pragma("unroll")
#define WL_UNROLL_8 _Pragma("unroll 8")
#define WL_SHARED_BASE() ::wl::shared_base()

namespace wl {
// Opaque: the driver's CUtensorMap.
struct alignas(128) TensorMap {
  unsigned long long opaque[16];
};

template <class T> WL_FN T* at(T* name, int i) {
  return name + i;
}

// Dynamic shared memory as a 32-bit address. The kernels have no static shared memory, so it starts
// at a multiple of 1024.
WL_FN unsigned shared_base() {
  extern __shared__ __align__(1024) unsigned char wl_dynamic_shared[];
  unsigned address;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
      : "=r"(address)
      : "l"(wl_dynamic_shared));
  return address;
}
}  // namespace wl
