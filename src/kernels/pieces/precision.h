// The operand format of the GPU matmul families: in which types products are computed under a
// track.
#pragma once
#include <optional>
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"

namespace warploom::kernels {
// How products are computed under a track. 16-bit inputs: their own type. fp32 inputs: tf32 once
// (tf32, tolerance tracks), or three products of two-part splits (fp32 track), of tf32 or of 16-bit
// floats (fp16_split.h). 8-bit inputs, scaled: their own type.
struct Precision {
  Dtype operand = Dtype::bf16;  // of the matrix instruction
  int terms = 1;

  bool is_fp16_split() const { return operand == Dtype::f16 && terms > 1; }

  // Whether the threads add up the sums of one stage each: tensor cores truncate as they add, an
  // error that grows with k, and keep 14 bits of a sum of 8-bit floats.
  bool promotes() const { return terms > 1 || (is_float(operand) && bits_of(operand) == 8); }

  // The lower part of an infinity that is split in two is NaN.
  SpecialValues special_values() const {
    return terms > 1 ? SpecialValues::finite : SpecialValues::exact;
  }

  Dtype accumulator() const { return is_float(operand) ? Dtype::f32 : Dtype::i32; }
};

std::optional<Precision> precision_of(Dtype a, Dtype b, Track track, bool halves = false);

// Whether to compute what reduces rows of the result in the product's kernel, which holds rows of
// at most `columns`: where there are enough of them for a good part of the GPU, and the sums are
// short. Going over the result once more takes as long as some 400 terms of the sum do (measured on
// an H200), and tiles that hold rows whole multiply a sixth slower.
bool fuses_rows(const Contraction& contraction, const Precision& precision, int64_t columns,
                const Capabilities& capabilities);
}  // namespace warploom::kernels
