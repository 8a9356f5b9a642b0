#include "conformance.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

namespace warploom::emulator::testing {
namespace {
using Words = std::vector<uint32_t>;

uint32_t word(double x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x));
}

float number(uint32_t w) {
  return std::bit_cast<float>(w);
}

struct Dice {
  uint64_t state;

  uint32_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    return static_cast<uint32_t>((z ^ (z >> 27)) >> 20);
  }

  int small() { return static_cast<int>(next() % 5) - 2; }
};

Words random_words(size_t n, uint64_t seed) {
  Dice d{seed};
  Words w(n);
  for (auto& x : w) x = d.next();
  return w;
}

std::vector<uint8_t> bytes_of(const Words& w) {
  std::vector<uint8_t> b(w.size() * 4);
  std::memcpy(b.data(), w.data(), b.size());
  return b;
}

Words words_of(const std::vector<uint8_t>& b) {
  Words w((b.size() + 3) / 4);
  std::memcpy(w.data(), b.data(), b.size());
  return w;
}

// x to nearest even in a format of `mantissa` bits, least exponent `low`, greatest value `most`.
double rounded(double x, int mantissa, int low, double most, bool saturate) {
  if (x == 0 || !std::isfinite(x))
    return !std::isfinite(x) && saturate && std::isinf(x) ? std::copysign(most, x) : x;
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

// Elements of operands: small integers, exact in every type.
struct Type {
  const char* name;
  int bytes;
  uint32_t (*code)(int);
};

uint32_t code_bf16(int v) {
  return word(v) >> 16;
}

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
const Type kS8{"s8", 1, [](int v) { return static_cast<uint32_t>(v) & 0xffu; }};

void put(std::vector<uint8_t>& image, size_t at, const Type& t, int v) {
  const uint32_t code = t.code(v);
  if (image.size() < at + static_cast<size_t>(t.bytes))
    image.resize(at + static_cast<size_t>(t.bytes));
  std::memcpy(&image[at], &code, static_cast<size_t>(t.bytes));
}

int permuted(int width, int row) {
  return width == 128 ? row % 8 : width == 64 ? row % 8 / 2 : width == 32 ? row % 8 / 4 : 0;
}

using Matrix = std::vector<std::vector<int>>;  // [mn][k]

Matrix random_matrix(int mn, int k, uint64_t seed) {
  Dice d{seed};
  Matrix m(static_cast<size_t>(mn), std::vector<int>(static_cast<size_t>(k)));
  for (auto& row : m)
    for (auto& x : row) x = d.small();
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
      const int at = width == 16 ? b / 16 * 128 + k / 8 * (mn * 16) + k % 8 * 16 + b % 16
                                 : b / width * 16 * width + k / 8 * 8 * width + k % 8 * width +
                                       ((b % width / 16) ^ permuted(width, k)) * 16 + b % 16;
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

Conformance wgmma_k_major(const std::string& name, const Type& t, int n, int width, int slice,
                          int b_at) {
  Conformance c;
  c.kernel = name;
  c.threads = 128;
  const Matrix a = random_matrix(64, width / t.bytes, 11);
  const Matrix b = random_matrix(n, width / t.bytes, 12);
  std::vector<uint8_t> image;
  if (width == 16) {
    const Matrix a32 = random_matrix(64, 32 / t.bytes, 11);
    const Matrix b32 = random_matrix(n, 32 / t.bytes, 12);
    image_k_major_plain(image, 0, a32, t);
    image_k_major_plain(image, static_cast<size_t>(b_at), b32, t);
    c.want = products(a32, b32, 0, 32 / t.bytes, 2, 0, false);
  } else {
    image_k_major(image, 0, a, t, width);
    image_k_major(image, static_cast<size_t>(b_at), b, t, width);
    c.want = products(a, b, slice * 32 / t.bytes, 32 / t.bytes, 2, 0, t.name == kS8.name);
  }
  c.in = words_of(image);
  c.shared_bytes = static_cast<int>(image.size());
  return c;
}

Conformance wgmma_mn_major(const std::string& name, int n, int width) {
  Conformance c;
  c.kernel = name;
  c.threads = 128;
  const Matrix a = random_matrix(64, 16, 21);
  const Matrix b = random_matrix(n, 16, 22);
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
  const Matrix a = random_matrix(64, k, 31);
  const Matrix b = random_matrix(64, wide, 32);
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
  for (auto& row : slice) row.erase(row.begin(), row.begin() + k);
  c.want = products(a, slice, 0, k, 1, 1, false);
  return c;
}

Conformance multiply(const std::string& name, const Type& t) {
  Conformance c;
  c.kernel = name;
  const int k = 32 / t.bytes;
  const int per = 4 / t.bytes;
  const Matrix a = random_matrix(16, k, 41);
  const Matrix b = random_matrix(8, k, 42);
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
  const Words all = products(a, b, 0, k, 1, 1, t.name == kS8.name);
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 4; ++e)
      c.want.push_back(all[static_cast<size_t>((l / 4 + 8 * (e / 2)) * 8 + l % 4 * 2 + e % 2)]);
  return c;
}

Conformance box(const std::string& name, int box_rows, int box_cols, int swizzle, int width) {
  Conformance c;
  c.kernel = name;
  c.shared_bytes = 16384 + 64;
  constexpr int rows = 20;
  constexpr int cols = 72;
  c.in = random_words(rows * cols / 2, 51);
  c.map_in = {0, rows, cols, box_rows, box_cols, swizzle};
  const int image_words = box_rows * box_cols / 2;
  constexpr int out_rows = 24;
  constexpr int out_cols = 80;
  c.map_out = {image_words, out_rows, out_cols, box_rows, box_cols, swizzle};
  std::vector<uint8_t> image(static_cast<size_t>(image_words) * 4 + out_rows * out_cols * 2);
  const auto source = bytes_of(c.in);
  for (int r = 0; r < box_rows; ++r)
    for (int e = 0; e < box_cols; ++e) {
      uint8_t v[2] = {0, 0};
      if (r + 5 < rows && e + 8 < cols)
        std::memcpy(v, &source[static_cast<size_t>(((r + 5) * cols + e + 8) * 2)], 2);
      const int kb = e * 2;
      std::memcpy(&image[static_cast<size_t>(r * box_cols * 2 +
                                             ((kb / 16) ^ permuted(width, r)) * 16 + kb % 16)],
                  v, 2);
      if (r + 2 < out_rows && e + 16 < out_cols)
        std::memcpy(
            &image[static_cast<size_t>(image_words * 4 + ((r + 2) * out_cols + e + 16) * 2)], v, 2);
    }
  c.want = words_of(image);
  return c;
}

Conformance simple(const std::string& name, Words in, Words want, int threads = 32,
                   int shared = 0) {
  Conformance c;
  c.kernel = name;
  c.in = std::move(in);
  c.want = std::move(want);
  c.threads = threads;
  c.shared_bytes = shared;
  return c;
}

// 32 threads add i + thread % 2 to element i, and two of them once more.
Conformance combined() {
  Conformance c = simple("combined", {0x7fc00000u}, {});
  const auto sum = [](int i) { return 34 * i + 17; };
  const auto pad = [&] { c.want.resize((c.want.size() + 7) / 8 * 8); };
  for (const int n : {4, 2, 1})
    for (int i = 0; i < n; ++i) c.want.push_back(word(sum(i)));
  pad();
  for (const int n : {4, 2, 1})
    for (int i = 0; i < n; ++i) c.want.push_back(static_cast<uint32_t>(sum(i)));
  pad();
  const auto as_half = [](int v) {  // exact: 9 bits
    int e = 0;
    while (v >> (e + 1)) ++e;
    return static_cast<uint32_t>((e + 15) << 10 | (v << 10 >> e & 0x3ff));
  };
  for (const bool bf16 : {false, true})
    for (const int n : {8, 4, 2, 1})
      for (int i = 0; i < n; i += 2) {
        const auto code = [&](int at) {
          return at >= n ? 0u : bf16 ? code_bf16(sum(at)) : as_half(sum(at));
        };
        c.want.push_back(code(i) | code(i + 1) << 16);
      }
  for (const double x : {15.0, 7.5, -16.0, -8.0}) c.want.push_back(word(x));
  for (const int n : {14, 28, -16, -32}) c.want.push_back(static_cast<uint32_t>(n));
  c.want.insert(c.want.end(), {0x7fffffffu, 0xffffffffu, word(-0.5)});  // NaN, NaN
  c.tolerance = 0;
  return c;
}

void add_moves(std::vector<Conformance>& all) {
  {
    Conformance c = simple("ids", {0}, {}, 64);
    const int grid[3] = {4, 3, 2};
    std::copy_n(grid, 3, c.grid);
    c.cluster = 1;
    for (int z = 0; z < 2; ++z)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 4; ++x)
          for (int t = 0; t < 64; ++t) {
            c.want.push_back(static_cast<uint32_t>(t + 100 * (t % 32) + 10000 * (t / 32)));
            c.want.push_back(static_cast<uint32_t>(x + 10 * y + 100 * z));
          }
    all.push_back(c);
  }
  {
    const Words in = random_words(4, 1);
    const auto b = bytes_of(in);
    std::vector<uint8_t> want(124);
    int at = 0;
    for (int width : {16, 8, 4, 2, 1})
      for (int form = 0; form < 4; ++form, at += width)
        for (int i = 0; i < width; ++i)
          want[static_cast<size_t>(at + i)] = form == 1 ? 0 : b[static_cast<size_t>(i)];
    all.push_back(simple("global_widths", in, words_of(want)));
  }
  {
    const Words in = random_words(256, 2);
    const auto b = bytes_of(in);
    std::vector<uint8_t> want;
    for (int width : {16, 8, 4, 2, 1})
      for (int t = 0; t < 64; ++t)
        for (int i = 0; i < width; ++i) want.push_back(b[static_cast<size_t>((t ^ 5) * width + i)]);
    all.push_back(simple("shared_widths", in, words_of(want), 64, 1024));
  }
  {
    const Words in = random_words(128, 3);
    auto half = [&](int m, int r, int c) {
      return in[static_cast<size_t>(m * 32 + r * 4 + c / 2)] >> (c % 2 * 16) & 0xffffu;
    };
    Words loads;
    Words stores;
    for (int x : {1, 2, 4})
      for (bool trans : {false, true})
        for (int l = 0; l < 32; ++l)
          for (int m = 0; m < x; ++m) {
            const int p = l / 4;
            const int q = l % 4 * 2;
            loads.push_back(trans ? half(m, q, p) | half(m, q + 1, p) << 16
                                  : half(m, p, q) | half(m, p, q + 1) << 16);
          }
    for (int x : {1, 2, 4})
      for (bool trans : {false, true}) {
        std::vector<uint32_t> tile(static_cast<size_t>(64 * x));
        for (int l = 0; l < 32; ++l)
          for (int m = 0; m < x; ++m)
            for (int e = 0; e < 2; ++e) {
              const uint32_t v = in[static_cast<size_t>(l * x + m)] >> (16 * e) & 0xffffu;
              const int p = l / 4;
              const int q = l % 4 * 2 + e;
              tile[static_cast<size_t>(m * 64 + (trans ? q * 8 + p : p * 8 + q))] = v;
            }
        for (size_t i = 0; i < tile.size(); i += 2) stores.push_back(tile[i] | tile[i + 1] << 16);
      }
    all.push_back(simple("matrix_loads", in, loads, 32, 512));
    all.push_back(simple("matrix_stores", in, stores, 32, 512));
  }
  {
    const Words in = random_words(128, 4);
    Words want;
    for (int width : {16, 8, 4}) {
      for (int i = 0; i < 8 * width; ++i) want.push_back(in[static_cast<size_t>(i)]);
      for (int t = 0; t < 32; ++t)
        for (int i = 0; i < width / 4; ++i) want.push_back(t % 3 ? in[static_cast<size_t>(i)] : 0);
    }
    all.push_back(simple("async_copies", in, want, 32, 1024));
  }
  Words want;
  for (int l = 0; l < 32; ++l) want.push_back(word(3 * (l ^ 5)));
  for (int l = 0; l < 32; ++l) want.push_back(word(21));
  for (int l = 0; l < 32; ++l) want.push_back(static_cast<uint32_t>(l ^ 16));
  for (int l = 0; l < 32; ++l) want.push_back(static_cast<uint32_t>(l / 2));
  all.push_back(simple("shuffles", {0}, want));
}

void add_data(std::vector<Conformance>& all) {
  Words in = random_words(128, 6);
  Words want;
  for (const uint32_t mask : {~0u, 0xffffu, 0xffu})
    for (uint32_t l = 0; l < 32; ++l)
      want.push_back((in[l % 4 == 1 ? l / 2 : l ^ 3] & mask) | (in[l] & ~mask));
  all.push_back(simple("register_shuffles", in, want));

  for (size_t i = 0; i < 64; i += 2)
    in[i + 1] = i % 8 == 0 ? in[i + 1] : i % 8 == 2 ? ~0u : 0;  // 64 bits: high words
  in[0] = 0x80000000u;
  in[1] = 0;
  in[2] = 0x80000005u;
  in[3] = ~0u;
  want.clear();
  const auto counted = [](int64_t index, int64_t size) {  // from the end below 0
    if (index != static_cast<int32_t>(index)) return ~0u;
    return static_cast<uint32_t>(index < 0 ? index + size : index);
  };
  for (size_t i = 0; i < 32; ++i) {
    const auto wide = static_cast<int64_t>(in[2 * i] | uint64_t{in[2 * i + 1]} << 32);
    const auto narrow = static_cast<int32_t>(in[i]);
    want.insert(want.end(), {counted(narrow, 1000), i % 3 ? ~0u : counted(narrow, 7),
                             counted(wide, 1000), i % 3 ? ~0u : counted(wide, 7)});
  }
  all.push_back(simple("lookups", in, want));

  in = random_words(64, 7);
  const double edges[] = {0,    -0.0, 0.5,  1.5,  2.5, 14.5, 15.5, 16,      1e9,
                          -0.5, -1.5, -7.5, -8.5, -9,  -1e9, NAN,  INFINITY};
  for (size_t i = 0; i < 64; ++i)
    in.push_back(word(i < std::size(edges) ? edges[i] : static_cast<double>(i) * 0.37 - 12));
  want.clear();
  const auto code = [](double x, int bits, bool is_signed) {
    const double low = is_signed ? -std::ldexp(1, bits - 1) : 0;
    const double high = low + std::ldexp(1, bits) - 1;
    const double in_range = std::isnan(x) ? 0 : std::clamp(x, low, high);
    return static_cast<uint32_t>(static_cast<int>(std::nearbyint(in_range))) & ((1u << bits) - 1);
  };
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t b = in[i];
    const auto nibble = [&](uint32_t n) { return static_cast<int>((b >> n & 15) ^ 8) - 8; };
    const double x = number(in[64 + i]);
    for (const double y : {static_cast<double>(b & 255), nibble(8) + 16.0 * nibble(12),
                           (b >> 22 & 3) + 16.0 * (b >> 16 & 3), (b >> 31) + 16.0 * (b >> 24 & 1)})
      want.push_back(word(y));
    want.insert(want.end(), {code(x, 4, false) * 17, code(x, 4, true) << 4, code(x, 2, false) << 4,
                             code(x, 1, false) << 5});
  }
  all.push_back(simple("packed_elements", in, want, 64));
}

void add_values(std::vector<Conformance>& all) {
  Dice d{5};
  Words in;
  for (double x : {0.0,        -0.0,
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
  while (in.size() < 512)
    in.push_back(
        word(std::ldexp(d.next() / 2147483648.0 - 1, static_cast<int>(d.next() % 40) - 20)));
  Words want;
  for (uint32_t w : in) {
    const double x = number(w);
    for (double y : {as_bf16(x), as_f16(x), as_tf32(x), rounded(x, 3, -6, 448, true),
                     rounded(x, 2, -14, 57344, true), as_tf32(x)})
      want.push_back(word(y));
  }
  Conformance casts = simple("casts", in, want, 128);
  casts.grid[0] = 4;
  all.push_back(casts);

  in.clear();
  want.clear();
  for (int i = 0; i < 512; ++i)
    in.push_back(
        word(std::ldexp(d.next() / 2147483648.0 - 1, static_cast<int>(d.next() % 12) - 7)));
  in[0] = word(0.0);
  in[1] = word(NAN);
  in[2] = word(NAN);
  in[4] = word(2.0);
  in[5] = word(2.0);
  in[6] = word(-100.0);
  in[8] = word(88.0);
  for (size_t i = 0; i < in.size(); i += 2) {
    const double a = number(in[i]);
    const double b = number(in[i + 1]);
    const bool nan = std::isnan(a) || std::isnan(b);
    for (double y :
         {a + b,
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
          std::ldexp(1.0,
                     std::isfinite(a) ? std::clamp(a == 0 ? -126 : std::ilogb(a), -126, 126) : 126),
          std::ldexp(1.0, -(std::isfinite(a) ? std::clamp(a == 0 ? -126 : std::ilogb(a), -126, 126)
                                             : 126)),
          std::atan(a),
          std::fmod(a, b)})
      want.push_back(word(y));
  }
  Conformance values = simple("values", in, want, 64);
  values.grid[0] = 4;
  values.tolerance = 6e-7;
  all.push_back(values);

  in = {word(0.0),
        word(-0.0),
        word(NAN),
        word(double(INFINITY)),
        word(-double(INFINITY)),
        word(88.0),
        word(-87.0),
        word(200.0),
        word(-200.0)};
  while (in.size() < 256) in.push_back(word((d.next() / 2147483648.0 - 1) * 80));
  want.clear();
  for (const uint32_t a : in) want.push_back(word(std::exp(number(a))));
  Conformance fast = simple("fast_exp", in, want, 64);
  fast.grid[0] = 4;
  fast.tolerance = 0x1p-22 + 88 * 0x1p-24;
  all.push_back(fast);
}
}  // namespace

std::vector<Conformance> conformance_cases() {
  std::vector<Conformance> all;
  add_moves(all);
  add_data(all);
  add_values(all);
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
  all.push_back(box("box_none", 8, 64, 0, 16));
  all.push_back(box("box_128", 16, 64, 1, 128));
  all.push_back(box("box_64", 16, 32, 2, 64));
  all.push_back(box("box_32", 16, 16, 3, 32));
  Words ping;
  for (int i = 0; i < 10; ++i)
    for (int l = 0; l < 32; ++l) ping.push_back(static_cast<uint32_t>(3 * i + (l ^ 1)));
  all.push_back(simple("ping_pong", {0}, ping, 64, 256));
  Conformance ring = simple("cluster_ring", random_words(512, 61), {}, 32, 8192 + 128);
  ring.grid[0] = ring.cluster = 4;
  ring.map_in = {0, 16, 64, 16, 64, 0};
  for (uint32_t r = 0; r < 4; ++r)
    for (uint32_t w : {100 + (r + 3) % 4, 100 + (r + 1) % 4, ring.in[r * 32], ring.in[r * 32 + 1]})
      ring.want.push_back(w);
  all.push_back(ring);
  Conformance stores = simple("store_async", {0}, {}, 32, 512);
  stores.grid[0] = stores.cluster = 4;
  for (uint32_t i = 0; i < 128; ++i) stores.want.push_back(1000 * ((i / 32 + 2) % 4) + i % 32);
  all.push_back(stores);
  Conformance pairs = simple("cluster_pairs", random_words(1024, 62), {}, 32, 2048 + 64);
  pairs.grid[0] = pairs.cluster = 4;
  pairs.map_in = {0, 32, 64, 8, 64, 0};
  for (size_t r = 0; r < 4; ++r)
    for (size_t t = 0; t < 32; ++t)
      pairs.want.push_back(pairs.in[(r % 2 * 16 + t / 2) * 32 + t % 2]);
  all.push_back(pairs);
  all.push_back(combined());
  Conformance reduced = simple("reduced_box", {}, Words(768), 32, 1024);
  reduced.map_out = {0, 24, 64, 8, 64, 0};
  for (uint32_t i = 0; i < 256; ++i) {
    const int low = static_cast<int>(i % 7) - 3;
    const int high = static_cast<int>(i % 5);
    reduced.in.push_back(code_bf16(low) | code_bf16(high) << 16);
    reduced.want[128 + i] = code_bf16(2 * low) | code_bf16(2 * high) << 16;
  }
  all.push_back(reduced);
  Conformance flags = simple("flags", {0}, {}, 64);
  flags.grid[0] = 3;
  flags.cooperative = true;
  for (uint32_t i = 0; i < 256; ++i)
    flags.want.push_back(i < 64 ? (i < 3 ? 3 : 0) : i / 64 * (1 + i % 64));
  all.push_back(flags);
  Words moved;
  for (uint32_t t = 0; t < 256; ++t) moved.push_back(t < 128 ? t : 2 * t);
  all.push_back(simple("registers_moved", {0}, moved, 256));
  return all;
}

std::string compare(const Conformance& c, const Words& got) {
  for (size_t i = 0; i < c.want.size(); ++i) {
    if (got[i] == c.want[i]) continue;
    const double w = number(c.want[i]);
    const double g = number(got[i]);
    if (c.tolerance >= 0 &&
        ((std::isnan(w) && std::isnan(g)) ||
         std::abs(g - w) <= c.tolerance * std::abs(w) + 1.2e-38 || (w == 0 && g == 0)))
      continue;
    return c.kernel + ": word " + std::to_string(i) + " is " + std::to_string(got[i]) + " (" +
           std::to_string(g) + "), not " + std::to_string(c.want[i]) + " (" + std::to_string(w) +
           ")";
  }
  return "";
}
}  // namespace warploom::emulator::testing
