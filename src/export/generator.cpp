#include "export/generator.h"

#include <algorithm>

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

int kept_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::f32: return 24;
    case Dtype::tf32:
    case Dtype::f16: return 11;
    case Dtype::bf16: return 8;
    case Dtype::e4m3: return 4;
    case Dtype::e5m2: return 3;
    default: return 0;
  }
}

std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * bytes_of(dtype)));
  const int kept = kept_bits(dtype);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint64_t bits = mixed(seed + kGolden * (static_cast<std::uint64_t>(i) + 1));
    double value = 0;
    if (kept > 0)
      value =
          static_cast<double>(static_cast<std::int64_t>(bits) >> (64 - kept)) / static_cast<double>(1ll << (kept - 1));
    else value = static_cast<double>(bits >> (dtype == Dtype::boolean ? 63 : 62));
    store_from_double(dtype, bytes.data(), static_cast<std::size_t>(i), value);
  }
  return bytes;
}

}  // namespace warploom::export_
