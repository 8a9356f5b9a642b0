#include "base/integers.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "base/value_op.h"

namespace warploom {
namespace {
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

template <class Held> int64_t load_as(const void* data, int64_t index) {
  Held held;
  const auto* const bytes = static_cast<const char*>(data);
  std::memcpy(&held, bytes + index * as_int64(sizeof held), sizeof held);
  return held;
}

template <class Held> void store_as(void* data, int64_t index, int64_t value) {
  const auto held = static_cast<Held>(value);
  auto* const bytes = static_cast<char*>(data);
  std::memcpy(bytes + index * as_int64(sizeof held), &held, sizeof held);
}

uint64_t bits(int64_t value) {
  return as_uint64(value);
}

int64_t sum(int64_t a, int64_t b) {
  return as_int64(bits(a) + bits(b));
}

int64_t negative(int64_t a) {
  return as_int64(-bits(a));
}

int64_t product(int64_t a, int64_t b) {
  return as_int64(bits(a) * bits(b));
}

int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? negative(a) : a / b;
}

constexpr std::array kOfIntegers = {ValueOp::add,  ValueOp::sub,   ValueOp::mul,  ValueOp::div,
                                    ValueOp::max,  ValueOp::min,   ValueOp::fma,  ValueOp::where,
                                    ValueOp::less, ValueOp::equal, ValueOp::neg,  ValueOp::abs,
                                    ValueOp::relu, ValueOp::floor, ValueOp::fmod, ValueOp::bit_and};
}  // namespace

int64_t load_integer(Dtype dtype, const void* data, int64_t index) {
  switch (dtype) {
    case Dtype::i64: return load_as<int64_t>(data, index);
    case Dtype::i32: return load_as<int32_t>(data, index);
    case Dtype::i16: return load_as<int16_t>(data, index);
    case Dtype::i8: return load_as<int8_t>(data, index);
    case Dtype::u64: return load_as<int64_t>(data, index);
    case Dtype::u32: return load_as<uint32_t>(data, index);
    case Dtype::u16: return load_as<uint16_t>(data, index);
    default: return load_as<uint8_t>(data, index);
  }
}

void store_integer(Dtype dtype, void* data, int64_t index, int64_t value) {
  switch (dtype) {
    case Dtype::i64: return store_as<int64_t>(data, index, value);
    case Dtype::i32: return store_as<int32_t>(data, index, value);
    case Dtype::i16: return store_as<int16_t>(data, index, value);
    case Dtype::i8: return store_as<int8_t>(data, index, value);
    case Dtype::u64: return store_as<int64_t>(data, index, value);
    case Dtype::u32: return store_as<uint32_t>(data, index, value);
    case Dtype::u16: return store_as<uint16_t>(data, index, value);
    case Dtype::boolean: return store_as<uint8_t>(data, index, value != 0 ? 1 : 0);
    default: return store_as<uint8_t>(data, index, value);
  }
}

int64_t wrapped_integer(Dtype dtype, int64_t value) {
  int64_t stored = 0;
  store_integer(dtype, &stored, 0, value);
  return load_integer(dtype, &stored, 0);
}

int64_t saturated_integer(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (std::isnan(value)) return 0;
  int64_t whole = kLeast;
  if (value >= 0x1p63)
    whole = kMost;
  else if (value > -0x1p63)
    whole = as_int64(value);
  if (dtype == Dtype::u64) return value > 0 ? as_int64(as_uint64(rounded(dtype, value))) : 0;
  if (dtype == Dtype::i64) return whole;
  const int magnitude_bits = bits_of(dtype) - (is_signed(dtype) ? 1 : 0);
  const int64_t most = (int64_t{1} << magnitude_bits) - 1;
  return std::clamp<int64_t>(whole, is_signed(dtype) ? -most - 1 : 0, most);
}

bool has_integers(ValueOp op) {
  return contains(kOfIntegers, op);
}

int64_t apply_integers(ValueOp op, int64_t a, int64_t b, int64_t c) {
  switch (op) {
    case ValueOp::add: return sum(a, b);
    case ValueOp::sub: return sum(a, negative(b));
    case ValueOp::mul: return product(a, b);
    case ValueOp::div: return quotient(a, b);
    case ValueOp::bit_and: return a & b;
    case ValueOp::fmod: return sum(a, negative(product(b, quotient(a, b))));
    case ValueOp::max: return std::max(a, b);
    case ValueOp::min: return std::min(a, b);
    case ValueOp::fma: return sum(product(a, b), c);
    case ValueOp::where: return a != 0 ? b : c;
    case ValueOp::less: return a < b ? 1 : 0;
    case ValueOp::equal: return a == b ? 1 : 0;
    case ValueOp::neg: return negative(a);
    case ValueOp::abs: return a < 0 ? negative(a) : a;
    case ValueOp::relu: return std::max<int64_t>(a, 0);
    case ValueOp::floor: return a;
    default: return 0;
  }
}
}  // namespace warploom
