// What the plain kernels of both engines are written in: the element types, the bias, the activation. Before it come the engine's
// own head and the problem's constants (vendor.cpp).
struct bf16 { unsigned short bits; };
using In = IN;
using Out = OUT;
using Bias = BIAS_TYPE;
FUNCTION float activate(float x) { return ACTIVATION; }
FUNCTION float load(float x) { return x; }
FUNCTION float load(bf16 x) { return float_of(unsigned(x.bits) << 16); }
FUNCTION void store(float* p, float x) { *p = x; }
FUNCTION void store(bf16* p, float x) {
  const unsigned u = bits_of(x);
  p->bits = x != x ? 0x7fff : static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
FUNCTION float biased(float x, const Bias* bias, long long batch, long long i, long long j) {
  if (kBias == 1) return x + load(bias[j]);
  if (kBias == 2) return x + load(bias[i]);
  if (kBias == 3) return x + load(bias[(batch * kM + i) * kN + j]);
  return x;
}
