// What the GPU matmul families share: precision, operands made ready for tensor cores, field lookups.
#pragma once

#include "kernels/families.h"
#include "kernels/pieces.h"

namespace warploom::kernels {

// How products are computed under a track. 16-bit inputs: their own type. fp32 inputs: tf32 once (tf32, tolerance tracks), or
// three products of two-part splits (fp32 track).
struct Precision {
  Dtype operand = Dtype::bf16;  // of the matrix instruction
  int terms = 1;
};
std::optional<Precision> precision_of(const MatmulRegion& region, Track track);

inline std::int64_t field(const Schedule& schedule, const std::string& name, std::int64_t otherwise = 0) {
  const auto found = schedule.fields.find(name);
  return found == schedule.fields.end() ? otherwise : found->second;
}

Error illegal(const Schedule& schedule, const std::string& expected, const std::string& found);

// An operand of a tensor-core kernel that reads tf32: k must be contiguous and rows start at multiples of 16 bytes. Where the
// tensor is not so, or has to be rounded or split, a program of its own writes workspaces first.
struct Prepared {
  View high, low;  // as [batch…, rows, k]; low only for three terms
};
// Appends the program and its workspaces to `out` when one is needed. `view` is [batch…, rows, k].
Prepared prepare_operand(Family::Programs& out, const std::string& name, const View& view, const Precision& precision);

}  // namespace warploom::kernels
