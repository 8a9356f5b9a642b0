// Tensor maps in the driver's form. Source: CUDA Driver API, "Tensor Map Object Management".
#include <fmt/format.h>

#include <array>

#include "runtime/engines.h"

namespace warploom::runtime {
namespace {

// CUtensorMapDataType by element type; types the copy engine does not interpret go as integers of their width.
constexpr int type_code(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return 8;
    case Dtype::f32: return 7;
    case Dtype::tf32: return 11;
    case Dtype::bf16: return 9;
    case Dtype::f16: return 6;
    case Dtype::i64: return 5;
    case Dtype::i32: return 3;
    default: return 0;  // 8 bits
  }
}

struct Swizzle {
  int bytes, code;
};
constexpr std::array kSwizzles = {Swizzle{0, 0}, Swizzle{32, 1}, Swizzle{64, 2}, Swizzle{128, 3}};
constexpr int kPromoteTo128 = 2;

}  // namespace

Result<CUtensorMap> encode_tensor_map(const Driver& cuda, const TensorMapSpec& map, void* address,
                                      const std::string& place) {
  const std::size_t rank = map.dims.size();
  const std::string text =
      fmt::format("{} dims [{}] strides [{}] box [{}] swizzle {}", name_of(map.dtype), fmt::join(map.dims, ", "),
                  fmt::join(map.strides_bytes, ", "), fmt::join(map.box, ", "), map.swizzle_bytes);
  int swizzle = -1;
  for (const Swizzle& known : kSwizzles)
    if (known.bytes == map.swizzle_bytes) swizzle = known.code;
  if (rank < 1 || rank > 5 || map.strides_bytes.size() + 1 != rank || map.box.size() != rank || swizzle < 0)
    return fail({ErrorCode::kPlanInvalid, "a tensor map's fields do not fit each other", place,
                 "1 to 5 dims, a stride less, as many box sizes, swizzle 0, 32, 64 or 128", text,
                 "check the launch list"});
  std::array<std::uint64_t, 5> dims{}, strides{};
  std::array<std::uint32_t, 5> box{}, steps{};
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = static_cast<std::uint64_t>(map.dims[i]);
    box[i] = static_cast<std::uint32_t>(map.box[i]);
    steps[i] = 1;
    if (i > 0) strides[i - 1] = static_cast<std::uint64_t>(map.strides_bytes[i - 1]);
  }
  CUtensorMap encoded;
  auto done = cuda.check(
      cuda.cuTensorMapEncodeTiled(&encoded, type_code(map.dtype), static_cast<std::uint32_t>(rank), address,
                                  dims.data(), strides.data(), box.data(), steps.data(), 0, swizzle, kPromoteTo128, 0),
      "cuTensorMapEncodeTiled");
  if (done) return encoded;
  Error error = done.error();
  error.place = place;
  error.expected =
      "a map the copy engine takes (base and strides multiples of 16, box at most 256 and within the "
      "swizzle)";
  error.found = text;
  return fail(std::move(error));
}

}  // namespace warploom::runtime
