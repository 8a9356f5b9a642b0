// Loads, stores and indivisible updates of 1 to 16 bytes by address space. asm volatile keeps them in program order with each
// other and with the barriers, which is all the emitted kernels rely on.
#pragma once
namespace wl {
// The load of a width to dst; `when`, given the number of the operand behind the address, and `end` go round it.
#define WL_LOAD_FORMS(op, mode, when, end, ...)                                                                         \
  unsigned* d = reinterpret_cast<unsigned*>(dst);                                                                       \
  if constexpr (BYTES == 16) {                                                                                          \
    asm volatile(when("%5") op ".v4.b32 {%0, %1, %2, %3}, [%4];" end                                                    \
                 : mode "r"(d[0]), mode "r"(d[1]), mode "r"(d[2]), mode "r"(d[3])                                       \
                 : __VA_ARGS__);                                                                                        \
  } else if constexpr (BYTES == 8) {                                                                                    \
    asm volatile(when("%3") op ".v2.b32 {%0, %1}, [%2];" end : mode "r"(d[0]), mode "r"(d[1]) : __VA_ARGS__);           \
  } else if constexpr (BYTES == 4) {                                                                                    \
    asm volatile(when("%2") op ".b32 %0, [%1];" end : mode "r"(d[0]) : __VA_ARGS__);                                    \
  } else if constexpr (BYTES == 2) {                                                                                    \
    asm volatile(when("%2") op ".b16 %0, [%1];" end : mode "h"(*reinterpret_cast<unsigned short*>(dst)) : __VA_ARGS__); \
  } else {                                                                                                              \
    static_assert(BYTES == 1, "a load moves 1, 2, 4, 8 or 16 bytes");                                                   \
    unsigned short t = *reinterpret_cast<unsigned char*>(dst);                                                          \
    asm volatile(when("%2") op ".u8 %0, [%1];" end : mode "h"(t) : __VA_ARGS__);                                        \
    *reinterpret_cast<unsigned char*>(dst) = static_cast<unsigned char>(t);                                             \
  }
// The store of a width from src to a. `half` and `word`: the instruction's types of 2 and 4 bytes.
#define WL_STORE_FORMS(op, half, word, constraint)                                                                     \
  const unsigned* s = reinterpret_cast<const unsigned*>(src);                                                          \
  if constexpr (BYTES == 16) {                                                                                         \
    asm volatile(op ".v4" word " [%0], {%1, %2, %3, %4};" ::constraint(a), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3])  \
                 : "memory");                                                                                          \
  } else if constexpr (BYTES == 8) {                                                                                   \
    asm volatile(op ".v2" word " [%0], {%1, %2};" ::constraint(a), "r"(s[0]), "r"(s[1]) : "memory");                   \
  } else if constexpr (BYTES == 4) {                                                                                   \
    asm volatile(op word " [%0], %1;" ::constraint(a), "r"(s[0]) : "memory");                                          \
  } else if constexpr (BYTES == 2) {                                                                                   \
    asm volatile(op half " [%0], %1;" ::constraint(a), "h"(*reinterpret_cast<const unsigned short*>(src)) : "memory"); \
  } else {                                                                                                             \
    static_assert(BYTES == 1, "a store moves 1, 2, 4, 8 or 16 bytes");                                                 \
    const unsigned short t = *reinterpret_cast<const unsigned char*>(src);                                             \
    asm volatile(op ".b8 [%0], %1;" ::constraint(a), "h"(t) : "memory");                                               \
  }

// Global memory, BYTES in 1, 2, 4, 8, 16 per thread; registers and address aligned to BYTES. Where pred is false, a load gives
// `fill` and a store does nothing. _stream is for data used once: loads spare the L1 cache, what is stored leaves the L2 first.
#define WL_ALWAYS(pred) ""
#define WL_IF(pred) "{ .reg .pred p; setp.ne.b32 p, " pred ", 0; @p "
#define WL_GLOBAL(load, load_op, store, store_op)                                                                          \
  template <int BYTES, class T> WL_FN void load(T* dst, const T* a) { WL_LOAD_FORMS(load_op, "=", WL_ALWAYS, "", "l"(a)) } \
  template <int BYTES, class T> WL_FN void load(T* dst, const T* a, bool pred, same<T> fill) {                             \
    const int p = pred;                                                                                                    \
    WL_UNROLL for (int i = 0; i < BYTES / static_cast<int>(sizeof(T)); ++i) dst[i] = fill;                                 \
    WL_LOAD_FORMS(load_op, "+", WL_IF, " }", "l"(a), "r"(p))                                                               \
  }                                                                                                                        \
  template <int BYTES, class T> WL_FN void store(T* a, const T* src, bool pred = true) {                                   \
    if (!pred) return;                                                                                                     \
    WL_STORE_FORMS(store_op, ".b16", ".b32", "l")                                                                          \
  }
WL_GLOBAL(ld_global, "ld.global", st_global, "st.global")
WL_GLOBAL(ld_global_stream, "ld.global.L1::no_allocate", st_global_stream, "st.global.cs")
#undef WL_GLOBAL
#undef WL_IF

// Shared memory. The _cluster forms take addresses that come from mapa.
#define WL_SHARED(load, store, space)                                                                                          \
  template <int BYTES, class T> WL_FN void load(T* dst, unsigned a) { WL_LOAD_FORMS("ld." space, "=", WL_ALWAYS, "", "r"(a)) } \
  template <int BYTES, class T> WL_FN void store(unsigned a, const T* src) { WL_STORE_FORMS("st." space, ".b16", ".b32", "r") }
WL_SHARED(ld_shared, st_shared, "shared")
WL_SHARED(ld_shared_cluster, st_shared_cluster, "shared::cluster")
#undef WL_SHARED
#undef WL_ALWAYS
#undef WL_LOAD_FORMS

// An index out of a tensor that nobody writes meanwhile: -1 where pred is false, or where it is no int.
template <class I> WL_FN int lookup(const I* p, bool pred = true) {
  const I index = pred ? __ldg(p) : -1;
  return index == static_cast<int>(index) ? static_cast<int>(index) : -1;
}

// Indivisible updates of global memory, and flags that hand memory from block to block.
// red_add, red_max, red_min: BYTES in 1, 2, 4, 8, 16 a thread, aligned to BYTES; each element by itself. T is float or int; for
// red_add also f16 and (sm_90) bf16. NaN wins a red_max and a red_min.
// Sums, of vectors where there are such: they are stores of another name. Bytes at once:
#if __CUDA_ARCH__ >= 900
template <class T> inline constexpr int red_bytes = 16;
#else
template <class T> inline constexpr int red_bytes = 4;
#endif
template <> inline constexpr int red_bytes<int> = 4;
#define WL_RED_ADD(T, mode, half, word)                                \
  template <int BYTES> WL_FN void red_add_once(T* a, const T* src) {   \
    WL_STORE_FORMS("red.relaxed.gpu.global.add" mode, half, word, "l") \
  }
WL_RED_ADD(int, "", "", ".s32")
WL_RED_ADD(float, "", "", ".f32")
WL_RED_ADD(f16, ".noftz", ".f16", ".f16x2")
WL_RED_ADD(bf16, ".noftz", ".bf16", ".bf16x2")
#undef WL_RED_ADD
#undef WL_STORE_FORMS
template <int BYTES, class T> WL_FN void red_add(T* p, const T* src, bool pred = true) {
  constexpr int step = BYTES < red_bytes<T> ? BYTES : red_bytes<T>, elements = step / static_cast<int>(sizeof(T));
  WL_UNROLL for (int i = 0; i < BYTES / step; ++i) if (pred) red_add_once<step>(p + i * elements, src + i * elements);
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
  template <int BYTES, class T> WL_FN void name(T* p, const T* src, bool pred = true) {                            \
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
