// The sums of tensor cores: a quick way for numbers of the usual sizes, 8 or more columns at once,
// and a plain one for all others.
#include "tensor_core.h"
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>

namespace wl::emu {
namespace {
constexpr uint32_t kExponent = 0x7f800000;
constexpr float kInfinity = __builtin_inff();
// Largest powers among terms between which nothing below overflows or underflows.
constexpr float kSmall = 0x1p-96f;
constexpr float kLarge = 0x1p96f;
constexpr int kHalf = 8;  // terms whose digits add up to less than 2^31

inline float power_of(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & kExponent);
}

// Some terms of a row, on their way into sums of columns of b.
struct Terms {
  const CoreSum& how;
  const float* a;
  const float* a_powers;
  const float* b;
  const float* b_powers;
  int n;  // from row to row of b
  int count;
};

bool all_finite(const Terms& t, float c) {
  bool finite = std::isfinite(c);
  for (int q = 0; q < t.count; ++q)
    finite = finite && std::isfinite(t.a[q]) && std::isfinite(t.b[q * t.n]);
  return finite;
}

double cut_to(double sum, int fraction) {
  if (sum == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(sum) - fraction);
  return std::trunc(sum / unit) * unit;
}

// One column, as the definition says; infinities and NaN as fp32 has them.
float add_to_one(const Terms& t, float c) {
  double sum = c;
  if (!all_finite(t, c)) {
    for (int q = 0; q < t.count; ++q)
      sum += static_cast<double>(t.a[q]) * t.b[q * t.n];
    return static_cast<float>(sum);
  }
  int most = INT_MIN;
  if (c != 0) most = std::ilogb(c);
  for (int q = 0; q < t.count; ++q) {
    const float x = t.a[q];
    const float y = t.b[q * t.n];
    if (x != 0 && y != 0) most = std::max(most, std::ilogb(x) + std::ilogb(y));
  }
  if (most == INT_MIN) return 0;
  const double unit = std::ldexp(1.0, most - t.how.below);
  sum = std::trunc(c / unit);
  for (int q = 0; q < t.count; ++q)
    sum += std::trunc(static_cast<double>(t.a[q]) * t.b[q * t.n] / unit);
  return static_cast<float>(cut_to(sum * unit, t.how.fraction));
}

// W columns; false, and nothing done, where a size is not usual.
template <int W>
inline __attribute__((always_inline)) bool add_to_columns(const Terms& t, float* __restrict c) {
  float most[W];
  for (int i = 0; i < W; ++i)
    most[i] = power_of(c[i]);
  for (int q = 0; q < t.count; ++q)
    for (int i = 0; i < W; ++i) {
      const float power = t.a_powers[q] * t.b_powers[q * t.n + i];
      most[i] = power > most[i] ? power : most[i];
    }
  int usual = 1;
  for (int i = 0; i < W; ++i)
    usual &= static_cast<int>(most[i] >= kSmall) & static_cast<int>(most[i] <= kLarge);
  if (!usual) return false;
  const auto digits = static_cast<float>(1 << t.how.below);
  float scale[W];
  int first[W];
  int rest[W];
  for (int i = 0; i < W; ++i) {
    scale[i] = digits / most[i];
    first[i] = static_cast<int>(c[i] * scale[i]);
    rest[i] = 0;
  }
  const int half = std::min(t.count, kHalf);
  for (int q = 0; q < half; ++q)
    for (int i = 0; i < W; ++i)
      first[i] += static_cast<int>(t.a[q] * t.b[q * t.n + i] * scale[i]);
  for (int q = half; q < t.count; ++q)
    for (int i = 0; i < W; ++i)
      rest[i] += static_cast<int>(t.a[q] * t.b[q * t.n + i] * scale[i]);
  const uint64_t kept = ~uint64_t{0} << (52 - t.how.fraction);
  for (int i = 0; i < W; ++i) {
    const double sum = (static_cast<double>(first[i]) + rest[i]) * most[i] / digits;
    c[i] = static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(sum) & kept));
  }
  return true;
}

__attribute__((target_clones("avx2", "default"))) void add_terms(const Terms& terms, int columns,
                                                                 float* c) {
  constexpr int kWide = 16;
  Terms t = terms;
  for (int j = 0; j < columns;) {
    t.b = terms.b + j;
    t.b_powers = terms.b_powers + j;
    const bool wide = j + kWide <= columns;
    const bool done = wide ? add_to_columns<kWide>(t, c + j) : add_to_columns<8>(t, c + j);
    const int width = wide ? kWide : 8;
    for (int i = 0; i < width && !done; ++i) {
      Terms one = t;
      one.b = t.b + i;
      c[j + i] = add_to_one(one, c[j + i]);
    }
    j += width;
  }
}
}  // namespace

CoreFactor::CoreFactor(const float* b, int k, int n) : b_(b), k_(k), n_(n), finite_(true) {
  for (int i = 0; i < k * n; ++i)
    powers_[i] = power_of(b[i]);
  for (int i = 0; i < k * n; ++i)
    finite_ = finite_ && powers_[i] < kInfinity;
}

void CoreFactor::add_row(const CoreSum& how, float* c, const float* a) const {
  float powers[32];
  bool finite = finite_;
  for (int q = 0; q < k_; ++q) {
    powers[q] = power_of(a[q]);
    finite = finite && powers[q] < kInfinity;
  }
  for (int from = 0; from < k_; from += how.together) {
    const int count = std::min(how.together, k_ - from);
    const Terms terms{how, a + from, powers + from, b_ + from * n_, powers_ + from * n_, n_, count};
    if (finite) {
      add_terms(terms, n_, c);
      continue;
    }
    for (int i = 0; i < n_; ++i) {
      Terms one = terms;
      one.b = terms.b + i;
      c[i] = add_to_one(one, c[i]);
    }
  }
}
}  // namespace wl::emu
