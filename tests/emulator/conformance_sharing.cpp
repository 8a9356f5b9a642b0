#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "conformance_parts.h"
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
namespace {
Conformance ping_pong() {
  Words want;
  for (int i = 0; i < 10; ++i)
    for (int l = 0; l < 32; ++l)
      want.push_back(static_cast<uint32_t>(3 * i + (l ^ 1)));
  return simple("ping_pong", {0}, want, 64, 256);
}

Conformance cluster_ring() {
  Conformance c = simple("cluster_ring", random_words(512, 61), {}, 32, 8192 + 128);
  c.grid[0] = 4;
  c.cluster = 4;
  c.map_in = {0, 16, 64, 16, 64, 0};
  for (uint32_t r = 0; r < 4; ++r)
    for (const uint32_t w : {100 + (r + 3) % 4, 100 + (r + 1) % 4, c.in[r * 32], c.in[r * 32 + 1]})
      c.want.push_back(w);
  return c;
}

Conformance store_async() {
  Conformance c = simple("store_async", {0}, {}, 32, 512);
  c.grid[0] = 4;
  c.cluster = 4;
  for (uint32_t i = 0; i < 128; ++i)
    c.want.push_back(1000 * ((i / 32 + 2) % 4) + i % 32);
  return c;
}

Conformance cluster_pairs() {
  Conformance c = simple("cluster_pairs", random_words(1024, 62), {}, 32, 2048 + 64);
  c.grid[0] = 4;
  c.cluster = 4;
  c.map_in = {0, 32, 64, 8, 64, 0};
  for (size_t r = 0; r < 4; ++r)
    for (size_t t = 0; t < 32; ++t)
      c.want.push_back(c.in[(r % 2 * 16 + t / 2) * 32 + t % 2]);
  return c;
}

// 32 threads add i + thread % 2 to element i, and two of them once more.
Conformance combined() {
  Conformance c = simple("combined", {0x7fc00000u}, {});
  const auto sum = [](int i) { return 34 * i + 17; };
  const auto pad = [&] { c.want.resize((c.want.size() + 7) / 8 * 8); };
  for (const int n : {4, 2, 1})
    for (int i = 0; i < n; ++i)
      c.want.push_back(word(sum(i)));
  pad();
  for (const int n : {4, 2, 1})
    for (int i = 0; i < n; ++i)
      c.want.push_back(static_cast<uint32_t>(sum(i)));
  pad();
  const auto as_half = [](int v) {  // exact: 9 bits
    int e = 0;
    while (v >> (e + 1))
      ++e;
    return static_cast<uint32_t>((e + 15) << 10 | (v << 10 >> e & 0x3ff));
  };
  const auto add_halves = [&](bool bf16, int n) {
    const auto code = [&](int at) {
      if (at >= n) return 0u;
      return bf16 ? code_bf16(sum(at)) : as_half(sum(at));
    };
    for (int i = 0; i < n; i += 2)
      c.want.push_back(code(i) | code(i + 1) << 16);
  };
  for (const bool bf16 : {false, true})
    for (const int n : {8, 4, 2, 1})
      add_halves(bf16, n);
  for (const double x : {15.0, 7.5, -16.0, -8.0})
    c.want.push_back(word(x));
  for (const int n : {14, 28, -16, -32})
    c.want.push_back(static_cast<uint32_t>(n));
  c.want.insert(c.want.end(), {0x7fffffffu, 0xffffffffu, word(-0.5)});  // NaN, NaN
  c.tolerance = 0;
  return c;
}

Conformance flags() {
  Conformance c = simple("flags", {0}, {}, 64);
  c.grid[0] = 3;
  c.cooperative = true;
  for (uint32_t i = 0; i < 64; ++i)
    c.want.push_back(i < 3 ? 3 : 0);
  for (uint32_t i = 64; i < 256; ++i)
    c.want.push_back(i / 64 * (1 + i % 64));
  return c;
}

Conformance registers_moved() {
  Words want;
  for (uint32_t t = 0; t < 256; ++t)
    want.push_back(t < 128 ? t : 2 * t);
  return simple("registers_moved", {0}, want, 256);
}
}  // namespace

std::vector<Conformance> sharing_cases() {
  return {ping_pong(), cluster_ring(), store_async(),    cluster_pairs(),
          combined(),  flags(),        registers_moved()};
}
}  // namespace warploom::emulator::testing
