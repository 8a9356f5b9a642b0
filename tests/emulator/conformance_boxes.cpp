#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include "conformance_parts.h"
#include "emulator/conformance.h"

namespace warploom::emulator::testing {
namespace {
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

// A box added twice to what is there.
Conformance reduced_box() {
  Conformance c = simple("reduced_box", {}, Words(768), 32, 1024);
  c.map_out = {0, 24, 64, 8, 64, 0};
  for (uint32_t i = 0; i < 256; ++i) {
    const int low = static_cast<int>(i % 7) - 3;
    const int high = static_cast<int>(i % 5);
    c.in.push_back(code_bf16(low) | code_bf16(high) << 16);
    c.want[128 + i] = code_bf16(2 * low) | code_bf16(2 * high) << 16;
  }
  return c;
}
}  // namespace

std::vector<Conformance> box_cases() {
  std::vector<Conformance> all;
  all.push_back(box("box_none", 8, 64, 0, 16));
  all.push_back(box("box_128", 16, 64, 1, 128));
  all.push_back(box("box_64", 16, 32, 2, 64));
  all.push_back(box("box_32", 16, 16, 3, 32));
  all.push_back(reduced_box());
  return all;
}
}  // namespace warploom::emulator::testing
