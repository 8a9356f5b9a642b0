#include "base/dtype.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/rows.h"

namespace warploom {
namespace {
struct Row {
  std::string_view name;
  int bits;
  int mantissa;
  std::string_view cuda;
  std::string_view cpu;
  int onnx;
};

constexpr std::array kRows = {
#define WARPLOOM_DTYPE(name, ...) Row{#name, __VA_ARGS__},
#include "base/dtype.def"
};

const Row& row(Dtype dtype) {
  return kRows[as_size(dtype)];
}

// A binary floating-point format narrower than double: 1 sign, `exponent` and `mantissa` bits,
// IEEE-like but for e4m3, whose top exponent still holds numbers and whose only NaN is all ones.
struct Format {
  int exponent;
  int mantissa;
  bool has_infinity;
};

constexpr Format format_of(Dtype dtype) {
  const Row& of = kRows[as_size(dtype)];
  return {of.bits - 1 - of.mantissa, of.mantissa, dtype != Dtype::e4m3};
}

double decode(Format f, uint32_t bits) {
  const int bias = (1 << (f.exponent - 1)) - 1;
  const int top = (1 << f.exponent) - 1;
  const int exponent = as_int(bits >> f.mantissa) & top;
  const uint32_t ones = (1u << f.mantissa) - 1;
  const uint32_t mantissa = bits & ones;
  const uint32_t units = mantissa | (exponent ? ones + 1 : 0);
  double value = std::ldexp(units, std::max(exponent, 1) - bias - f.mantissa);
  const bool is_infinite = f.has_infinity && mantissa == 0;
  if (exponent == top && is_infinite)
    value = std::numeric_limits<double>::infinity();
  else if (exponent == top && (f.has_infinity || mantissa == ones))
    value = std::numeric_limits<double>::quiet_NaN();
  const bool is_negative = (bits >> (f.mantissa + f.exponent) & 1) != 0;
  return is_negative ? -value : value;
}

uint32_t encode(Format f, double value) {
  const int bias = (1 << (f.exponent - 1)) - 1;
  const int top = (1 << f.exponent) - 1;
  const uint32_t minus = std::signbit(value) ? 1 : 0;
  const uint32_t sign = minus << (f.exponent + f.mantissa);
  const uint32_t infinity = as_uint32(top) << f.mantissa;
  const uint32_t quiet = 1u << (f.mantissa - 1);
  const uint32_t ones = (1u << f.mantissa) - 1;
  const uint32_t nan = infinity | (f.has_infinity ? quiet : ones);
  if (std::isnan(value)) return sign | nan;
  const uint32_t beyond = f.has_infinity ? infinity : nan;
  // Subnormal numbers have a fixed spacing.
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  if (exponent > bias + 2) return sign | beyond;
  // Up to 2^(mantissa+1), which carries into the exponent.
  const double scaled = std::ldexp(std::fabs(value), f.mantissa - exponent);
  const auto units = as_uint32(std::nearbyint(scaled));
  const uint32_t raised = as_uint32(exponent + bias - 1) << f.mantissa;
  return sign | std::min(raised + units, beyond);
}

// Calls use with a value of the type that holds an element of whole bytes.
void as_held(Dtype dtype, const auto& use) {
  switch (dtype) {
    case Dtype::f64: return use(double{});
    case Dtype::f32:
    case Dtype::tf32: return use(float{});
    case Dtype::bf16:
    case Dtype::f16: return use(uint16_t{});
    case Dtype::i64: return use(int64_t{});
    case Dtype::i32: return use(int32_t{});
    case Dtype::i16: return use(int16_t{});
    case Dtype::i8: return use(int8_t{});
    case Dtype::u64: return use(uint64_t{});
    case Dtype::u32: return use(uint32_t{});
    case Dtype::u16: return use(uint16_t{});
    default: return use(uint8_t{});
  }
}

// Floats that are held as their bits.
bool is_coded(Dtype dtype) {
  return is_float(dtype) && bits_of(dtype) < 32;
}

template <class Held, class Decode>
void run(const void* data, int64_t offset, int64_t stride, int64_t count, double* to,
         const Decode& decode) {
  constexpr auto kSize = as_int64(sizeof(Held));
  const char* const at = static_cast<const char*>(data) + offset * kSize;
  const auto load = [&](int64_t i) {
    Held value;
    std::memcpy(&value, at + i * kSize, sizeof value);
    return decode(value);
  };
  for (int64_t i = 0; i < count; ++i)
    to[i] = load(stride == 1 ? i : i * stride);
}

// Every value of a coded format, by its bits.
const double* values_of(Dtype dtype) {
  static const auto tables = [] {
    std::array<std::vector<double>, kRows.size()> all;
    for (const Dtype coded : {Dtype::f16, Dtype::e4m3, Dtype::e5m2})
      for (uint32_t bits = 0; bits < 1u << bits_of(coded); ++bits)
        all[as_size(coded)].push_back(decode(format_of(coded), bits));
    return all;
  }();
  return tables[as_size(dtype)].data();
}
}  // namespace

std::string_view name_of(Dtype dtype) {
  return row(dtype).name;
}

std::optional<Dtype> dtype_named(std::string_view name) {
  return row_where<Dtype>(kRows, name, &Row::name);
}

std::optional<Dtype> dtype_of_onnx(int onnx_data_type) {
  if (onnx_data_type == 0) return std::nullopt;
  return row_where<Dtype>(kRows, onnx_data_type, &Row::onnx);
}

int onnx_type_of(Dtype dtype) {
  return row(dtype).onnx;
}

int bits_of(Dtype dtype) {
  return row(dtype).bits;
}

std::string_view cuda_type(Dtype dtype) {
  return row(dtype).cuda;
}

std::string_view cpu_type(Dtype dtype) {
  return row(dtype).cpu;
}

bool is_float(Dtype dtype) {
  return row(dtype).mantissa > 0;
}

bool is_signed(Dtype dtype) {
  return row(dtype).name[0] != 'u' && dtype != Dtype::boolean;
}

double unit_roundoff(Dtype dtype) {
  return is_float(dtype) ? std::ldexp(0.5, -row(dtype).mantissa) : 0;
}

void load_run(Dtype dtype, const void* data, int64_t offset, int64_t stride, int64_t count,
              double* to) {
  if (bits_of(dtype) < 8) {
    const auto* const bytes = static_cast<const uint8_t*>(data);
    const int mask = (1 << bits_of(dtype)) - 1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bit = (offset + i * stride) * bits_of(dtype);
      const int bits = bytes[bit / 8] >> bit % 8 & mask;
      to[i] = dtype == Dtype::i4 && bits > 7 ? bits - 16 : bits;
    }
  } else if (dtype == Dtype::bf16) {
    const auto widen = [](uint32_t bits) -> double { return std::bit_cast<float>(bits << 16); };
    run<uint16_t>(data, offset, stride, count, to, widen);
  } else if (is_coded(dtype)) {
    const auto look_up = [values = values_of(dtype)](uint32_t bits) { return values[bits]; };
    if (bits_of(dtype) == 16)
      run<uint16_t>(data, offset, stride, count, to, look_up);
    else
      run<uint8_t>(data, offset, stride, count, to, look_up);
  } else {
    const auto widen = [](auto value) { return as_double(value); };
    as_held(dtype, [&](auto held) { run<decltype(held)>(data, offset, stride, count, to, widen); });
  }
}

double load_as_double(Dtype dtype, const void* data, size_t index) {
  double value = 0;
  load_run(dtype, data, as_int64(index), 1, 1, &value);
  return value;
}

void store_from_double(Dtype dtype, void* data, size_t index, double value) {
  if (!is_float(dtype)) value = rounded(dtype, value);
  if (bits_of(dtype) < 8) {
    const size_t bit = index * bits_of(dtype);
    const unsigned mask = (1u << bits_of(dtype)) - 1;
    const unsigned bits = as_uint32(as_int(value)) & mask;
    const size_t shift = bit % 8;
    uint8_t& byte = static_cast<uint8_t*>(data)[bit / 8];
    const unsigned others = byte & ~(mask << shift);
    byte = static_cast<uint8_t>(others | bits << shift);
    return;
  }
  if (dtype == Dtype::tf32) {
    const uint32_t bits = encode({8, 10, true}, value) << 13;
    value = as_double(std::bit_cast<float>(bits));
  }
  if (is_coded(dtype)) value = encode(format_of(dtype), value);
  as_held(dtype, [&](auto held) {
    held = static_cast<decltype(held)>(value);
    std::memcpy(static_cast<char*>(data) + index * sizeof held, &held, sizeof held);
  });
}

double rounded(Dtype dtype, double value) {
  if (dtype == Dtype::boolean) return value != 0 ? 1 : 0;
  if (!is_float(dtype)) {
    if (std::isnan(value)) return 0;
    const int value_bits = bits_of(dtype) - (is_signed(dtype) ? 1 : 0);
    const double top = std::ldexp(1.0, value_bits);
    // The largest double below 2^63 or 2^64, or the largest integer of a narrower type.
    const double high = bits_of(dtype) == 64 ? std::nextafter(top, 0) : top - 1;
    const double low = is_signed(dtype) ? -top : 0;
    const double whole = bits_of(dtype) < 8 ? std::nearbyint(value) : std::trunc(value);
    return std::clamp(whole, low, high);
  }
  double stored = 0;  // room for any type
  store_from_double(dtype, &stored, 0, value);
  return load_as_double(dtype, &stored, 0);
}
}  // namespace warploom
