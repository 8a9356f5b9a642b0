#include <math.h>
#include <cstring>
using f16 = _Float16;
#define FUNCTION static inline
FUNCTION unsigned bits_of(float x) { unsigned u; std::memcpy(&u, &x, 4); return u; }
FUNCTION float float_of(unsigned u) { float x; std::memcpy(&x, &u, 4); return x; }
FUNCTION float load(f16 x) { return static_cast<float>(x); }
FUNCTION void store(f16* p, Real x) { *p = static_cast<f16>(static_cast<float>(x)); }
