#include "conformance_parts.h"
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
Words random_words(size_t n, uint64_t seed) {
  Dice d{seed};
  Words w(n);
  for (auto& x : w)
    x = d.next();
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

uint32_t code_bf16(int v) {
  return word(v) >> 16;
}

int permuted(int width, int row) {
  switch (width) {
    case 128: return row % 8;
    case 64: return row % 8 / 2;
    case 32: return row % 8 / 4;
    default: return 0;
  }
}

Conformance simple(const std::string& name, Words in, Words want, int threads, int shared) {
  Conformance c;
  c.kernel = name;
  c.in = std::move(in);
  c.want = std::move(want);
  c.threads = threads;
  c.shared_bytes = shared;
  return c;
}
}  // namespace warploom::emulator::testing
