// The inputs that `make check` feeds a bundle's kernels: made again anywhere from a seed.
//
// Element i of an input is a function of (seed, i): SplitMix64's i-th number, of which as many leading bits are kept as the
// type's significand holds, as a fraction in [-1, 1) (integers: [0, 4); booleans: fair). So every value is exact in its type,
// and a bundle's check.cpp makes the same bits without any rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace warploom::export_ {

// The seed of the bundle's `input`-th input.
std::uint64_t input_seed(std::uint64_t seed, std::size_t input);
// A type by its bits: floats have an exponent and a mantissa, unsigned integers only the latter, signed ones neither. `kept` are
// the leading bits that a generated value keeps, the sign among them; below 0 for integers, whose values have -kept bits.
struct Bits {
  int exponent = 0, mantissa = 0, kept = -2;
};
Bits bits_of_type(Dtype dtype);
std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements);

}  // namespace warploom::export_
