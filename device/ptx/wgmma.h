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

// Register names and operands, four at a time.
#define WL_N0 "%0, %1, %2, %3"
#define WL_N1 "%4, %5, %6, %7"
#define WL_N2 "%8, %9, %10, %11"
#define WL_N3 "%12, %13, %14, %15"
#define WL_N4 "%16, %17, %18, %19"
#define WL_N5 "%20, %21, %22, %23"
#define WL_N6 "%24, %25, %26, %27"
#define WL_N7 "%28, %29, %30, %31"
#define WL_N8 "%32, %33, %34, %35"
#define WL_N9 "%36, %37, %38, %39"
#define WL_N10 "%40, %41, %42, %43"
#define WL_N11 "%44, %45, %46, %47"
#define WL_N12 "%48, %49, %50, %51"
#define WL_N13 "%52, %53, %54, %55"
#define WL_N14 "%56, %57, %58, %59"
#define WL_N15 "%60, %61, %62, %63"
#define WL_N16 "%64, %65, %66, %67"
#define WL_N17 "%68, %69, %70, %71"
#define WL_N18 "%72, %73, %74, %75"
#define WL_N19 "%76, %77, %78, %79"
#define WL_N20 "%80, %81, %82, %83"
#define WL_N21 "%84, %85, %86, %87"
#define WL_N22 "%88, %89, %90, %91"
#define WL_N23 "%92, %93, %94, %95"
#define WL_N24 "%96, %97, %98, %99"
#define WL_N25 "%100, %101, %102, %103"
#define WL_N26 "%104, %105, %106, %107"
#define WL_N27 "%108, %109, %110, %111"
#define WL_N28 "%112, %113, %114, %115"
#define WL_N29 "%116, %117, %118, %119"
#define WL_N30 "%120, %121, %122, %123"
#define WL_N31 "%124, %125, %126, %127"
#define WL_R0 WL_N0
#define WL_R1 WL_R0 ", " WL_N1
#define WL_R2 WL_R1 ", " WL_N2
#define WL_R3 WL_R2 ", " WL_N3
#define WL_R4 WL_R3 ", " WL_N4
#define WL_R5 WL_R4 ", " WL_N5
#define WL_R6 WL_R5 ", " WL_N6
#define WL_R7 WL_R6 ", " WL_N7
#define WL_R8 WL_R7 ", " WL_N8
#define WL_R9 WL_R8 ", " WL_N9
#define WL_R10 WL_R9 ", " WL_N10
#define WL_R11 WL_R10 ", " WL_N11
#define WL_R12 WL_R11 ", " WL_N12
#define WL_R13 WL_R12 ", " WL_N13
#define WL_R14 WL_R13 ", " WL_N14
#define WL_R15 WL_R14 ", " WL_N15
#define WL_R16 WL_R15 ", " WL_N16
#define WL_R17 WL_R16 ", " WL_N17
#define WL_R18 WL_R17 ", " WL_N18
#define WL_R19 WL_R18 ", " WL_N19
#define WL_R20 WL_R19 ", " WL_N20
#define WL_R21 WL_R20 ", " WL_N21
#define WL_R22 WL_R21 ", " WL_N22
#define WL_R23 WL_R22 ", " WL_N23
#define WL_R24 WL_R23 ", " WL_N24
#define WL_R25 WL_R24 ", " WL_N25
#define WL_R26 WL_R25 ", " WL_N26
#define WL_R27 WL_R26 ", " WL_N27
#define WL_R28 WL_R27 ", " WL_N28
#define WL_R29 WL_R28 ", " WL_N29
#define WL_R30 WL_R29 ", " WL_N30
#define WL_R31 WL_R30 ", " WL_N31
#define WL_D0(c) c(d[0]), c(d[1]), c(d[2]), c(d[3])
#define WL_D1(c) WL_D0(c), c(d[4]), c(d[5]), c(d[6]), c(d[7])
#define WL_D2(c) WL_D1(c), c(d[8]), c(d[9]), c(d[10]), c(d[11])
#define WL_D3(c) WL_D2(c), c(d[12]), c(d[13]), c(d[14]), c(d[15])
#define WL_D4(c) WL_D3(c), c(d[16]), c(d[17]), c(d[18]), c(d[19])
#define WL_D5(c) WL_D4(c), c(d[20]), c(d[21]), c(d[22]), c(d[23])
#define WL_D6(c) WL_D5(c), c(d[24]), c(d[25]), c(d[26]), c(d[27])
#define WL_D7(c) WL_D6(c), c(d[28]), c(d[29]), c(d[30]), c(d[31])
#define WL_D8(c) WL_D7(c), c(d[32]), c(d[33]), c(d[34]), c(d[35])
#define WL_D9(c) WL_D8(c), c(d[36]), c(d[37]), c(d[38]), c(d[39])
#define WL_D10(c) WL_D9(c), c(d[40]), c(d[41]), c(d[42]), c(d[43])
#define WL_D11(c) WL_D10(c), c(d[44]), c(d[45]), c(d[46]), c(d[47])
#define WL_D12(c) WL_D11(c), c(d[48]), c(d[49]), c(d[50]), c(d[51])
#define WL_D13(c) WL_D12(c), c(d[52]), c(d[53]), c(d[54]), c(d[55])
#define WL_D14(c) WL_D13(c), c(d[56]), c(d[57]), c(d[58]), c(d[59])
#define WL_D15(c) WL_D14(c), c(d[60]), c(d[61]), c(d[62]), c(d[63])
#define WL_D16(c) WL_D15(c), c(d[64]), c(d[65]), c(d[66]), c(d[67])
#define WL_D17(c) WL_D16(c), c(d[68]), c(d[69]), c(d[70]), c(d[71])
#define WL_D18(c) WL_D17(c), c(d[72]), c(d[73]), c(d[74]), c(d[75])
#define WL_D19(c) WL_D18(c), c(d[76]), c(d[77]), c(d[78]), c(d[79])
#define WL_D20(c) WL_D19(c), c(d[80]), c(d[81]), c(d[82]), c(d[83])
#define WL_D21(c) WL_D20(c), c(d[84]), c(d[85]), c(d[86]), c(d[87])
#define WL_D22(c) WL_D21(c), c(d[88]), c(d[89]), c(d[90]), c(d[91])
#define WL_D23(c) WL_D22(c), c(d[92]), c(d[93]), c(d[94]), c(d[95])
#define WL_D24(c) WL_D23(c), c(d[96]), c(d[97]), c(d[98]), c(d[99])
#define WL_D25(c) WL_D24(c), c(d[100]), c(d[101]), c(d[102]), c(d[103])
#define WL_D26(c) WL_D25(c), c(d[104]), c(d[105]), c(d[106]), c(d[107])
#define WL_D27(c) WL_D26(c), c(d[108]), c(d[109]), c(d[110]), c(d[111])
#define WL_D28(c) WL_D27(c), c(d[112]), c(d[113]), c(d[114]), c(d[115])
#define WL_D29(c) WL_D28(c), c(d[116]), c(d[117]), c(d[118]), c(d[119])
#define WL_D30(c) WL_D29(c), c(d[120]), c(d[121]), c(d[122]), c(d[123])
#define WL_D31(c) WL_D30(c), c(d[124]), c(d[125]), c(d[126]), c(d[127])

template <int N, class T, bool TA, bool TB>
struct WgmmaShared;
template <int N, class T, bool TB>
struct WgmmaRegisters;

// Parameters: chunk index, N, first four operand numbers after the accumulators (and up to six for A in registers).
#define WL_FOR_EACH_N(row, ...)                                                                                        \
  row(0, 8, "%4", "%5", "%6", "%7", "%8", "%9", "%10", __VA_ARGS__) row(                                               \
      1, 16, "%8", "%9", "%10", "%11", "%12", "%13", "%14",                                                            \
      __VA_ARGS__) row(2, 24, "%12", "%13", "%14", "%15", "%16", "%17", "%18",                                         \
                       __VA_ARGS__) row(3, 32, "%16", "%17", "%18", "%19", "%20", "%21", "%22", __VA_ARGS__)           \
      row(4, 40, "%20", "%21", "%22", "%23", "%24", "%25", "%26", __VA_ARGS__) row(                                    \
          5, 48, "%24", "%25", "%26", "%27", "%28", "%29", "%30",                                                      \
          __VA_ARGS__) row(6, 56, "%28", "%29", "%30", "%31", "%32", "%33", "%34",                                     \
                           __VA_ARGS__) row(7, 64, "%32", "%33", "%34", "%35", "%36", "%37", "%38", __VA_ARGS__)       \
          row(8, 72, "%36", "%37", "%38", "%39", "%40", "%41", "%42",                                                  \
              __VA_ARGS__) row(9, 80, "%40", "%41", "%42", "%43", "%44", "%45", "%46",                                 \
                               __VA_ARGS__) row(10, 88, "%44", "%45", "%46", "%47", "%48", "%49", "%50", __VA_ARGS__)  \
              row(11, 96, "%48", "%49", "%50", "%51", "%52", "%53", "%54",                                             \
                  __VA_ARGS__) row(12, 104, "%52", "%53", "%54", "%55", "%56", "%57", "%58", __VA_ARGS__)              \
                  row(13, 112, "%56", "%57", "%58", "%59", "%60", "%61", "%62",                                        \
                      __VA_ARGS__) row(14, 120, "%60", "%61", "%62", "%63", "%64", "%65", "%66", __VA_ARGS__)          \
                      row(15, 128, "%64", "%65", "%66", "%67", "%68", "%69", "%70",                                    \
                          __VA_ARGS__) row(16, 136, "%68", "%69", "%70", "%71", "%72", "%73", "%74", __VA_ARGS__)      \
                          row(17, 144, "%72", "%73", "%74", "%75", "%76", "%77", "%78", __VA_ARGS__)                   \
                              row(18, 152, "%76", "%77", "%78", "%79", "%80", "%81", "%82", __VA_ARGS__)               \
                                  row(19, 160, "%80", "%81", "%82", "%83", "%84", "%85", "%86", __VA_ARGS__)           \
                                      row(20, 168, "%84", "%85", "%86", "%87", "%88", "%89", "%90", __VA_ARGS__) row(  \
                                          21, 176, "%88", "%89", "%90", "%91", "%92", "%93", "%94", __VA_ARGS__)       \
                                          row(22, 184, "%92", "%93", "%94", "%95", "%96", "%97", "%98", __VA_ARGS__)   \
                                              row(23, 192, "%96", "%97", "%98", "%99", "%100", "%101", "%102",         \
                                                  __VA_ARGS__) row(24, 200, "%100", "%101", "%102", "%103", "%104",    \
                                                                   "%105", "%106", __VA_ARGS__)                        \
                                                  row(25, 208, "%104", "%105", "%106", "%107", "%108", "%109", "%110", \
                                                      __VA_ARGS__) row(26, 216, "%108", "%109", "%110", "%111",        \
                                                                       "%112", "%113", "%114", __VA_ARGS__)            \
                                                      row(27, 224, "%112", "%113", "%114", "%115", "%116", "%117",     \
                                                          "%118", __VA_ARGS__)                                         \
                                                          row(28, 232, "%116", "%117", "%118", "%119", "%120", "%121", \
                                                              "%122", __VA_ARGS__)                                     \
                                                              row(29, 240, "%120", "%121", "%122", "%123", "%124",     \
                                                                  "%125", "%126", __VA_ARGS__)                         \
                                                                  row(30, 248, "%124", "%125", "%126", "%127", "%128", \
                                                                      "%129", "%130", __VA_ARGS__)                     \
                                                                      row(31, 256, "%128", "%129", "%130", "%131",     \
                                                                          "%132", "%133", "%134", __VA_ARGS__)
#define WL_FOR_EACH_N_INT8(row, ...)                                                                                   \
  row(0, 8, "%4", "%5", "%6", "%7", "%8", "%9", "%10", __VA_ARGS__) row(                                               \
      1, 16, "%8", "%9", "%10", "%11", "%12", "%13", "%14",                                                            \
      __VA_ARGS__) row(2, 24, "%12", "%13", "%14", "%15", "%16", "%17", "%18",                                         \
                       __VA_ARGS__) row(3, 32, "%16", "%17", "%18", "%19", "%20", "%21", "%22", __VA_ARGS__)           \
      row(5, 48, "%24", "%25", "%26", "%27", "%28", "%29", "%30", __VA_ARGS__) row(                                    \
          7, 64, "%32", "%33", "%34", "%35", "%36", "%37", "%38",                                                      \
          __VA_ARGS__) row(9, 80, "%40", "%41", "%42", "%43", "%44", "%45", "%46",                                     \
                           __VA_ARGS__) row(11, 96, "%48", "%49", "%50", "%51", "%52", "%53", "%54", __VA_ARGS__)      \
          row(13, 112, "%56", "%57", "%58", "%59", "%60", "%61", "%62",                                                \
              __VA_ARGS__) row(15, 128, "%64", "%65", "%66", "%67", "%68", "%69", "%70",                               \
                               __VA_ARGS__) row(17, 144, "%72", "%73", "%74", "%75", "%76", "%77", "%78", __VA_ARGS__) \
              row(19, 160, "%80", "%81", "%82", "%83", "%84", "%85", "%86",                                            \
                  __VA_ARGS__) row(21, 176, "%88", "%89", "%90", "%91", "%92", "%93", "%94", __VA_ARGS__)              \
                  row(23, 192, "%96", "%97", "%98", "%99", "%100", "%101", "%102", __VA_ARGS__)                        \
                      row(25, 208, "%104", "%105", "%106", "%107", "%108", "%109", "%110", __VA_ARGS__)                \
                          row(27, 224, "%112", "%113", "%114", "%115", "%116", "%117", "%118", __VA_ARGS__)            \
                              row(29, 240, "%120", "%121", "%122", "%123", "%124", "%125", "%126", __VA_ARGS__)        \
                                  row(31, 256, "%128", "%129", "%130", "%131", "%132", "%133", "%134", __VA_ARGS__)

// 16-bit types: both operands may be transposed. The immediates are operands with constraint "n".
#define WL_WGMMA_SS16(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types)                                        \
  template <bool TA, bool TB>                                                                               \
  struct WgmmaShared<n, T, TA, TB> {                                                                        \
    static WL_FN void go(float* d, unsigned long long a, unsigned long long b, int accumulate) {            \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R##i "}, " o0 ", " o1 ", p, 1, 1, " o3 ", " o4 "; }"                             \
                   : WL_D##i("+f")                                                                          \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(int(TA)), "n"(int(TB)));                          \
    }                                                                                                       \
  };
#define WL_WGMMA_RS16(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types)                                        \
  template <bool TB>                                                                                        \
  struct WgmmaRegisters<n, T, TB> {                                                                         \
    static WL_FN void go(float* d, const unsigned* a, unsigned long long b, int accumulate) {               \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R##i "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", p, 1, 1, " o6 "; }"           \
                   : WL_D##i("+f")                                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(int(TB)));    \
    }                                                                                                       \
  };
// Other types: K-major operands only. `tail` is the scale immediates, absent for integers.
#define WL_WGMMA_SS(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)                            \
  template <>                                                                                               \
  struct WgmmaShared<n, T, false, false> {                                                                  \
    static WL_FN void go(Acc* d, unsigned long long a, unsigned long long b, int accumulate) {              \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " o2 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R##i "}, " o0 ", " o1 ", p" tail "; }"                                           \
                   : WL_D##i(c)                                                                             \
                   : "l"(a), "l"(b), "r"(accumulate));                                                      \
    }                                                                                                       \
  };
#define WL_WGMMA_RS(i, n, o0, o1, o2, o3, o4, o5, o6, T, K, types, Acc, c, tail)                            \
  template <>                                                                                               \
  struct WgmmaRegisters<n, T, false> {                                                                      \
    static WL_FN void go(Acc* d, const unsigned* a, unsigned long long b, int accumulate) {                 \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " o5 ", 0; wgmma.mma_async.sync.aligned.m64n" #n K types \
                   " {" WL_R##i "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", p" tail "; }"                 \
                   : WL_D##i(c)                                                                             \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                  \
    }                                                                                                       \
  };

WL_FOR_EACH_N(WL_WGMMA_SS16, bf16, "k16", ".f32.bf16.bf16")
WL_FOR_EACH_N(WL_WGMMA_SS16, f16, "k16", ".f32.f16.f16")
WL_FOR_EACH_N(WL_WGMMA_SS, tf32, "k8", ".f32.tf32.tf32", float, "+f", ", 1, 1")
WL_FOR_EACH_N(WL_WGMMA_SS, e4m3, "k32", ".f32.e4m3.e4m3", float, "+f", ", 1, 1")
WL_FOR_EACH_N(WL_WGMMA_SS, e5m2, "k32", ".f32.e5m2.e5m2", float, "+f", ", 1, 1")
WL_FOR_EACH_N_INT8(WL_WGMMA_SS, signed char, "k32", ".s32.s8.s8", int, "+r", "")
WL_FOR_EACH_N(WL_WGMMA_RS16, bf16, "k16", ".f32.bf16.bf16")
WL_FOR_EACH_N(WL_WGMMA_RS16, f16, "k16", ".f32.f16.f16")
WL_FOR_EACH_N(WL_WGMMA_RS, tf32, "k8", ".f32.tf32.tf32", float, "+f", ", 1, 1")
WL_FOR_EACH_N(WL_WGMMA_RS, e4m3, "k32", ".f32.e4m3.e4m3", float, "+f", ", 1, 1")
WL_FOR_EACH_N(WL_WGMMA_RS, e5m2, "k32", ".f32.e5m2.e5m2", float, "+f", ", 1, 1")
WL_FOR_EACH_N_INT8(WL_WGMMA_RS, signed char, "k32", ".s32.s8.s8", int, "+r", "")

// T: element type of A and B, which sets K: bf16, f16 16; tf32 8; e4m3, e5m2, signed char 32. TRANS: the operand lies
// MN-major in shared memory (16-bit types alone). acc = A B, plus what acc held where accumulate is true.
template <int N, class T, bool TRANS_A, bool TRANS_B, class Acc>
WL_FN void wgmma(Acc* acc, unsigned long long desc_a, unsigned long long desc_b, bool accumulate) {
  WgmmaShared<N, T, TRANS_A, TRANS_B>::go(acc, desc_a, desc_b, accumulate);
}
// A from registers: 16 bytes a thread, laid out as A of mma_m16n8k16 (m16n8k8 for tf32), warp w of the group at row 16 w.
template <int N, class T, bool TRANS_B, class Acc>
WL_FN void wgmma_rs(Acc* acc, const T* a, unsigned long long desc_b, bool accumulate) {
  WgmmaRegisters<N, T, TRANS_B>::go(acc, reinterpret_cast<const unsigned*>(a), desc_b, accumulate);
}

#undef WL_WGMMA_SS16
#undef WL_WGMMA_RS16
#undef WL_WGMMA_SS
#undef WL_WGMMA_RS

}  // namespace wl
