#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "conformance_parts.h"
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
namespace {
// x to nearest even in a format of `mantissa` bits, least exponent `low`, greatest value `most`.
double rounded(double x, int mantissa, int low, double most, bool saturate) {
  if (std::isinf(x) && saturate) return std::copysign(most, x);
  if (x == 0 || !std::isfinite(x)) return x;
  const int e = std::max(std::ilogb(x), low);
  const double unit = std::ldexp(1.0, e - mantissa);
  const double r = std::nearbyint(x / unit) * unit;
  if (std::abs(r) <= most) return r;
  return std::copysign(saturate ? most : INFINITY, x);
}

double as_bf16(double x) {
  return rounded(x, 7, -126, 3.3895313892515355e38, false);
}

double as_f16(double x) {
  return rounded(x, 10, -14, 65504, false);
}

double as_tf32(double x) {
  return rounded(x, 10, -126, 3.4011621342146535e38, false);
}

// -1 to 1
double signed_unit(Dice& d) {
  return d.next() / 2147483648.0 - 1;
}

Conformance casts(Dice& d) {
  Words in;
  for (const double x : {0.0,        -0.0,
                         1.0,        -1.5,
                         65504.0,    65520.0,
                         1e5,        448.0,
                         464.0,      465.0,
                         57344.0,    61440.0,
                         6e-8,       3e-8,
                         1e-3,       0.001953125,
                         1.00390625, 1.01171875,
                         -1e9,       3e38,
                         1e-30,      double(INFINITY)})
    in.push_back(word(x));
  while (in.size() < 512) {
    const int exponent = static_cast<int>(d.next() % 40) - 20;
    in.push_back(word(std::ldexp(signed_unit(d), exponent)));
  }
  Words want;
  for (const uint32_t w : in) {
    const double x = number(w);
    for (const double y : {as_bf16(x), as_f16(x), as_tf32(x), rounded(x, 3, -6, 448, true),
                           rounded(x, 2, -14, 57344, true), as_tf32(x)})
      want.push_back(word(y));
  }
  Conformance c = simple("casts", in, want, 128);
  c.grid[0] = 4;
  return c;
}

// Two to the power of x's exponent, or of its negation, as exponents of normal numbers go.
double power_of(double x, int sign) {
  if (!std::isfinite(x)) return std::ldexp(1.0, sign * 126);
  const int exponent = x == 0 ? -126 : std::ilogb(x);
  return std::ldexp(1.0, sign * std::clamp(exponent, -126, 126));
}

// What kernel `values` answers of two numbers: rows of value_ops.def in its order.
std::vector<double> values_of(double a, double b) {
  const bool nan = std::isnan(a) || std::isnan(b);
  return {a + b,
          a - b,
          a * b,
          a / b,
          nan ? NAN : std::max(a, b),
          nan ? NAN : std::min(a, b),
          std::fma(a, b, 0.75),
          a != 0 ? b : 0.75,
          a < b ? 1.0 : 0.0,
          a == b ? 1.0 : 0.0,
          -a,
          std::abs(a),
          std::exp(a),
          std::exp2(a),
          std::log(std::abs(a)),
          std::sqrt(std::abs(a)),
          1 / std::sqrt(std::abs(a)),
          1 / a,
          std::tanh(a),
          std::sin(a),
          std::cos(a),
          std::erf(a),
          std::isnan(a) ? a : std::max(a, 0.0),
          1 / (1 + std::exp(-a)),
          std::floor(a),
          as_tf32(a),
          power_of(a, 1),
          power_of(a, -1),
          std::atan(a),
          std::fmod(a, b)};
}

Conformance values(Dice& d) {
  Words in;
  for (int i = 0; i < 512; ++i) {
    const int exponent = static_cast<int>(d.next() % 12) - 7;
    in.push_back(word(std::ldexp(signed_unit(d), exponent)));
  }
  in[0] = word(0.0);
  in[1] = word(NAN);
  in[2] = word(NAN);
  in[4] = word(2.0);
  in[5] = word(2.0);
  in[6] = word(-100.0);
  in[8] = word(88.0);
  Words want;
  for (size_t i = 0; i < in.size(); i += 2)
    for (const double y : values_of(number(in[i]), number(in[i + 1])))
      want.push_back(word(y));
  Conformance c = simple("values", in, want, 64);
  c.grid[0] = 4;
  c.tolerance = 6e-7;
  return c;
}

Conformance fast_exp(Dice& d) {
  Words in;
  for (const double x :
       {0.0, -0.0, double(NAN), double(INFINITY), -double(INFINITY), 88.0, -87.0, 200.0, -200.0})
    in.push_back(word(x));
  while (in.size() < 256)
    in.push_back(word(signed_unit(d) * 80));
  Words want;
  for (const uint32_t a : in)
    want.push_back(word(std::exp(number(a))));
  Conformance c = simple("fast_exp", in, want, 64);
  c.grid[0] = 4;
  c.tolerance = 0x1p-22 + 88 * 0x1p-24;
  return c;
}
}  // namespace

std::vector<Conformance> value_cases() {
  Dice d{5};
  std::vector<Conformance> all;
  all.push_back(casts(d));
  all.push_back(values(d));
  all.push_back(fast_exp(d));
  return all;
}
}  // namespace warploom::emulator::testing
