// What the cases of conformance.h are made of: words, random numbers, and the cases by what their
// kernels exercise.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <vector>
#include "conformance.h"

namespace warploom::emulator::testing {
using Words = std::vector<uint32_t>;

// The bits of x as an fp32 number, and back.
inline uint32_t word(double x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x));
}

inline float number(uint32_t w) {
  return std::bit_cast<float>(w);
}

struct Dice {
  uint64_t state;

  uint32_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    return static_cast<uint32_t>((z ^ (z >> 27)) >> 20);
  }

  int small() { return static_cast<int>(next() % 5) - 2; }  // -2 to 2
};

Words random_words(size_t n, uint64_t seed);
std::vector<uint8_t> bytes_of(const Words& w);
Words words_of(const std::vector<uint8_t>& b);  // the last one filled with zeros

uint32_t code_bf16(int v);

// A swizzle of `width` bytes: the 16-byte chunk `c` of a row lies at c ^ permuted(width, row).
int permuted(int width, int row);

Conformance simple(const std::string& name, Words in, Words want, int threads = 32, int shared = 0);

std::vector<Conformance> move_cases();     // copies, shuffles, elements of packed words
std::vector<Conformance> value_cases();    // arithmetic and conversions
std::vector<Conformance> product_cases();  // mma.sync and wgmma
std::vector<Conformance> box_cases();      // tensor maps
std::vector<Conformance> sharing_cases();  // threads, blocks and clusters that wait for each other
}  // namespace warploom::emulator::testing
