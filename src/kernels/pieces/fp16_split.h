// Products of fp32 numbers by matrix instructions of 16-bit floats, twice as fast as those of tf32.
//
// fp32 emulation by fp16 (3xFP16). A row's elements are multiplied by a power of two, its scale, so
// that the largest (amax) lies in [2^13, 2^14), and each is the sum of two 16-bit floats: high what
// rounding leaves, low what it loses, rounded too. A product is three: low · high, high · low, high
// · high. Both parts together hold 22 bits, as those of tf32 do, of every element down to 2^-15 of
// its row's largest; below that they lose at most 2^-40 of the largest, where rounding to fp32
// loses 2^-25 of it. The sum is divided by the scales of its row and its column.
//
//   x = 0.3, largest of its row 1.7: scale 2^13, 2457.6 = 2458 + -0.4000244   (2457.5999756)
//
// After Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance" (2022), who scale the low half; here rows are.
#pragma once
#include "kernels/kernel_builder.h"

namespace warploom::kernels::fp16_split {
inline constexpr double kLeast = 0x1p-96;   // what a row's largest counts as at least
inline constexpr double kLargest = 0x1p13;  // what it is scaled to

// The scale of a row whose largest magnitude is `amax`, and its reciprocal.
inline Value row_scale_of(Value amax) {
  const Value most = tile::max(std::move(amax), tile::constant(kLeast));
  return tile::apply(ValueOp::inverse_binade, {most}) * tile::constant(kLargest);
}

inline Value inverse_scale_of(Value amax) {
  const Value most = tile::max(std::move(amax), tile::constant(kLeast));
  return tile::apply(ValueOp::binade, {most}) * tile::constant(1 / kLargest);
}

// The same as a value of a nest, made of its load of that number.
int add_row_scale(LoopNest& nest, int load);

// A program that writes the largest magnitude of each row to a workspace of that name: over the
// axes `over` of a nest with `axes`, where `read` reads. How it is read, along the other axes.
Access measure_amax(Family::Programs& out, const std::string& name,
                    const std::vector<int64_t>& axes, const Access& read,
                    const std::vector<size_t>& over, const Capabilities& capabilities);
}  // namespace warploom::kernels::fp16_split
