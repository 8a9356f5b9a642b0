// The inputs that `make check` feeds a bundle's kernels: made again anywhere from a seed.
//
// Element i of an input is a function of (seed, i): SplitMix64's i-th number, of which as many leading bits are kept as the
// type's significand holds, as a fraction in [-1, 1) (integers: [0, 4); booleans: fair). So every value is exact in its type,
// and generator_source() in a bundle's check.cpp makes the same bits without any rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace warploom::export_ {

// The seed of the bundle's `input`-th input.
std::uint64_t input_seed(std::uint64_t seed, std::size_t input);
// Leading bits that a value of the type keeps, the sign among them; 0 for integers and booleans.
int kept_bits(Dtype dtype);
std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements);

}  // namespace warploom::export_
