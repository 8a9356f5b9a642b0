#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>
#include "conformance_parts.h"
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
namespace {
Conformance ids() {
  Conformance c = simple("ids", {0}, {}, 64);
  const int grid[3] = {4, 3, 2};
  std::copy_n(grid, 3, c.grid);
  c.cluster = 1;
  for (int block = 0; block < 4 * 3 * 2; ++block)
    for (int t = 0; t < 64; ++t) {
      const int x = block % 4;
      const int y = block / 4 % 3;
      const int z = block / 12;
      c.want.push_back(static_cast<uint32_t>(t + 100 * (t % 32) + 10000 * (t / 32)));
      c.want.push_back(static_cast<uint32_t>(x + 10 * y + 100 * z));
    }
  return c;
}

Conformance global_widths() {
  const Words in = random_words(4, 1);
  const auto b = bytes_of(in);
  std::vector<uint8_t> want;
  for (const int width : {16, 8, 4, 2, 1})
    for (int form = 0; form < 4; ++form)
      for (int i = 0; i < width; ++i)
        want.push_back(form == 1 ? 0 : b[static_cast<size_t>(i)]);
  return simple("global_widths", in, words_of(want));
}

Conformance shared_widths() {
  const Words in = random_words(256, 2);
  const auto b = bytes_of(in);
  std::vector<uint8_t> want;
  for (const int width : {16, 8, 4, 2, 1})
    for (int t = 0; t < 64; ++t)
      for (int i = 0; i < width; ++i)
        want.push_back(b[static_cast<size_t>((t ^ 5) * width + i)]);
  return simple("shared_widths", in, words_of(want), 64, 1024);
}

// Element (r, c) of the m-th 8×8 matrix of 16-bit elements.
uint32_t half_of(const Words& in, int m, int r, int c) {
  return in[static_cast<size_t>(m * 32 + r * 4 + c / 2)] >> (c % 2 * 16) & 0xffffu;
}

Conformance matrix_loads() {
  const Words in = random_words(128, 3);
  Words want;
  const auto load = [&](int count, bool transposed) {
    for (int l = 0; l < 32; ++l)
      for (int m = 0; m < count; ++m) {
        const int p = l / 4;
        const int q = l % 4 * 2;
        want.push_back(transposed ? half_of(in, m, q, p) | half_of(in, m, q + 1, p) << 16
                                  : half_of(in, m, p, q) | half_of(in, m, p, q + 1) << 16);
      }
  };
  for (const int count : {1, 2, 4})
    for (const bool transposed : {false, true})
      load(count, transposed);
  return simple("matrix_loads", in, want, 32, 512);
}

Conformance matrix_stores() {
  const Words in = random_words(128, 3);
  Words want;
  const auto store = [&](int count, bool transposed) {
    Words tile(static_cast<size_t>(64 * count));
    for (int value = 0; value < 64 * count; ++value) {
      const int e = value % 2;
      const int m = value / 2 % count;
      const int l = value / 2 / count;
      const int p = l / 4;
      const int q = l % 4 * 2 + e;
      const int at = m * 64 + (transposed ? q * 8 + p : p * 8 + q);
      tile[static_cast<size_t>(at)] = in[static_cast<size_t>(l * count + m)] >> (16 * e) & 0xffffu;
    }
    for (size_t i = 0; i < tile.size(); i += 2)
      want.push_back(tile[i] | tile[i + 1] << 16);
  };
  for (const int count : {1, 2, 4})
    for (const bool transposed : {false, true})
      store(count, transposed);
  return simple("matrix_stores", in, want, 32, 512);
}

Conformance async_copies() {
  const Words in = random_words(128, 4);
  Words want;
  for (const int width : {16, 8, 4}) {
    for (int i = 0; i < 8 * width; ++i)
      want.push_back(in[static_cast<size_t>(i)]);
    for (int t = 0; t < 32; ++t)
      for (int i = 0; i < width / 4; ++i)
        want.push_back(t % 3 ? in[static_cast<size_t>(i)] : 0);
  }
  return simple("async_copies", in, want, 32, 1024);
}

Conformance shuffles() {
  Words want;
  for (int l = 0; l < 32; ++l)
    want.push_back(word(3 * (l ^ 5)));
  for (int l = 0; l < 32; ++l)
    want.push_back(word(21));
  for (int l = 0; l < 32; ++l)
    want.push_back(static_cast<uint32_t>(l ^ 16));
  for (int l = 0; l < 32; ++l)
    want.push_back(static_cast<uint32_t>(l / 2));
  return simple("shuffles", {0}, want);
}

Conformance register_shuffles() {
  const Words in = random_words(128, 6);
  Words want;
  for (const uint32_t mask : {~0u, 0xffffu, 0xffu})
    for (uint32_t l = 0; l < 32; ++l)
      want.push_back((in[l % 4 == 1 ? l / 2 : l ^ 3] & mask) | (in[l] & ~mask));
  return simple("register_shuffles", in, want);
}

// An index of a tensor of `size`, counted from the end below 0; ~0 where it is no 32-bit number.
uint32_t counted(int64_t index, int64_t size) {
  if (index != static_cast<int32_t>(index)) return ~0u;
  return static_cast<uint32_t>(index < 0 ? index + size : index);
}

Conformance lookups() {
  Words in = random_words(128, 6);
  // High words of 64-bit indices: what was drawn, all ones, or 0.
  for (size_t i = 0; i < 64; i += 2)
    if (i % 8 != 0) in[i + 1] = i % 8 == 2 ? ~0u : 0;
  in[0] = 0x80000000u;
  in[1] = 0;
  in[2] = 0x80000005u;
  in[3] = ~0u;
  Words want;
  for (size_t i = 0; i < 32; ++i) {
    const auto wide = static_cast<int64_t>(in[2 * i] | uint64_t{in[2 * i + 1]} << 32);
    const auto narrow = static_cast<int32_t>(in[i]);
    want.insert(want.end(), {counted(narrow, 1000), i % 3 ? ~0u : counted(narrow, 7),
                             counted(wide, 1000), i % 3 ? ~0u : counted(wide, 7)});
  }
  return simple("lookups", in, want);
}

// x to the nearest whole number of so many bits, and its code.
uint32_t integer_code(double x, int bits, bool is_signed) {
  const double low = is_signed ? -std::ldexp(1, bits - 1) : 0;
  const double high = low + std::ldexp(1, bits) - 1;
  const double in_range = std::isnan(x) ? 0 : std::clamp(x, low, high);
  return static_cast<uint32_t>(static_cast<int>(std::nearbyint(in_range))) & ((1u << bits) - 1);
}

Conformance packed_elements() {
  Words in = random_words(64, 7);
  const double edges[] = {0,    -0.0, 0.5,  1.5,  2.5, 14.5, 15.5, 16,      1e9,
                          -0.5, -1.5, -7.5, -8.5, -9,  -1e9, NAN,  INFINITY};
  for (size_t i = 0; i < 64; ++i)
    in.push_back(word(i < std::size(edges) ? edges[i] : static_cast<double>(i) * 0.37 - 12));
  Words want;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t b = in[i];
    const auto nibble = [&](uint32_t n) { return static_cast<int>((b >> n & 15) ^ 8) - 8; };
    const double x = number(in[64 + i]);
    for (const double y : {static_cast<double>(b & 255), nibble(8) + 16.0 * nibble(12),
                           (b >> 22 & 3) + 16.0 * (b >> 16 & 3), (b >> 31) + 16.0 * (b >> 24 & 1)})
      want.push_back(word(y));
    want.insert(want.end(), {integer_code(x, 4, false) * 17, integer_code(x, 4, true) << 4,
                             integer_code(x, 2, false) << 4, integer_code(x, 1, false) << 5});
  }
  return simple("packed_elements", in, want, 64);
}
}  // namespace

std::vector<Conformance> move_cases() {
  return {ids(),          global_widths(), shared_widths(),     matrix_loads(), matrix_stores(),
          async_copies(), shuffles(),      register_shuffles(), lookups(),      packed_elements()};
}
}  // namespace warploom::emulator::testing
