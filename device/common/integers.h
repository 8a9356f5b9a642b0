// The operations on whole numbers of 64 bits in two's complement, one for each row of
// src/base/value_ops.def that has a meaning there: as src/base/integers.h has it.
#pragma once

namespace wl::integers {
WL_PURE long long add(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) +
                                static_cast<unsigned long long>(b));
}

WL_PURE long long sub(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) -
                                static_cast<unsigned long long>(b));
}

WL_PURE long long mul(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) *
                                static_cast<unsigned long long>(b));
}

WL_PURE long long neg(long long a) {
  return sub(0, a);
}

WL_PURE long long div(long long a, long long b) {
  if (b == 0) return 0;
  return b == -1 ? neg(a) : a / b;
}

WL_PURE long long fmod(long long a, long long b) {
  return sub(a, mul(b, div(a, b)));
}

WL_PURE long long bit_and(long long a, long long b) {
  return a & b;
}

WL_PURE long long fma(long long a, long long b, long long c) {
  return add(mul(a, b), c);
}

WL_PURE long long max(long long a, long long b) {
  return a > b ? a : b;
}

WL_PURE long long min(long long a, long long b) {
  return a < b ? a : b;
}

WL_PURE long long where(long long a, long long b, long long c) {
  return a != 0 ? b : c;
}

WL_PURE long long less(long long a, long long b) {
  return a < b ? 1 : 0;
}

WL_PURE long long equal(long long a, long long b) {
  return a == b ? 1 : 0;
}

WL_PURE long long abs(long long a) {
  return a < 0 ? neg(a) : a;
}

WL_PURE long long relu(long long a) {
  return max(a, 0);
}

WL_PURE long long floor(long long a) {
  return a;
}
}  // namespace wl::integers
