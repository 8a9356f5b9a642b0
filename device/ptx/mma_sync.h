// mma.sync: a warp multiplies 16 x K by K x 8 and adds to d. With g = lane / 4 and t = lane % 4 a thread holds
//   d[0..3]: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
//   16-bit a[0..7]: pairs (g, 2t..), (g+8, 2t..), (g, 2t+8..), (g+8, 2t+8..); b[0..3]: (2t.., g), (2t+8.., g)
//   tf32 a[0..3]: (g, t), (g+8, t), (g, t+4), (g+8, t+4); b[0..1]: (t, g), (t+4, g)
//   8-bit a[0..15]: fours (g, 4t..), (g+8, 4t..), (g, 4t+16..), (g+8, 4t+16..); b[0..7]: (4t.., g), (4t+16.., g)
#pragma once

namespace wl {

#define WL_MMA_K16(T, type)                                                             \
  WL_FN void mma_m16n8k16(float* d, const T* a, const T* b) {                           \
    const unsigned* x = reinterpret_cast<const unsigned*>(a);                           \
    const unsigned* y = reinterpret_cast<const unsigned*>(b);                           \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));   \
  }
WL_MMA_K16(bf16, "bf16")
WL_MMA_K16(f16, "f16")
#undef WL_MMA_K16

// 8-bit types: e4m3 and e5m2 into float (sm_89), signed char into int.
#define WL_MMA_K32(T, Acc, c, types)                                                  \
  WL_FN void mma_m16n8k32(Acc* d, const T* a, const T* b) {                           \
    const unsigned* x = reinterpret_cast<const unsigned*>(a);                         \
    const unsigned* y = reinterpret_cast<const unsigned*>(b);                         \
    asm volatile("mma.sync.aligned.m16n8k32.row.col." types                           \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                 : c(d[0]), c(d[1]), c(d[2]), c(d[3])                                 \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
  }
WL_MMA_K32(e4m3, float, "+f", "f32.e4m3.e4m3.f32")
WL_MMA_K32(e5m2, float, "+f", "f32.e5m2.e5m2.f32")
WL_MMA_K32(signed char, int, "+r", "s32.s8.s8.s32")
#undef WL_MMA_K32

WL_FN void mma_m16n8k8(float* d, const tf32* a, const tf32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0].bits), "r"(a[1].bits), "r"(a[2].bits), "r"(a[3].bits), "r"(b[0].bits), "r"(b[1].bits));
}

}  // namespace wl
