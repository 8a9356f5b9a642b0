// A number, or an enumerator's number, as one of the types that the code counts with. What the
// target type cannot hold is lost as with static_cast: no check is made.
//
//   as_int(names.size())     3, of type int
//   kRows[as_size(kind)]     the row of an enumerator
//   as_double(bytes) / us    a quotient, not cut to an integer
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace warploom {
template <class T>
concept Numeric = std::is_arithmetic_v<T> || std::is_enum_v<T>;

constexpr size_t as_size(Numeric auto number) {
  return static_cast<size_t>(number);
}

constexpr int as_int(Numeric auto number) {
  return static_cast<int>(number);
}

constexpr int64_t as_int64(Numeric auto number) {
  return static_cast<int64_t>(number);
}

constexpr uint32_t as_uint32(Numeric auto number) {
  return static_cast<uint32_t>(number);
}

constexpr uint64_t as_uint64(Numeric auto number) {
  return static_cast<uint64_t>(number);
}

constexpr float as_float(Numeric auto number) {
  return static_cast<float>(number);
}

constexpr double as_double(Numeric auto number) {
  return static_cast<double>(number);
}
}  // namespace warploom
