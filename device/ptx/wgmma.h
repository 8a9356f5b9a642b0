// wgmma: one warpgroup multiplies a 64 x K by a K x N tile, N a multiple of 8, into N / 2
// accumulators a thread. The asm text of a shape is put together from chunks of four accumulators,
// so that each (type, N) is one line below.
#pragma once

namespace wl {
WL_FN void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

WL_FN void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most the N newest groups are under way. Groups complete in order.
template <int N> WL_FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// For the compiler alone: N accumulators are written and read here, so nothing about them moves
// across.
template <int N> WL_FN void wgmma_fence_regs(float* acc) {
  WL_UNROLL for (int i = 0; i < N; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

template <int N> WL_FN void wgmma_fence_regs(int* acc) {
  WL_UNROLL for (int i = 0; i < N; ++i) asm volatile("" : "+r"(acc[i])::"memory");
}

// Numbers of accumulators, in fours, through `first` and then `next`, which make names in the text
// or operands of them. The preprocessor cannot count, so they are put together from digits: the
// first four, `g` whole twenties, then `r` fours of the twenty that begins at t4, where t, u and v
// are its tens (nothing for 0).
#define WL_NAMES(a, b, c, d) "%" #a ", %" #b ", %" #c ", %" #d
#define WL_MORE_NAMES(...) ", " WL_NAMES(__VA_ARGS__)
#define WL_FLOATS(w, x, y, z) "+f"(d[w]), "+f"(d[x]), "+f"(d[y]), "+f"(d[z])
#define WL_MORE_FLOATS(...) , WL_FLOATS(__VA_ARGS__)
#define WL_INTS(w, x, y, z) "+r"(d[w]), "+r"(d[x]), "+r"(d[y]), "+r"(d[z])
#define WL_MORE_INTS(...) , WL_INTS(__VA_ARGS__)
#define WL_R0(f, t, u, v)
#define WL_R1(f, t, u, v) f(t##4, t##5, t##6, t##7)
#define WL_R2(f, t, u, v) WL_R1(f, t, u, v) f(t##8, t##9, u##0, u##1)
#define WL_R3(f, t, u, v) WL_R2(f, t, u, v) f(u##2, u##3, u##4, u##5)
#define WL_R4(f, t, u, v) WL_R3(f, t, u, v) f(u##6, u##7, u##8, u##9)
#define WL_R5(f, t, u, v) WL_R4(f, t, u, v) f(v##0, v##1, v##2, v##3)
#define WL_G0(f)
#define WL_G1(f) WL_R5(f, , 1, 2)
#define WL_G2(f) WL_G1(f) WL_R5(f, 2, 3, 4)
#define WL_G3(f) WL_G2(f) WL_R5(f, 4, 5, 6)
#define WL_G4(f) WL_G3(f) WL_R5(f, 6, 7, 8)
#define WL_G5(f) WL_G4(f) WL_R5(f, 8, 9, 10)
#define WL_G6(f) WL_G5(f) WL_R5(f, 10, 11, 12)
#define WL_NUMBERS(first, next, g, r, t, u, v) \
  first(0, 1, 2, 3) WL_G##g(next) WL_R##r(next, t, u, v)
#define WL_OF(...) WL_NUMBERS(__VA_ARGS__)
#define WL_ARGS(...) __VA_ARGS__

template <int N, class T, bool TA, bool TB> struct WgmmaShared;
template <int N, class T, bool TB> struct WgmmaRegisters;

// Rows: N, the accumulators (g, r, t, u, v), and the numbers of the operands after them (seven at
// most, for A in registers).
// clang-format off
#define WL_TWO(row, g, t, u, v, n0, n1, ...) \
  row(n0, (g, 0, t, u, v), t##4, t##5, t##6, t##7, t##8, t##9, u##0, __VA_ARGS__) \
  row(n1, (g, 1, t, u, v), t##8, t##9, u##0, u##1, u##2, u##3, u##4, __VA_ARGS__)
#define WL_FIVE(row, g, t, u, v, n0, n1, n2, n3, n4, ...) \
  WL_TWO(row, g, t, u, v, n0, n1, __VA_ARGS__) \
  row(n2, (g, 2, t, u, v), u##2, u##3, u##4, u##5, u##6, u##7, u##8, __VA_ARGS__) \
  row(n3, (g, 3, t, u, v), u##6, u##7, u##8, u##9, v##0, v##1, v##2, __VA_ARGS__) \
  row(n4, (g, 4, t, u, v), v##0, v##1, v##2, v##3, v##4, v##5, v##6, __VA_ARGS__)
#define WL_FOR_EACH_N(row, ...) \
  WL_FIVE(row, 0, , 1, 2, 8, 16, 24, 32, 40, __VA_ARGS__) \
  WL_FIVE(row, 1, 2, 3, 4, 48, 56, 64, 72, 80, __VA_ARGS__) \
  WL_FIVE(row, 2, 4, 5, 6, 88, 96, 104, 112, 120, __VA_ARGS__) \
  WL_FIVE(row, 3, 6, 7, 8, 128, 136, 144, 152, 160, __VA_ARGS__) \
  WL_FIVE(row, 4, 8, 9, 10, 168, 176, 184, 192, 200, __VA_ARGS__) \
  WL_FIVE(row, 5, 10, 11, 12, 208, 216, 224, 232, 240, __VA_ARGS__) \
  WL_TWO(row, 6, 12, 13, 14, 248, 256, __VA_ARGS__)
// clang-format on

// What follows the operands: scales of a and b for floats; for 16-bit types also whether they are
// transposed ("n" operands).
#define WL_SCALED_TRANSPOSED(...) ", p, 1, 1, " __VA_ARGS__
#define WL_SCALED(...) ", p, 1, 1"
#define WL_PLAIN(...) ", p"
#define WL_WGMMA_SS(n, where, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)            \
  template <bool TA, bool TB> struct WgmmaShared<n, T, TA, TB> {                                \
    static WL_FN void go(Acc* d, unsigned long long a, unsigned long long b, int accumulate) {  \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o2                                       \
                   ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types                          \
                   " {" WL_OF(WL_NAMES, WL_MORE_NAMES,                                          \
                              WL_ARGS where) "}, %" #o0 ", %" #o1 tail("%" #o3 ", %" #o4) "; }" \
                   : WL_OF(WL_##c, WL_MORE_##c, WL_ARGS where)                                  \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(int(TA)), "n"(int(TB)));              \
    }                                                                                           \
  };
#define WL_WGMMA_RS(n, where, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)            \
  template <bool TB> struct WgmmaRegisters<n, T, TB> {                                          \
    static WL_FN void go(Acc* d, const unsigned* a, unsigned long long b, int accumulate) {     \
      asm volatile(                                                                             \
          "{ .reg .pred p; setp.ne.b32 p, %" #o5                                                \
          ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types " {" WL_OF(                       \
              WL_NAMES, WL_MORE_NAMES, WL_ARGS where) "}, {%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 \
                                                      "}, %" #o4 tail("%" #o6) "; }"            \
          : WL_OF(WL_##c, WL_MORE_##c, WL_ARGS where)                                           \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(int(TB))); \
    }                                                                                           \
  };
#define WL_WGMMA(...) \
  WL_FOR_EACH_N(WL_WGMMA_SS, __VA_ARGS__) WL_FOR_EACH_N(WL_WGMMA_RS, __VA_ARGS__)

WL_WGMMA(bf16, "k16", ".f32.bf16.bf16", float, FLOATS, WL_SCALED_TRANSPOSED)
WL_WGMMA(f16, "k16", ".f32.f16.f16", float, FLOATS, WL_SCALED_TRANSPOSED)
WL_WGMMA(tf32, "k8", ".f32.tf32.tf32", float, FLOATS, WL_SCALED)
WL_WGMMA(e4m3, "k32", ".f32.e4m3.e4m3", float, FLOATS, WL_SCALED)
WL_WGMMA(e5m2, "k32", ".f32.e5m2.e5m2", float, FLOATS, WL_SCALED)
WL_WGMMA(signed char, "k32", ".s32.s8.s8", int, INTS, WL_PLAIN)

// T: element type of A and B, which sets K: bf16, f16 16; tf32 8; e4m3, e5m2, signed char 32 (N
// above 24 in steps of 16). TRANS: the operand lies MN-major in shared memory (16-bit types alone).
// acc = A B, plus what acc held where accumulate is true.
template <int N, class T, bool TRANS_A, bool TRANS_B, class Acc>
WL_FN void wgmma(Acc* acc, unsigned long long desc_a, unsigned long long desc_b, bool accumulate) {
  static_assert(sizeof(T) == 2 || (!TRANS_A && !TRANS_B), "only 16-bit operands may be MN-major");
  WgmmaShared<N, T, TRANS_A, TRANS_B>::go(acc, desc_a, desc_b, accumulate);
}

// A from registers: 16 bytes a thread, laid out as A of mma_m16n8k16 (m16n8k8 for tf32), warp w of
// the group at row 16 w.
template <int N, class T, bool TRANS_B, class Acc>
WL_FN void wgmma_rs(Acc* acc, const T* a, unsigned long long desc_b, bool accumulate) {
  static_assert(sizeof(T) == 2 || !TRANS_B, "only 16-bit operands may be MN-major");
  WgmmaRegisters<N, T, TRANS_B>::go(acc, reinterpret_cast<const unsigned*>(a), desc_b, accumulate);
}
}  // namespace wl
