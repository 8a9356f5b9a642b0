// The launches of kernels/conformance.cu: what goes in and what must come out. The emulator's tests
// run them here; the GPU conformance test runs the same list on a device and compares with the same
// answers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace warploom::emulator::testing {
struct MapShape {  // a row-major matrix of 16-bit elements inside the words, `offset` words from
                   // their start
  int offset = 0;
  int rows = 1;
  int cols = 8;
  int box_rows = 1;
  int box_cols = 8;
  int swizzle = 0;
};

struct Conformance {
  std::string kernel;
  int grid[3] = {1, 1, 1};
  int threads = 32;
  int cluster = 1;  // blocks, along x
  bool cooperative = false;
  int shared_bytes = 0;
  MapShape map_in;
  MapShape map_out;
  std::vector<uint32_t> in;
  std::vector<uint32_t> want;
  double tolerance = -1;  // negative: words equal; else floats within that relative error
};

std::vector<Conformance> conformance_cases();

// The text of all their kernels: the files kernels/conformance*.cu, one behind another.
std::string conformance_text();

// "" if got answers the case, else the first difference.
std::string compare(const Conformance& c, const std::vector<uint32_t>& got);
}  // namespace warploom::emulator::testing
