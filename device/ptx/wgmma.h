// wgmma: one warpgroup multiplies a 64 x K by a K x N tile, N a multiple of 8, into N / 2 accumulators a thread.
// The asm text of a shape is put together from chunks of four accumulators, so that each (type, N) is one line below.
#pragma once
namespace wl {
WL_FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
WL_FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most the N newest groups are under way. Groups complete in order.
template <int N>
WL_FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// For the compiler alone: N accumulators are written and read here, so nothing about them moves across.
template <int N>
WL_FN void wgmma_fence_regs(float* acc) {
  WL_UNROLL for (int i = 0; i < N; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}
template <int N>
WL_FN void wgmma_fence_regs(int* acc) {
  WL_UNROLL for (int i = 0; i < N; ++i) asm volatile("" : "+r"(acc[i])::"memory");
}

// WL_Q<i>(first, next): the numbers of the first 4 (i + 1) accumulators, four at a time, through `first` and then `next`, which make
// names in the text or operands of them.
#define WL_NAMES(a, b, c, d) "%" #a ", %" #b ", %" #c ", %" #d
#define WL_MORE_NAMES(...) ", " WL_NAMES(__VA_ARGS__)
#define WL_FLOATS(w, x, y, z) "+f"(d[w]), "+f"(d[x]), "+f"(d[y]), "+f"(d[z])
#define WL_MORE_FLOATS(...) , WL_FLOATS(__VA_ARGS__)
#define WL_INTS(w, x, y, z) "+r"(d[w]), "+r"(d[x]), "+r"(d[y]), "+r"(d[z])
#define WL_MORE_INTS(...) , WL_INTS(__VA_ARGS__)
#define WL_R(i) WL_Q##i(WL_NAMES, WL_MORE_NAMES)
#define WL_D(i, c) WL_Q##i(WL_##c, WL_MORE_##c)
#define WL_Q0(first, next) first(0, 1, 2, 3)
#define WL_Q1(first, next) WL_Q0(first, next) next(4, 5, 6, 7)
#define WL_Q2(first, next) WL_Q1(first, next) next(8, 9, 10, 11)
#define WL_Q3(first, next) WL_Q2(first, next) next(12, 13, 14, 15)
#define WL_Q4(first, next) WL_Q3(first, next) next(16, 17, 18, 19)
#define WL_Q5(first, next) WL_Q4(first, next) next(20, 21, 22, 23)
#define WL_Q6(first, next) WL_Q5(first, next) next(24, 25, 26, 27)
#define WL_Q7(first, next) WL_Q6(first, next) next(28, 29, 30, 31)
#define WL_Q8(first, next) WL_Q7(first, next) next(32, 33, 34, 35)
#define WL_Q9(first, next) WL_Q8(first, next) next(36, 37, 38, 39)
#define WL_Q10(first, next) WL_Q9(first, next) next(40, 41, 42, 43)
#define WL_Q11(first, next) WL_Q10(first, next) next(44, 45, 46, 47)
#define WL_Q12(first, next) WL_Q11(first, next) next(48, 49, 50, 51)
#define WL_Q13(first, next) WL_Q12(first, next) next(52, 53, 54, 55)
#define WL_Q14(first, next) WL_Q13(first, next) next(56, 57, 58, 59)
#define WL_Q15(first, next) WL_Q14(first, next) next(60, 61, 62, 63)
#define WL_Q16(first, next) WL_Q15(first, next) next(64, 65, 66, 67)
#define WL_Q17(first, next) WL_Q16(first, next) next(68, 69, 70, 71)
#define WL_Q18(first, next) WL_Q17(first, next) next(72, 73, 74, 75)
#define WL_Q19(first, next) WL_Q18(first, next) next(76, 77, 78, 79)
#define WL_Q20(first, next) WL_Q19(first, next) next(80, 81, 82, 83)
#define WL_Q21(first, next) WL_Q20(first, next) next(84, 85, 86, 87)
#define WL_Q22(first, next) WL_Q21(first, next) next(88, 89, 90, 91)
#define WL_Q23(first, next) WL_Q22(first, next) next(92, 93, 94, 95)
#define WL_Q24(first, next) WL_Q23(first, next) next(96, 97, 98, 99)
#define WL_Q25(first, next) WL_Q24(first, next) next(100, 101, 102, 103)
#define WL_Q26(first, next) WL_Q25(first, next) next(104, 105, 106, 107)
#define WL_Q27(first, next) WL_Q26(first, next) next(108, 109, 110, 111)
#define WL_Q28(first, next) WL_Q27(first, next) next(112, 113, 114, 115)
#define WL_Q29(first, next) WL_Q28(first, next) next(116, 117, 118, 119)
#define WL_Q30(first, next) WL_Q29(first, next) next(120, 121, 122, 123)
#define WL_Q31(first, next) WL_Q30(first, next) next(124, 125, 126, 127)

template <int N, class T, bool TA, bool TB>
struct WgmmaShared;
template <int N, class T, bool TB>
struct WgmmaRegisters;

// Rows: i, N, and the numbers of the operands after the accumulators (seven at most, for A in registers).
// clang-format off
#define WL_FOR_EACH_N_INT8(row, ...) \
  row(0, 8, 4, 5, 6, 7, 8, 9, 10, __VA_ARGS__) row(1, 16, 8, 9, 10, 11, 12, 13, 14, __VA_ARGS__) \
  row(2, 24, 12, 13, 14, 15, 16, 17, 18, __VA_ARGS__) row(3, 32, 16, 17, 18, 19, 20, 21, 22, __VA_ARGS__) \
  row(5, 48, 24, 25, 26, 27, 28, 29, 30, __VA_ARGS__) row(7, 64, 32, 33, 34, 35, 36, 37, 38, __VA_ARGS__) \
  row(9, 80, 40, 41, 42, 43, 44, 45, 46, __VA_ARGS__) row(11, 96, 48, 49, 50, 51, 52, 53, 54, __VA_ARGS__) \
  row(13, 112, 56, 57, 58, 59, 60, 61, 62, __VA_ARGS__) row(15, 128, 64, 65, 66, 67, 68, 69, 70, __VA_ARGS__) \
  row(17, 144, 72, 73, 74, 75, 76, 77, 78, __VA_ARGS__) row(19, 160, 80, 81, 82, 83, 84, 85, 86, __VA_ARGS__) \
  row(21, 176, 88, 89, 90, 91, 92, 93, 94, __VA_ARGS__) row(23, 192, 96, 97, 98, 99, 100, 101, 102, __VA_ARGS__) \
  row(25, 208, 104, 105, 106, 107, 108, 109, 110, __VA_ARGS__) row(27, 224, 112, 113, 114, 115, 116, 117, 118, __VA_ARGS__) \
  row(29, 240, 120, 121, 122, 123, 124, 125, 126, __VA_ARGS__) row(31, 256, 128, 129, 130, 131, 132, 133, 134, __VA_ARGS__)
#define WL_FOR_EACH_N(row, ...) WL_FOR_EACH_N_INT8(row, __VA_ARGS__) \
  row(4, 40, 20, 21, 22, 23, 24, 25, 26, __VA_ARGS__) row(6, 56, 28, 29, 30, 31, 32, 33, 34, __VA_ARGS__) \
  row(8, 72, 36, 37, 38, 39, 40, 41, 42, __VA_ARGS__) row(10, 88, 44, 45, 46, 47, 48, 49, 50, __VA_ARGS__) \
  row(12, 104, 52, 53, 54, 55, 56, 57, 58, __VA_ARGS__) row(14, 120, 60, 61, 62, 63, 64, 65, 66, __VA_ARGS__) \
  row(16, 136, 68, 69, 70, 71, 72, 73, 74, __VA_ARGS__) row(18, 152, 76, 77, 78, 79, 80, 81, 82, __VA_ARGS__) \
  row(20, 168, 84, 85, 86, 87, 88, 89, 90, __VA_ARGS__) row(22, 184, 92, 93, 94, 95, 96, 97, 98, __VA_ARGS__) \
  row(24, 200, 100, 101, 102, 103, 104, 105, 106, __VA_ARGS__) row(26, 216, 108, 109, 110, 111, 112, 113, 114, __VA_ARGS__) \
  row(28, 232, 116, 117, 118, 119, 120, 121, 122, __VA_ARGS__) row(30, 248, 124, 125, 126, 127, 128, 129, 130, __VA_ARGS__)
// clang-format on

// What follows the operands: scales of a and b for floats; for 16-bit types also whether they are transposed, which are operands with
// constraint "n".
#define WL_SCALED_TRANSPOSED(...) ", p, 1, 1, " __VA_ARGS__
#define WL_SCALED(...) ", p, 1, 1"
#define WL_PLAIN(...) ", p"
#define WL_WGMMA_SS(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)                              \
  template <bool TA, bool TB>                                                                                 \
  struct WgmmaShared<n, T, TA, TB> {                                                                          \
    static WL_FN void go(Acc* d, unsigned long long a, unsigned long long b, int accumulate) {                \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R(i) "}, %" #o0 ", %" #o1 tail("%" #o3 ", %" #o4) "; }"                            \
                   : WL_D(i, c)                                                                               \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(int(TA)), "n"(int(TB)));                            \
    }                                                                                                         \
  };
#define WL_WGMMA_RS(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)                              \
  template <bool TB>                                                                                          \
  struct WgmmaRegisters<n, T, TB> {                                                                           \
    static WL_FN void go(Acc* d, const unsigned* a, unsigned long long b, int accumulate) {                   \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R(i) "}, {%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 "}, %" #o4 tail("%" #o6) "; }"      \
                   : WL_D(i, c)                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(int(TB)));      \
    }                                                                                                         \
  };
#define WL_WGMMA(for_each, ...) for_each(WL_WGMMA_SS, __VA_ARGS__) for_each(WL_WGMMA_RS, __VA_ARGS__)

WL_WGMMA(WL_FOR_EACH_N, bf16, "k16", ".f32.bf16.bf16", float, FLOATS, WL_SCALED_TRANSPOSED)
WL_WGMMA(WL_FOR_EACH_N, f16, "k16", ".f32.f16.f16", float, FLOATS, WL_SCALED_TRANSPOSED)
WL_WGMMA(WL_FOR_EACH_N, tf32, "k8", ".f32.tf32.tf32", float, FLOATS, WL_SCALED)
WL_WGMMA(WL_FOR_EACH_N, e4m3, "k32", ".f32.e4m3.e4m3", float, FLOATS, WL_SCALED)
WL_WGMMA(WL_FOR_EACH_N, e5m2, "k32", ".f32.e5m2.e5m2", float, FLOATS, WL_SCALED)
WL_WGMMA(WL_FOR_EACH_N_INT8, signed char, "k32", ".s32.s8.s8", int, INTS, WL_PLAIN)

// T: element type of A and B, which sets K: bf16, f16 16; tf32 8; e4m3, e5m2, signed char 32. TRANS: the operand lies
// MN-major in shared memory (16-bit types alone). acc = A B, plus what acc held where accumulate is true.
template <int N, class T, bool TRANS_A, bool TRANS_B, class Acc>
WL_FN void wgmma(Acc* acc, unsigned long long desc_a, unsigned long long desc_b, bool accumulate) {
  static_assert(sizeof(T) == 2 || (!TRANS_A && !TRANS_B), "only 16-bit operands may be MN-major");
  WgmmaShared<N, T, TRANS_A, TRANS_B>::go(acc, desc_a, desc_b, accumulate);
}
// A from registers: 16 bytes a thread, laid out as A of mma_m16n8k16 (m16n8k8 for tf32), warp w of the group at row 16 w.
template <int N, class T, bool TRANS_B, class Acc>
WL_FN void wgmma_rs(Acc* acc, const T* a, unsigned long long desc_b, bool accumulate) {
  static_assert(sizeof(T) == 2 || !TRANS_B, "only 16-bit operands may be MN-major");
  WgmmaRegisters<N, T, TRANS_B>::go(acc, reinterpret_cast<const unsigned*>(a), desc_b, accumulate);
}
}  // namespace wl
