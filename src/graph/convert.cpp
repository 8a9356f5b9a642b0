#include "graph/convert.h"

#include <bit>
#include <cstring>
#include <vector>

namespace warploom::graph {
namespace {

// Every value of a type of 8 or 16 bits.
std::vector<double> table_of(Dtype dtype) {
  std::vector<double> table(std::size_t{1} << bits_of(dtype));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    table[i] = load_as_double(dtype, &bits, 0);  // little endian: the low byte is the whole of an 8-bit element
  }
  return table;
}

template <class Stored, class Decode>
void run(const void* data, std::int64_t offset, std::int64_t stride, std::int64_t count, double* to, Decode decode) {
  const char* at = static_cast<const char*>(data) + offset * static_cast<std::int64_t>(sizeof(Stored));
  const auto load = [&](std::int64_t i) {
    Stored value;
    std::memcpy(&value, at + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof value);
    return value;
  };
  if (stride == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = decode(load(i));
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = decode(load(i * stride));
}

}  // namespace

void load_run(Dtype dtype, const void* data, std::int64_t offset, std::int64_t stride, std::int64_t count, double* to) {
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (dtype) {
    case Dtype::f64: return run<double>(data, offset, stride, count, to, plain);
    case Dtype::f32:
    case Dtype::tf32: return run<float>(data, offset, stride, count, to, plain);
    case Dtype::bf16:
      return run<std::uint16_t>(data, offset, stride, count, to, [](std::uint16_t bits) {
        return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
      });
    case Dtype::f16: {
      static const std::vector<double> table = table_of(Dtype::f16);
      return run<std::uint16_t>(data, offset, stride, count, to, [](std::uint16_t bits) { return table[bits]; });
    }
    case Dtype::e4m3: {
      static const std::vector<double> table = table_of(Dtype::e4m3);
      return run<std::uint8_t>(data, offset, stride, count, to, [](std::uint8_t bits) { return table[bits]; });
    }
    case Dtype::e5m2: {
      static const std::vector<double> table = table_of(Dtype::e5m2);
      return run<std::uint8_t>(data, offset, stride, count, to, [](std::uint8_t bits) { return table[bits]; });
    }
    case Dtype::i64: return run<std::int64_t>(data, offset, stride, count, to, plain);
    case Dtype::i32: return run<std::int32_t>(data, offset, stride, count, to, plain);
    case Dtype::i8: return run<std::int8_t>(data, offset, stride, count, to, plain);
    case Dtype::u8:
    case Dtype::boolean: return run<std::uint8_t>(data, offset, stride, count, to, plain);
  }
}

}  // namespace warploom::graph
