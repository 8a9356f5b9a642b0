// FP64 matrix products of operands in any element type and any strides: c[b] += or = a[b]·bb[b], blocked, packed into
// panels for the widest vectors the processor has, on several threads. Every element is summed in the same order whatever
// the number of threads: blocks of 256 along k, in sequence.
#pragma once

#include <cstdint>
#include <vector>
#include "base/dtype.h"

namespace warploom::graph {

struct Operand {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  std::int64_t row_stride = 0, column_stride = 0;  // in elements
};
struct Offsets {  // of one product of a batch, in elements
  std::int64_t a, b, c;
};
struct Product {
  Operand a, b;
  std::int64_t m, n, k;
  std::vector<Offsets> batch;
  bool absolute = false;  // |a|·|b|
};

// Adds to c, row-major with rows of n elements.
void multiply_add(const Product& product, double* c, int threads);

}  // namespace warploom::graph
