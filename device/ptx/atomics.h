// Indivisible updates of global memory, and flags that hand memory from block to block.
//
// red_add, red_max, red_min: BYTES in 1, 2, 4, 8, 16 a thread, aligned to BYTES; each element by
// itself. T is float or int; for red_add also f16 and (sm_90) bf16. NaN wins a red_max and a
// red_min.
#pragma once

namespace wl {
// Sums, of vectors where there are such: they are stores of another name. Bytes at once:
#if __CUDA_ARCH__ >= 900
template <class T> inline constexpr int red_bytes = 16;
#else
template <class T> inline constexpr int red_bytes = 4;
#endif
template <> inline constexpr int red_bytes<int> = 4;
template <class T, int BYTES> struct RedAdd;
#define WL_RED_ADD(T, mode, half, word) \
  WL_DEFINE_STORE("red.relaxed.gpu.global.add" mode, half, word, "l", void*, RedAdd<T, BYTES>)
WL_RED_ADD(int, "", "", ".s32")
WL_RED_ADD(float, "", "", ".f32")
WL_RED_ADD(f16, ".noftz", ".f16", ".f16x2")
WL_RED_ADD(bf16, ".noftz", ".bf16", ".bf16x2")
#undef WL_RED_ADD
#undef WL_DEFINE_STORE

template <int BYTES, class T> WL_FN void red_add(T* p, const T* src, bool pred = true) {
  constexpr int step = BYTES < red_bytes<T> ? BYTES : red_bytes<T>;
  constexpr int elements = step / static_cast<int>(sizeof(T));
  WL_UNROLL for (int i = 0; i < BYTES / step; ++i) if (pred)
      RedAdd<T, step>::go(p + i * elements, src + i * elements);
}

// Floats of one sign are ordered as their bits, negative ones backwards: each sign has its own
// integer instruction.
#define WL_RED_ORDER(name, own, other, nan)                                                        \
  WL_FN void name##_one(int* p, int x) {                                                           \
    asm volatile("red.relaxed.gpu.global." own ".s32 [%0], %1;" ::"l"(p), "r"(x) : "memory");      \
  }                                                                                                \
  WL_FN void name##_one(float* p, float x) {                                                       \
    const unsigned bits = x != x ? nan : bits_of(x);                                               \
    if (bits >> 31)                                                                                \
      asm volatile("red.relaxed.gpu.global." other ".u32 [%0], %1;" ::"l"(p), "r"(bits)            \
                   : "memory");                                                                    \
    else                                                                                           \
      asm volatile("red.relaxed.gpu.global." own ".s32 [%0], %1;" ::"l"(p), "r"(bits) : "memory"); \
  }                                                                                                \
  template <int BYTES, class T> WL_FN void name(T* p, const T* src, bool pred = true) {            \
    WL_UNROLL for (int i = 0; i < BYTES / 4; ++i) if (pred) name##_one(p + i, src[i]);             \
  }
WL_RED_ORDER(red_max, "max", "min", 0x7fffffffu)
WL_RED_ORDER(red_min, "min", "max", 0xffffffffu)
#undef WL_RED_ORDER

// *p += n, after everything that this thread did or (by a barrier) knows to be done is visible to
// the whole GPU.
WL_FN void signal_flag(int* p, int n) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(n) : "memory");
}

// Returns once *p >= least. What was done before the signals is visible from then on, to the copy
// engine too.
WL_FN void wait_flag(const int* p, int least) {
  int seen;
  do
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(p) : "memory");
  while (seen < least);
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}
}  // namespace wl
