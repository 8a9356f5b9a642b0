#include "export/generator.h"

#include <cmath>

namespace warploom::export_ {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t input_seed(std::uint64_t seed, std::size_t input) { return mixed(seed + kGolden * (input + 1)); }

Bits bits_of_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return {11, 52, 24};
    case Dtype::f32: return {8, 23, 24};
    case Dtype::tf32: return {8, 23, 11};
    case Dtype::f16: return {5, 10, 11};
    case Dtype::bf16: return {8, 7, 8};
    case Dtype::e4m3: return {4, 3, 4};
    case Dtype::e5m2: return {5, 2, 3};
    case Dtype::u8: return {0, 8, -2};
    case Dtype::boolean: return {0, 8, -1};
    default: return {};
  }
}

std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * bytes_of(dtype)));
  const int kept = bits_of_type(dtype).kept;
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint64_t bits = mixed(seed + kGolden * (static_cast<std::uint64_t>(i) + 1));
    const double value = kept > 0
                             ? std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits) >> (64 - kept)), 1 - kept)
                             : static_cast<double>(bits >> (64 + kept));
    store_from_double(dtype, bytes.data(), static_cast<std::size_t>(i), value);
  }
  return bytes;
}

}  // namespace warploom::export_
