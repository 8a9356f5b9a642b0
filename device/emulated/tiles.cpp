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
const float* f16_table() {
  static const std::vector<float> table = [] {
    std::vector<float> t(65536);
    for (unsigned i = 0; i < 65536; ++i) t[i] = to_float(f16{static_cast<unsigned short>(i)});
    return t;
  }();
  return table.data();
}
}  // namespace

void decode(Element e, const void* data, int count, float* out) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  switch (e) {
    case Element::bf16: {
      if (count == 8) {
        unsigned short x[8];
        std::memcpy(x, data, 16);
        for (int i = 0; i < 8; ++i) out[i] = float_of(static_cast<unsigned>(x[i]) << 16);
        return;
      }
      unsigned short x[16];
      std::memcpy(x, data, static_cast<std::size_t>(count) * 2);
      for (int i = 0; i < count; ++i) out[i] = float_of(static_cast<unsigned>(x[i]) << 16);
      return;
    }
    case Element::f16: {
      static const float* table = f16_table();
      unsigned short x[16];
      std::memcpy(x, data, static_cast<std::size_t>(count) * 2);
      for (int i = 0; i < count; ++i) out[i] = table[x[i]];
      return;
    }
    case Element::tf32:
      std::memcpy(out, data, static_cast<std::size_t>(count) * 4);
      for (int i = 0; i < count; ++i) out[i] = truncate_tf32(out[i]);
      return;
    case Element::e4m3:
      for (int i = 0; i < count; ++i) out[i] = to_float(e4m3{bytes[i]});
      return;
    case Element::e5m2:
      for (int i = 0; i < count; ++i) out[i] = to_float(e5m2{bytes[i]});
      return;
    case Element::int8:
      for (int i = 0; i < count; ++i) out[i] = static_cast<float>(static_cast<signed char>(bytes[i]));
      return;
  }
}

__attribute__((target_clones("avx2", "default"))) void accumulate_row(float* __restrict c, const float* __restrict a,
                                                                      const float* __restrict b, int n, int k) {
  int j = 0;
  for (; j + 32 <= n; j += 32) {
    float s[32];
    for (int i = 0; i < 32; ++i) s[i] = c[j + i];
    for (int q = 0; q < k; ++q) {
      const float x = a[q];
      const float* y = b + q * n + j;
      for (int i = 0; i < 32; ++i) s[i] += x * y[i];
    }
    for (int i = 0; i < 32; ++i) c[j + i] = s[i];
  }
  for (; j < n; j += 8) {
    float s[8];
    for (int i = 0; i < 8; ++i) s[i] = c[j + i];
    for (int q = 0; q < k; ++q) {
      const float x = a[q];
      const float* y = b + q * n + j;
      for (int i = 0; i < 8; ++i) s[i] += x * y[i];
    }
    for (int i = 0; i < 8; ++i) c[j + i] = s[i];
  }
}

}  // namespace wl::emu
