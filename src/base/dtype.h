// Element types of tensors, and conversion of their elements to and from double. Conversion from
// double rounds to nearest even; floating-point types overflow to infinity, or to NaN where they
// have no infinity, and NaN stays NaN.
//
//   bits_of(Dtype::e4m3)              8
//   rounded(Dtype::f16, 1e6)          infinity
//   rounded(Dtype::u8, 300.7)         255: integers truncate and saturate
//   unit_roundoff(Dtype::f32)         2^-24
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace warploom {
enum class Dtype : uint8_t {
#define WARPLOOM_DTYPE(name, ...) name,
#include "base/dtype.def"
};

// a / b rounded up, and a rounded up to a multiple of b. Expects a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

std::string_view name_of(Dtype dtype);                    // "bf16"
std::optional<Dtype> dtype_named(std::string_view name);  // the inverse
std::optional<Dtype> dtype_of_onnx(int onnx_data_type);   // TensorProto.DataType
int onnx_type_of(Dtype dtype);                            // 0 where ONNX has none
int bits_of(Dtype dtype);

// Bytes of one element; expects a type of whole bytes.
inline int bytes_of(Dtype dtype) {
  return bits_of(dtype) / 8;
}

// Bytes of a packed array, the last byte padded.
inline int64_t bytes_of(Dtype dtype, int64_t elements) {
  return ceil_div(elements * bits_of(dtype), 8);
}

// Elements a byte holds; 1 for types of a byte or more.
inline int per_byte(Dtype dtype) {
  return bits_of(dtype) < 8 ? 8 / bits_of(dtype) : 1;
}

std::string_view cuda_type(Dtype dtype);  // the spelling in emitted CUDA C++
std::string_view cpu_type(Dtype dtype);   // the spelling in emitted C++ for the CPU
bool is_float(Dtype dtype);

// Integer types of whole bytes, boolean included.
inline bool is_integer(Dtype dtype) {
  return !is_float(dtype) && bits_of(dtype) >= 8;
}

bool is_signed(Dtype dtype);
double unit_roundoff(Dtype dtype);  // half the spacing at 1: 2^-24 for f32, 2^-11 tf32, 2^-8 bf16

// Element `index` of a packed array of `dtype` as a double, and back, converted as by rounded().
// tf32 is stored as 32 bits whose low 13 are zero. load_run is the fast form for many elements:
// to[i] = element (offset + i·stride) for i in [0, count); offset and stride are in elements.
double load_as_double(Dtype dtype, const void* data, size_t index);
void load_run(Dtype dtype, const void* data, int64_t offset, int64_t stride, int64_t count,
              double* to);
void store_from_double(Dtype dtype, void* data, size_t index, double value);

// The value that an element of the type holds after conversion from `value`. Floating-point types
// round to nearest even. Integers truncate and saturate; those of less than a byte round to nearest
// even and saturate. NaN becomes the integer 0.
double rounded(Dtype dtype, double value);
}  // namespace warploom
