// mma.sync: a warp multiplies 16 x K by K x 8 and adds to d. With g = lane / 4 and t = lane % 4 a
// thread holds
//   d[0..3]: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
//   16-bit a[0..7]: pairs (g, 2t..), (g+8, 2t..), (g, 2t+8..), (g+8, 2t+8..); b[0..3]: (2t.., g),
//   (2t+8.., g) tf32 a[0..3]: (g, t), (g+8, t), (g, t+4), (g+8, t+4); b[0..1]: (t, g), (t+4, g)
//   8-bit a[0..15]: fours (g, 4t..), (g+8, 4t..), (g, 4t+16..), (g+8, 4t+16..); b[0..7]: (4t.., g),
//   (4t+16.., g)
#pragma once

namespace wl {
// 8-bit floats need sm_89.
#define WL_MMA(shape, T, Acc, c, types)                                               \
  WL_FN void mma_##shape(Acc* d, const T* a, const T* b) {                            \
    const unsigned* x = reinterpret_cast<const unsigned*>(a);                         \
    const unsigned* y = reinterpret_cast<const unsigned*>(b);                         \
    asm volatile("mma.sync.aligned." #shape ".row.col." types                         \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                 : c(d[0]), c(d[1]), c(d[2]), c(d[3])                                 \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
  }
WL_MMA(m16n8k16, bf16, float, "+f", "f32.bf16.bf16.f32")
WL_MMA(m16n8k16, f16, float, "+f", "f32.f16.f16.f32")
WL_MMA(m16n8k8, tf32, float, "+f", "f32.tf32.tf32.f32")
WL_MMA(m16n8k32, e4m3, float, "+f", "f32.e4m3.e4m3.f32")
WL_MMA(m16n8k32, e5m2, float, "+f", "f32.e5m2.e5m2.f32")
WL_MMA(m16n8k32, signed char, int, "+r", "s32.s8.s8.s32")
#undef WL_MMA
}  // namespace wl
