// What the GPU matmul families share: precision, operands made ready for tensor cores.
#pragma once
#include "kernels/families.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
// How products are computed under a track. 16-bit inputs: their own type. fp32 inputs: tf32 once (tf32, tolerance tracks), or
// three products of two-part splits (fp32 track). 8-bit inputs, scaled: their own type.
struct Precision {
  Dtype operand = Dtype::bf16;  // of the matrix instruction
  int terms = 1;
  // Whether the threads add up the sums of one slot each: tensor cores truncate as they add, an error that grows with k, and keep
  // 14 bits of a sum of 8-bit floats.
  bool promotes() const { return terms > 1 || (is_float(operand) && bits_of(operand) == 8); }
  Dtype accumulator() const { return is_float(operand) ? Dtype::f32 : Dtype::i32; }
};
std::optional<Precision> precision_of(Dtype a, Dtype b, Track track);
inline std::optional<Precision> precision_of(const MatmulRegion& region, Track track) {
  return precision_of(region.a.dtype, region.b.dtype, track);
}

// acc += fa·fb of register fragments under the precision: as they are, rounded to tf32, or as three products of two-part splits.
void fragment_products(Draft& draft, const Precision& precision, tile::TensorId acc, tile::TensorId fa, tile::TensorId fb,
                       const std::vector<std::int64_t>& a_shape, const std::vector<std::int64_t>& b_shape);

// ok, or kResourceLimit where a block's shared memory does not hold `bytes`.
Status fits_shared(const Schedule& schedule, std::int64_t bytes, const target::Capabilities& capabilities);

// Whether the copy engine can read a view: neighbours along one of its last two axes, all else in steps of 16 bytes.
bool engine_reads(const View& view);

// An operand of a tensor-core kernel fed by the copy engine. Types of other than 16 bits must have k contiguous. Where the tensor
// is not so, or is not aligned, or has to be rounded or split, a program of its own writes workspaces first.
struct Prepared {
  View high, low;  // as [batch…, rows, k]; low only for three terms
};
// Appends the program and its workspaces to `out` when one is needed. `view` is [batch…, rows, k].
Prepared prepare_operand(Family::Programs& out, const std::string& name, const View& view, const Precision& precision);

// The same product with its sides exchanged: outᵀ = bᵀ·aᵀ.
MatmulRegion exchanged(const MatmulRegion& region);

// Sums `split` partial products, `parts` being [split · batch, m, n] in fp32, in a fixed order, and applies the epilogue.
void sum_parts(Family::Programs& out, const MatmulRegion& region, const View& parts, std::int64_t split);
}  // namespace warploom::kernels
