#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include "conformance_parts.h"
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
namespace {
// Elements of operands: small integers, exact in every type, or numbers of many digits.
struct Type {
  const char* name;
  int bytes;
  uint32_t (*code)(int);
  double (*value)(int) = nullptr;  // of the latter
};

uint32_t code_tf32(int v) {
  return word(v);
}

uint32_t small_float(int v, int mantissa, int bias, int sign_bit) {
  if (v == 0) return 0;
  // 1 or 2: powers of two
  const int m = std::abs(v);
  const int e = m >= 2;
  return static_cast<uint32_t>((e + bias) << mantissa | (v < 0) << sign_bit);
}

const Type kBf16{"bf16", 2, code_bf16};
const Type kTf32{"tf32", 4, code_tf32};
const Type kF16{"f16", 2, [](int v) { return small_float(v, 10, 15, 15); }};
const Type kE4m3{"e4m3", 1, [](int v) { return small_float(v, 3, 7, 7); }};
const Type kE5m2{"e5m2", 1, [](int v) { return small_float(v, 2, 15, 7); }};

// Of numbers of many digits: sign, an exponent of -4 to 3 and the mantissa are bits of v.
int exponent_of(int v) {
  return v / 2 % 8 - 4;
}

template <int mantissa, int bias> uint32_t many_digits(int v) {
  constexpr bool is_tf32 = mantissa == 10 && bias == 127;
  constexpr int sign_bit = bias == 127 ? 8 + mantissa : (bias == 7 ? 4 : 5) + mantissa;
  const int digits = v / 16 % (1 << mantissa);
  const auto code =
      static_cast<uint32_t>(v % 2 << sign_bit | (exponent_of(v) + bias) << mantissa | digits);
  return is_tf32 ? code << 13 : code;
}

template <int mantissa> double value_of_digits(int v) {
  const double digits = v / 16 % (1 << mantissa);
  const double size = std::ldexp(1 + std::ldexp(digits, -mantissa), exponent_of(v));
  return v % 2 ? -size : size;
}

const Type kBf16Digits{"bf16", 2, many_digits<7, 127>, value_of_digits<7>};
const Type kF16Digits{"f16", 2, many_digits<10, 15>, value_of_digits<10>};
const Type kTf32Digits{"tf32", 4, many_digits<10, 127>, value_of_digits<10>};
const Type kE4m3Digits{"e4m3", 1, many_digits<3, 7>, value_of_digits<3>};
const Type kE5m2Digits{"e5m2", 1, many_digits<2, 15>, value_of_digits<2>};

const Type kS8{"s8", 1, [](int v) { return static_cast<uint32_t>(v) & 0xffu; }};

void put(std::vector<uint8_t>& image, size_t at, const Type& t, int v) {
  const uint32_t code = t.code(v);
  if (image.size() < at + static_cast<size_t>(t.bytes))
    image.resize(at + static_cast<size_t>(t.bytes));
  std::memcpy(&image[at], &code, static_cast<size_t>(t.bytes));
}

using Matrix = std::vector<std::vector<int>>;  // [mn][k]

Matrix random_matrix(int mn, int k, uint64_t seed, const Type& t) {
  Dice d{seed};
  Matrix m(static_cast<size_t>(mn), std::vector<int>(static_cast<size_t>(k)));
  for (auto& row : m)
    for (auto& x : row)
      x = t.value ? static_cast<int>(d.next() % (1 << 16)) : d.small();
  return m;
}

// Rows of `width` bytes with 16-byte chunks permuted: K-major operands, k beyond one slice
// included.
void image_k_major(std::vector<uint8_t>& image, size_t base, const Matrix& m, const Type& t,
                   int width) {
  for (int r = 0; r < static_cast<int>(m.size()); ++r)
    for (int k = 0; k < width / t.bytes; ++k) {
      const int kb = k * t.bytes;
      put(image,
          base + static_cast<size_t>(r * width + ((kb / 16) ^ permuted(width, r)) * 16 + kb % 16),
          t, m[static_cast<size_t>(r)][static_cast<size_t>(k)]);
    }
}

void image_k_major_plain(std::vector<uint8_t>& image, size_t base, const Matrix& m, const Type& t) {
  for (int r = 0; r < static_cast<int>(m.size()); ++r)
    for (int k = 0; k < 32 / t.bytes; ++k)
      put(image,
          base + static_cast<size_t>(k * t.bytes / 16 * 1024 + r / 8 * 128 + r % 8 * 16 +
                                     k * t.bytes % 16),
          t, m[static_cast<size_t>(r)][static_cast<size_t>(k)]);
}

// Chunks of `width` bytes along MN, 16 rows of K each; without swizzle 8 x 16-byte cores, MN
// innermost by 128 bytes.
void image_mn_major(std::vector<uint8_t>& image, size_t base, const Matrix& m, const Type& t,
                    int width) {
  const int mn = static_cast<int>(m.size());
  for (int i = 0; i < mn; ++i)
    for (int k = 0; k < 16; ++k) {
      const int b = i * 2;
      const int plain = b / 16 * 128 + k / 8 * (mn * 16) + k % 8 * 16 + b % 16;
      const int row = b / width * 16 * width + k / 8 * 8 * width + k % 8 * width;
      const int chunk = (b % width / 16) ^ permuted(width, k);
      const int at = width == 16 ? plain : row + chunk * 16 + b % 16;
      put(image, base + static_cast<size_t>(at), t,
          m[static_cast<size_t>(i)][static_cast<size_t>(k)]);
    }
}

Words products(const Matrix& a, const Matrix& b, int k_first, int k_count, int times, int start,
               bool integers) {
  Words w;
  for (const auto& row : a)
    for (const auto& col : b) {
      int sum = 0;
      for (int k = k_first; k < k_first + k_count; ++k)
        sum += row[static_cast<size_t>(k)] * col[static_cast<size_t>(k)];
      const int v = start + times * sum;
      w.push_back(integers ? static_cast<uint32_t>(v) : word(v));
    }
  return w;
}

// How many terms an instruction adds at once, the digits below their largest exponent that count,
// and those of a sum behind its first one.
struct Rounding {
  int together;
  int below;
  int fraction;
};

double toward_zero(double x, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(x, -exponent)), exponent);
}

// c plus the products of the elements a[i] and b[i], as device/emulated/tensor_core.h has it.
double core_sum(const Rounding& how, double c, const std::vector<double>& a,
                const std::vector<double>& b) {
  const auto step = static_cast<size_t>(how.together);
  for (size_t from = 0; from < a.size(); from += step) {
    int most = c == 0 ? -1000 : std::ilogb(c);
    for (size_t i = from; i < from + step; ++i)
      most = std::max(most, std::ilogb(a[i]) + std::ilogb(b[i]));
    double sum = toward_zero(c, most - how.below);
    for (size_t i = from; i < from + step; ++i)
      sum += toward_zero(a[i] * b[i], most - how.below);
    c = sum == 0 ? 0 : toward_zero(sum, std::ilogb(sum) - how.fraction);
  }
  return c;
}

// The sums of `times` instructions, one after another, whose operands are elements k_first … of the
// rows. mma.sync of 8-bit floats is two steps of 16 terms, pairs of neighbours by turns, and an
// addition that rounds to nearest.
Words sums(const Matrix& a, const Matrix& b, int k_first, const Type& t, int times, double start) {
  const int k = 32 / t.bytes;
  const bool warpgroup = times > 1;
  Rounding how{t.bytes == 4 ? 8 : 16, 25, 23};
  if (t.bytes == 1 && warpgroup) how = {32, 13, 13};
  const bool in_pairs = t.bytes == 1 && !warpgroup;
  Words w;
  for (const auto& row : a)
    for (const auto& col : b) {
      std::vector<double> x;
      std::vector<double> y;
      for (int i = 0; i < k; ++i) {
        const int at = k_first + (in_pairs ? i % 16 / 2 * 4 + i / 16 * 2 + i % 2 : i);
        x.push_back(t.value(row[static_cast<size_t>(at)]));
        y.push_back(t.value(col[static_cast<size_t>(at)]));
      }
      double sum = in_pairs ? start + core_sum(how, 0, x, y) : start;
      for (int i = 0; i < times && !in_pairs; ++i)
        sum = core_sum(how, sum, x, y);
      w.push_back(word(sum));
    }
  return w;
}

Conformance wgmma_k_major(const std::string& name, const Type& t, int n, int width, int slice,
                          int b_at) {
  Conformance c;
  c.kernel = name;
  c.threads = 128;
  const Matrix a = random_matrix(64, width / t.bytes, 11, t);
  const Matrix b = random_matrix(n, width / t.bytes, 12, t);
  std::vector<uint8_t> image;
  if (width == 16) {
    const Matrix a32 = random_matrix(64, 32 / t.bytes, 11, t);
    const Matrix b32 = random_matrix(n, 32 / t.bytes, 12, t);
    image_k_major_plain(image, 0, a32, t);
    image_k_major_plain(image, static_cast<size_t>(b_at), b32, t);
    c.want = products(a32, b32, 0, 32 / t.bytes, 2, 0, false);
  } else {
    image_k_major(image, 0, a, t, width);
    image_k_major(image, static_cast<size_t>(b_at), b, t, width);
    const int first = slice * 32 / t.bytes;
    c.want = t.value ? sums(a, b, first, t, 2, 0)
                     : products(a, b, first, 32 / t.bytes, 2, 0, t.name == kS8.name);
  }
  c.in = words_of(image);
  c.shared_bytes = static_cast<int>(image.size());
  return c;
}

Conformance wgmma_mn_major(const std::string& name, int n, int width) {
  Conformance c;
  c.kernel = name;
  c.threads = 128;
  const Matrix a = random_matrix(64, 16, 21, kBf16);
  const Matrix b = random_matrix(n, 16, 22, kBf16);
  std::vector<uint8_t> image;
  image_mn_major(image, 0, a, kBf16, width);
  image_mn_major(image, 2048, b, kBf16, width);
  c.in = words_of(image);
  c.shared_bytes = static_cast<int>(image.size());
  c.want = products(a, b, 0, 16, 2, 0, false);
  return c;
}

Conformance wgmma_registers(const std::string& name, const Type& t) {
  Conformance c;
  c.kernel = name;
  c.threads = 128;
  c.shared_bytes = 8192;
  const int k = 32 / t.bytes;
  const int per = 4 / t.bytes;
  const int wide = 128 / t.bytes;
  const Matrix a = random_matrix(64, k, 31, t);
  const Matrix b = random_matrix(64, wide, 32, t);
  std::vector<uint8_t> image(2048);
  for (int th = 0; th < 128; ++th)
    for (int reg = 0; reg < 4; ++reg)
      for (int e = 0; e < per; ++e) {
        const int row = th / 32 * 16 + th % 32 / 4 + 8 * (reg % 2);
        const int col = reg / 2 * (k / 2) + th % 4 * per + e;
        put(image, static_cast<size_t>(th * 16 + reg * 4 + e * t.bytes), t,
            a[static_cast<size_t>(row)][static_cast<size_t>(col)]);
      }
  image_k_major(image, 2048, b, t, 128);
  c.in = words_of(image);
  Matrix slice = b;
  for (auto& row : slice)
    row.erase(row.begin(), row.begin() + k);
  c.want = products(a, slice, 0, k, 1, 1, false);
  return c;
}

Conformance multiply(const std::string& name, const Type& t) {
  Conformance c;
  c.kernel = name;
  const int k = 32 / t.bytes;
  const int per = 4 / t.bytes;
  const Matrix a = random_matrix(16, k, 41, t);
  const Matrix b = random_matrix(8, k, 42, t);
  std::vector<uint8_t> image;
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 4 * per; ++e)
      put(image, static_cast<size_t>(l * 16 + e * t.bytes), t,
          a[static_cast<size_t>(l / 4 + 8 * (e / per % 2))]
           [static_cast<size_t>(l % 4 * per + e % per + k / 2 * (e / per / 2))]);
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 2 * per; ++e)
      put(image, static_cast<size_t>(512 + l * 8 + e * t.bytes), t,
          b[static_cast<size_t>(l / 4)]
           [static_cast<size_t>(l % 4 * per + e % per + k / 2 * (e / per))]);
  c.in = words_of(image);
  const Words all =
      t.value ? sums(a, b, 0, t, 1, 1) : products(a, b, 0, k, 1, 1, t.name == kS8.name);
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 4; ++e)
      c.want.push_back(all[static_cast<size_t>((l / 4 + 8 * (e / 2)) * 8 + l % 4 * 2 + e % 2)]);
  return c;
}
}  // namespace

std::vector<Conformance> product_cases() {
  std::vector<Conformance> all;
  all.push_back(multiply("multiply_bf16", kBf16));
  all.push_back(multiply("multiply_f16", kF16));
  all.push_back(multiply("multiply_tf32", kTf32));
  all.push_back(multiply("multiply_e4m3", kE4m3));
  all.push_back(multiply("multiply_e5m2", kE5m2));
  all.push_back(multiply("multiply_s8", kS8));
  all.push_back(wgmma_k_major("wgmma_bf16_128", kBf16, 64, 128, 1, 8192));
  all.push_back(wgmma_k_major("wgmma_bf16_64", kBf16, 64, 64, 1, 4096));
  all.push_back(wgmma_k_major("wgmma_bf16_32", kBf16, 64, 32, 0, 2048));
  all.push_back(wgmma_k_major("wgmma_bf16_none", kBf16, 64, 16, 0, 2048));
  all.push_back(wgmma_mn_major("wgmma_bf16_mn_128", 128, 128));
  all.push_back(wgmma_mn_major("wgmma_bf16_mn_64", 128, 64));
  all.push_back(wgmma_mn_major("wgmma_bf16_mn_32", 128, 32));
  all.push_back(wgmma_mn_major("wgmma_bf16_mn_none", 128, 16));
  all.push_back(wgmma_k_major("wgmma_f16_8", kF16, 8, 128, 0, 8192));
  all.push_back(wgmma_k_major("wgmma_f16_256", kF16, 256, 128, 2, 8192));
  all.push_back(wgmma_k_major("wgmma_tf32_64", kTf32, 64, 128, 1, 8192));
  all.push_back(wgmma_k_major("wgmma_e4m3_64", kE4m3, 64, 128, 1, 8192));
  all.push_back(wgmma_k_major("wgmma_e5m2_64", kE5m2, 64, 128, 1, 8192));
  all.push_back(wgmma_k_major("wgmma_s8_64", kS8, 64, 128, 1, 8192));
  all.push_back(wgmma_registers("wgmma_rs_bf16", kBf16));
  all.push_back(wgmma_registers("wgmma_rs_f16", kF16));
  all.push_back(wgmma_registers("wgmma_rs_tf32", kTf32));
  all.push_back(wgmma_registers("wgmma_rs_e4m3", kE4m3));
  for (const Type* t : {&kBf16Digits, &kF16Digits, &kTf32Digits, &kE4m3Digits, &kE5m2Digits}) {
    const std::string name = t->name;
    all.push_back(multiply("multiply_sums_" + name, *t));
    all.push_back(wgmma_k_major("wgmma_sums_" + name, *t, 64, 128, 1, 8192));
  }
  return all;
}
}  // namespace warploom::emulator::testing
