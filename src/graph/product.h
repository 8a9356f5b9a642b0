// FP64 matrix products of operands in any element type, lying anyhow: c[b] += a[b]·bb[b], and the same of absolute values. The
// reference spends nearly all of its time on them, so that a faster machine may take them over.
#pragma once
#include <functional>
#include <vector>
#include "base/dtype.h"
namespace warploom::graph {
struct Operand {  // a line is a row of a or a column of b, depth runs along k; an element is at lines[i] + depths[k]
  const void* data;
  Dtype dtype;
  const std::int64_t *lines, *depths;
};
struct Offsets {  // of one product of a batch, in elements
  std::int64_t a, b, c;
};
struct Product {
  Operand a, b;
  std::int64_t m, n, k;
  std::vector<Offsets> batch = {};
};

// Adds a·b to `value` and |a|·|b| to `magnitude`, row-major with rows of n elements, where they are not null; or leaves them as they
// are, and says false.
using ProductEngine = std::function<bool(const Product& product, double* value, double* magnitude)>;

struct Means {  // to evaluate with
  Means(int own = 0) : threads(own) {}
  int threads;             // 0: one a core
  ProductEngine products;  // asked first, where there is one
  bool magnitudes = true;  // beside the values (reference.h)
};

// By the engine or else here: blocked, packed into panels for the widest vectors the processor has, on several threads. Every element
// is summed in the same order whatever the number of threads: blocks of 256 along k, in sequence.
void multiply_add(const Product& product, double* value, double* magnitude, const Means& means);
}  // namespace warploom::graph
