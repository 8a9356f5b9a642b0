// Indivisible updates of global memory, and flags that hand memory from block to block.
//
// red_add, red_max, red_min: BYTES in 1, 2, 4, 8, 16 a thread, aligned to BYTES; each element by itself. T is float or int; for
// red_add also f16 and (sm_90) bf16. NaN wins a red_max and a red_min.
#pragma once
namespace wl {
// One element; and the 32-bit words of a vector, 1, 2 or 4 of them at once.
template <class T>
struct RedAdd;
#define WL_RED_ADD(T, mode, type, packed, constraint, value)                                                                   \
  template <>                                                                                                                  \
  struct RedAdd<T> {                                                                                                           \
    static WL_FN void one(T* p, T x) {                                                                                         \
      asm volatile("red.relaxed.gpu.global.add" mode type " [%0], %1;" ::"l"(p), constraint(value) : "memory");                \
    }                                                                                                                          \
    static WL_FN void words(unsigned* p, unsigned a) {                                                                         \
      asm volatile("red.relaxed.gpu.global.add" mode packed " [%0], %1;" ::"l"(p), "r"(a) : "memory");                         \
    }                                                                                                                          \
    static WL_FN void words(unsigned* p, unsigned a, unsigned b) {                                                             \
      asm volatile("red.relaxed.gpu.global.add" mode ".v2" packed " [%0], {%1, %2};" ::"l"(p), "r"(a), "r"(b) : "memory");     \
    }                                                                                                                          \
    static WL_FN void words(unsigned* p, unsigned a, unsigned b, unsigned c, unsigned d) {                                     \
      asm volatile("red.relaxed.gpu.global.add" mode ".v4" packed " [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(a), "r"(b), "r"(c), \
                   "r"(d)                                                                                                      \
                   : "memory");                                                                                                \
    }                                                                                                                          \
  };
WL_RED_ADD(int, "", ".s32", ".s32", "r", x)
WL_RED_ADD(float, "", ".f32", ".f32", "f", x)
WL_RED_ADD(f16, ".noftz", ".f16", ".f16x2", "h", x.bits)
WL_RED_ADD(bf16, ".noftz", ".bf16", ".bf16x2", "h", x.bits)
#undef WL_RED_ADD
#if __CUDA_ARCH__ >= 900
template <class T>
inline constexpr int red_words = 4;  // at once
template <>
inline constexpr int red_words<int> = 1;
#else
template <class T>
inline constexpr int red_words = 1;
#endif

template <int BYTES, class T>
WL_FN void red_add(T* p, const T* src, bool pred = true) {
  if (!pred) return;
  if constexpr (BYTES < 4) {
    RedAdd<T>::one(p, src[0]);
  } else {
    unsigned* to = reinterpret_cast<unsigned*>(p);
    const unsigned* u = reinterpret_cast<const unsigned*>(src);
    if constexpr (BYTES == 16 && red_words<T> == 4) {
      RedAdd<T>::words(to, u[0], u[1], u[2], u[3]);
    } else if constexpr (BYTES == 8 && red_words<T> == 4) {
      RedAdd<T>::words(to, u[0], u[1]);
    } else {
      WL_UNROLL for (int i = 0; i < BYTES / 4; ++i) RedAdd<T>::words(to + i, u[i]);
    }
  }
}

// Floats of one sign are ordered as their bits, negative ones backwards: each sign has its own integer instruction.
#define WL_RED_ORDER(name, own, other, nan)                                                                        \
  WL_FN void name##_one(int* p, int x) {                                                                           \
    asm volatile("red.relaxed.gpu.global." own ".s32 [%0], %1;" ::"l"(p), "r"(x) : "memory");                      \
  }                                                                                                                \
  WL_FN void name##_one(float* p, float x) {                                                                       \
    const unsigned bits = x != x ? nan : bits_of(x);                                                               \
    if (bits >> 31) asm volatile("red.relaxed.gpu.global." other ".u32 [%0], %1;" ::"l"(p), "r"(bits) : "memory"); \
    else asm volatile("red.relaxed.gpu.global." own ".s32 [%0], %1;" ::"l"(p), "r"(bits) : "memory");              \
  }                                                                                                                \
  template <int BYTES, class T>                                                                                    \
  WL_FN void name(T* p, const T* src, bool pred = true) {                                                          \
    WL_UNROLL for (int i = 0; i < BYTES / 4; ++i) if (pred) name##_one(p + i, src[i]);                             \
  }
WL_RED_ORDER(red_max, "max", "min", 0x7fffffffu)
WL_RED_ORDER(red_min, "min", "max", 0xffffffffu)
#undef WL_RED_ORDER

// *p += n, after everything that this thread did or (by a barrier) knows to be done is visible to the whole GPU.
WL_FN void signal_flag(int* p, int n) { asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(p), "r"(n) : "memory"); }
// Returns once *p >= least. What was done before the signals is visible from then on, to the copy engine too.
WL_FN void wait_flag(const int* p, int least) {
  int seen;
  do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(p) : "memory");
  while (seen < least);
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}
}  // namespace wl
