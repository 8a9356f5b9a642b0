// Element types and their exact conversion to and from double: round to nearest even, no float
// saturates, NaN kept.
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

// Of integers that are not negative: how many pieces of b make up a, and the multiple of b that
// they are.
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

inline int bytes_of(Dtype dtype) {
  return bits_of(dtype) / 8;
}  // of types of whole bytes

inline int64_t bytes_of(Dtype dtype, int64_t elements) {
  return ceil_div(elements * bits_of(dtype), 8);
}

inline int per_byte(Dtype dtype) {
  return bits_of(dtype) < 8 ? 8 / bits_of(dtype) : 1;
}  // elements, at least 1

std::string_view cuda_type(Dtype dtype);  // the spelling in emitted CUDA C++
std::string_view cpu_type(Dtype dtype);   // the spelling in emitted C++ for the CPU
bool is_float(Dtype dtype);

inline bool is_integer(Dtype dtype) {
  return !is_float(dtype) && bits_of(dtype) >= 8;
}  // of whole bytes, booleans among them

bool is_signed(Dtype dtype);
double unit_roundoff(Dtype dtype);  // half the spacing at 1: 2^-24 for f32, 2^-11 tf32, 2^-8 bf16

// Element `index` of a packed array of `dtype` as a double, and back as rounded() has it. tf32 is
// stored as 32 bits whose low 13 are zero. load_run: to[i] = element (offset + i·stride), for i
// below count, fast.
double load_as_double(Dtype dtype, const void* data, size_t index);
void load_run(Dtype dtype, const void* data, int64_t offset, int64_t stride, int64_t count,
              double* to);
void store_from_double(Dtype dtype, void* data, size_t index, double value);

// `value` as an element of the type: floats round to nearest even, integers truncate and saturate
// (those of less than a byte round to nearest even and saturate), NaN becomes the integer 0.
double rounded(Dtype dtype, double value);
}  // namespace warploom
