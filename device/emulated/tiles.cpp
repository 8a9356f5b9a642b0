#include "tiles.h"
#include <cstring>
#include <vector>

namespace wl::emu {

int bytes_of(Element e) {
  switch (e) {
    case Element::bf16:
    case Element::f16: return 2;
    case Element::tf32: return 4;
    default: return 1;
  }
}

namespace {

template <class From, class F>
void convert(const void* data, int count, float* out, F to) {
  From x[16];
  std::memcpy(x, data, static_cast<std::size_t>(count) * sizeof(From));
  for (int i = 0; i < count; ++i) out[i] = to(x[i]);
}

const float* f16_table() {
  static const std::vector<float> table = [] {
    std::vector<float> t(65536);
    for (unsigned i = 0; i < 65536; ++i) t[i] = to_float(f16{static_cast<unsigned short>(i)});
    return t;
  }();
  return table.data();
}

// W columns of a row.
template <int W>
inline __attribute__((always_inline)) void accumulate(float* __restrict c, const float* __restrict a,
                                                      const float* __restrict b, int n, int k) {
  float s[W];
  for (int i = 0; i < W; ++i) s[i] = c[i];
  for (int q = 0; q < k; ++q)
    for (int i = 0; i < W; ++i) s[i] += a[q] * b[q * n + i];
  for (int i = 0; i < W; ++i) c[i] = s[i];
}

}  // namespace

void decode(Element e, const void* data, int count, float* out) {
  switch (e) {
    case Element::bf16: return convert<unsigned short>(data, count, out, [](unsigned x) { return float_of(x << 16); });
    case Element::f16: {
      static const float* table = f16_table();
      return convert<unsigned short>(data, count, out, [](unsigned x) { return table[x]; });
    }
    case Element::tf32: return convert<float>(data, count, out, truncate_tf32);
    case Element::e4m3: return convert<e4m3>(data, count, out, [](e4m3 x) { return to_float(x); });
    case Element::e5m2: return convert<e5m2>(data, count, out, [](e5m2 x) { return to_float(x); });
    case Element::int8:
      return convert<signed char>(data, count, out, [](signed char x) { return static_cast<float>(x); });
  }
}

void place_a(Element e, const void* registers, int lane, float* tile) {
  float x[16];
  const int per = 4 / bytes_of(e), k = 8 * per;  // elements a register, a row
  decode(e, registers, 4 * per, x);
  for (int i = 0; i < 4 * per; ++i) {
    const int r = i / per;
    tile[(lane / 4 + 8 * (r % 2)) * k + k / 2 * (r / 2) + lane % 4 * per + i % per] = x[i];
  }
}

__attribute__((target_clones("avx2", "default"))) void accumulate_row(float* __restrict c, const float* __restrict a,
                                                                      const float* __restrict b, int n, int k) {
  int j = 0;
  for (; j + 32 <= n; j += 32) accumulate<32>(c + j, a, b + j, n, k);
  for (; j < n; j += 8) accumulate<8>(c + j, a, b + j, n, k);
}

}  // namespace wl::emu
