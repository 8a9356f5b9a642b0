// What the emulator's tests share: compile kernel texts to a library, load it, describe tensors,
// launch.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "emulator.h"
#include "tensor_map.h"

namespace warploom::emulator::testing {
std::string read_kernel(const std::string& name);  // tests/emulator/kernels/NAME.cu

// Compiles the texts, each a whole kernel file, together in one library. Text i's kernel `name`
// gets the entry name_i.
class Library {
 public:
  explicit Library(const std::vector<std::string>& texts);
  Library(const Library&) = delete;
  ~Library();
  Entry entry(const std::string& kernel, int text = 0) const;

 private:
  void* handle_ = nullptr;
};

// Text with the n-th (from 0) occurrence of `from` replaced; fails the test when there is none.
std::string replaced(const std::string& text, const std::string& from, const std::string& to,
                     int occurrence = 0);

// Mutants of a hand-written kernel, by replaced text.
struct Mutant {
  const char* name;
  const char* from;
  const char* to;
  int occurrence = 0;
};

// Runs each for five seeds: `run` launches an entry and says whether something was reported or
// wrong.
void expect_every_one_caught(const std::string& kernel, const std::vector<Mutant>& mutants,
                             const std::function<bool(Entry, Options)>& run);

// The largest error of a row-major C[m][n] = A[m][k] B[k][n] of bf16 numbers, relative to 1 + |C|;
// NaN counts as 1e9.
double matmul_error(int m, int n, int k, const std::vector<uint16_t>& a, int pitch_a,
                    const std::vector<uint16_t>& b, int pitch_b,
                    const std::function<double(int, int)>& c);

uint16_t to_bf16(float x);
float from_bf16(uint16_t x);
std::vector<uint16_t> random_bf16(size_t n, uint64_t seed);

// A row-major [rows][cols] matrix with row pitch `pitch` elements.
wl::TensorMap matrix_map(void* base, int element_bytes, int rows, int cols, int pitch, int box_rows,
                         int box_cols, int swizzle);

// nvcc, if there is one: "" when it accepts the text without spills and without C75xx, "absent"
// when there is no nvcc, else what it said.
std::string compile_with_nvcc(const std::string& text, const std::string& arch);

std::string compile_to_cubin(const std::string& text,
                             const std::string& arch);  // a path, "" where it cannot
}  // namespace warploom::emulator::testing
