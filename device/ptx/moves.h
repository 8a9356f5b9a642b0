// Loads and stores of 1 to 16 bytes by address space. asm volatile keeps them in program order with
// each other and with the barriers, which is all the emitted kernels rely on.
#pragma once

namespace wl {
// The load of a width; `when`, given the number of the operand behind the address, and `end` go
// round it.
#define WL_LOAD_FORMS(op, mode, when, end, ...)                                      \
  unsigned* d = static_cast<unsigned*>(dst);                                         \
  if constexpr (BYTES == 16) {                                                       \
    asm volatile(when("%5") op ".v4.b32 {%0, %1, %2, %3}, [%4];" end                 \
                 : mode "r"(d[0]), mode "r"(d[1]), mode "r"(d[2]), mode "r"(d[3])    \
                 : __VA_ARGS__);                                                     \
  } else if constexpr (BYTES == 8) {                                                 \
    asm volatile(when("%3") op ".v2.b32 {%0, %1}, [%2];" end                         \
                 : mode "r"(d[0]), mode "r"(d[1])                                    \
                 : __VA_ARGS__);                                                     \
  } else if constexpr (BYTES == 4) {                                                 \
    asm volatile(when("%2") op ".b32 %0, [%1];" end : mode "r"(d[0]) : __VA_ARGS__); \
  } else if constexpr (BYTES == 2) {                                                 \
    asm volatile(when("%2") op ".b16 %0, [%1];" end                                  \
                 : mode "h"(*static_cast<unsigned short*>(dst))                      \
                 : __VA_ARGS__);                                                     \
  } else {                                                                           \
    static_assert(BYTES == 1, "a load moves 1, 2, 4, 8 or 16 bytes");                \
    unsigned short t = *static_cast<unsigned char*>(dst);                            \
    asm volatile(when("%2") op ".u8 %0, [%1];" end : mode "h"(t) : __VA_ARGS__);     \
    *static_cast<unsigned char*>(dst) = static_cast<unsigned char>(t);               \
  }
#define WL_ALWAYS(pred) ""
#define WL_IF(pred) "{ .reg .pred p; setp.ne.b32 p, " pred ", 0; @p "
// With a pred, dst keeps what it holds where that is false.
#define WL_DEFINE_LOAD(Name, op, constraint, Address)            \
  template <int BYTES> struct Name {                             \
    static WL_FN void go(void* dst, Address a) {                 \
      WL_LOAD_FORMS(op, "=", WL_ALWAYS, "", constraint(a))       \
    }                                                            \
    static WL_FN void go(void* dst, Address a, bool pred) {      \
      const int p = pred;                                        \
      WL_LOAD_FORMS(op, "+", WL_IF, " }", constraint(a), "r"(p)) \
    }                                                            \
  };

// `half` and `word`: the instruction's types of 2 and 4 bytes. The last argument is the name.
#define WL_DEFINE_STORE(op, half, word, constraint, Address, ...)                           \
  template <int BYTES> struct __VA_ARGS__ {                                                 \
    static WL_FN void go(Address a, const void* src) {                                      \
      const unsigned* s = static_cast<const unsigned*>(src);                                \
      if constexpr (BYTES == 16) {                                                          \
        asm volatile(op ".v4" word " [%0], {%1, %2, %3, %4};" ::constraint(a), "r"(s[0]),   \
                     "r"(s[1]), "r"(s[2]), "r"(s[3])                                        \
                     : "memory");                                                           \
      } else if constexpr (BYTES == 8) {                                                    \
        asm volatile(op ".v2" word " [%0], {%1, %2};" ::constraint(a), "r"(s[0]), "r"(s[1]) \
                     : "memory");                                                           \
      } else if constexpr (BYTES == 4) {                                                    \
        asm volatile(op word " [%0], %1;" ::constraint(a), "r"(s[0]) : "memory");           \
      } else if constexpr (BYTES == 2) {                                                    \
        asm volatile(op half " [%0], %1;" ::constraint(a),                                  \
                     "h"(*static_cast<const unsigned short*>(src))                          \
                     : "memory");                                                           \
      } else {                                                                              \
        static_assert(BYTES == 1, "a store moves 1, 2, 4, 8 or 16 bytes");                  \
        const unsigned short t = *static_cast<const unsigned char*>(src);                   \
        asm volatile(op ".b8 [%0], %1;" ::constraint(a), "h"(t) : "memory");                \
      }                                                                                     \
    }                                                                                       \
  };

WL_DEFINE_LOAD(GlobalLoad, "ld.global", "l", const void*)
WL_DEFINE_LOAD(GlobalLoadStream, "ld.global.L1::no_allocate", "l", const void*)
WL_DEFINE_LOAD(SharedLoad, "ld.shared", "r", unsigned)
WL_DEFINE_LOAD(ClusterLoad, "ld.shared::cluster", "r", unsigned)
WL_DEFINE_STORE("st.global", ".b16", ".b32", "l", const void*, GlobalStore)
WL_DEFINE_STORE("st.global.cs", ".b16", ".b32", "l", const void*, GlobalStoreStream)
WL_DEFINE_STORE("st.shared", ".b16", ".b32", "r", unsigned, SharedStore)
WL_DEFINE_STORE("st.shared::cluster", ".b16", ".b32", "r", unsigned, ClusterStore)

#undef WL_DEFINE_LOAD
#undef WL_LOAD_FORMS

// Global memory, BYTES in 1, 2, 4, 8, 16 per thread; registers and address aligned to BYTES. Where
// pred is false, a load gives `fill` and a store does nothing. The _stream forms are for data used
// once: loads leave the L1 cache alone, what is stored leaves the L2 first.
#define WL_GLOBAL_FORMS(load, Load, store, Store)                                              \
  template <int BYTES, class T> WL_FN void load(T* dst, const T* p) {                          \
    Load<BYTES>::go(dst, p);                                                                   \
  }                                                                                            \
  template <int BYTES, class T> WL_FN void load(T* dst, const T* p, bool pred, same<T> fill) { \
    WL_UNROLL for (int i = 0; i < BYTES / static_cast<int>(sizeof(T)); ++i) dst[i] = fill;     \
    Load<BYTES>::go(dst, p, pred);                                                             \
  }                                                                                            \
  template <int BYTES, class T> WL_FN void store(T* p, const T* src, bool pred = true) {       \
    if (pred) Store<BYTES>::go(p, src);                                                        \
  }
WL_GLOBAL_FORMS(ld_global, GlobalLoad, st_global, GlobalStore)
WL_GLOBAL_FORMS(ld_global_stream, GlobalLoadStream, st_global_stream, GlobalStoreStream)
#undef WL_GLOBAL_FORMS

// A coordinate along an axis of `size` out of a tensor that nobody writes meanwhile, one below 0
// counted from the end: -1 where pred is false, or where it is no int.
template <class I> WL_FN int lookup(const I* p, int size, bool pred = true) {
  const I index = pred ? __ldg(p) : -size - 1;
  const int whole = index == static_cast<int>(index) ? static_cast<int>(index) : -size - 1;
  return whole < 0 ? whole + size : whole;
}
}  // namespace wl
