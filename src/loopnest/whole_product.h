// Products of whole numbers of 8 bits as a contraction: sums of products of differences,
//
//   out = f(Σ_k (A[m, k] - za) · (B[k, n] - zb))
//
// where za and zb, the zero points, do not vary along k. Worked example, MatMulInteger of u8 x and
// i8 w with a zero point for x alone:
//
//   contraction   Σ_k x[m, k] · w[k, n], as if in floats, a: x, b: w
//   zero_points   {x: its load of one element}
//
// The sum is one of 32 bits that wraps, which is what the nest means: the nest says so itself, or
// the sum is never as large. What follows it are floats, or it is the result.
//
// Source: ONNX operators MatMulInteger and QLinearMatMul.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <vector>
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
// What is subtracted from each element: a number, or an element of a load.
struct ZeroPoint {
  double number = 0;
  std::optional<size_t> load;
};

using ZeroPoints = std::map<size_t, ZeroPoint>;  // by the load that they are subtracted from

struct WholeProduct {
  Contraction contraction;
  ZeroPoints zero_points;
};

// Nothing where the nests are no such product.
std::optional<WholeProduct> whole_product_of(const std::vector<LoopNest>& nests);
}  // namespace warploom::loopnest
