#define FUNCTION __device__ inline
FUNCTION unsigned bits_of(float x) { return __float_as_uint(x); }
FUNCTION float float_of(unsigned u) { return __uint_as_float(u); }
struct f16 { unsigned short bits; };
FUNCTION float load(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
FUNCTION void store(f16* p, Real x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(static_cast<float>(x)));
}
