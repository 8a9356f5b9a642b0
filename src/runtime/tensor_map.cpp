// Tensor maps in the driver's form. Source: CUDA Driver API, "Tensor Map Object Management".

#include "runtime/bound.h"
#include "runtime/type_codes.h"

namespace warploom::runtime {
namespace {

constexpr std::array<int, 4> kSwizzles = {0, 32, 64, 128};  // bytes, by the driver's number
constexpr int kPromoteTo128 = 2;

}  // namespace

Result<CUtensorMap> encode_tensor_map(const Driver& cuda, const TensorMapSpec& map, void* address,
                                      const std::string& place) {
  const std::size_t rank = map.dims.size();
  const std::string text =
      fmt::format("{} dims [{}] strides [{}] box [{}] swizzle {}", name_of(map.dtype), fmt::join(map.dims, ", "),
                  fmt::join(map.strides_bytes, ", "), fmt::join(map.box, ", "), map.swizzle_bytes);
  const auto swizzle = std::ranges::find(kSwizzles, map.swizzle_bytes) - kSwizzles.begin();
  if (rank < 1 || rank > 5 || map.strides_bytes.size() + 1 != rank || map.box.size() != rank ||
      swizzle == std::ssize(kSwizzles))
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
  auto done =
      cuda.check(cuda.cuTensorMapEncodeTiled(&encoded, codes_of(map.dtype).tensor_map, static_cast<std::uint32_t>(rank),
                                             address, dims.data(), strides.data(), box.data(), steps.data(), 0,
                                             static_cast<int>(swizzle), kPromoteTo128, 0),
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
