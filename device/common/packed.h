// Elements of less than a byte: 8 / BITS of them to one, the first in the low bits.
#pragma once
namespace wl {
template <int BITS, bool SIGNED> WL_PURE float unpacked(unsigned char byte, int place) {
  constexpr unsigned sign = SIGNED ? 1u << (BITS - 1) : 0u;
  const unsigned bits = (static_cast<unsigned>(byte) >> (place * BITS) & ((1u << BITS) - 1u)) ^ sign;
  return float_of(0x4b000000u | bits) - (8388608.0f + static_cast<float>(sign));  // 2^23 + bits, exactly
}

// x to nearest even, saturated, NaN as 0, at its place in the byte.
template <int BITS, bool SIGNED> WL_PURE unsigned packed(float x, int place) {
  constexpr float low = SIGNED ? -static_cast<float>(1 << (BITS - 1)) : 0.0f;
  constexpr float high = low + static_cast<float>((1 << BITS) - 1);
  const float in = x > low ? (x < high ? x : high) : x == x ? low : 0.0f;
  return (bits_of(in + 12582912.0f) & ((1u << BITS) - 1u)) << (place * BITS);  // 1.5 · 2^23: the integer in the low bits
}
}  // namespace wl
