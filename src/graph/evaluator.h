// The reference at work: a box of a tensor, computed node by node. Private to the room.
#pragma once
#include "graph/reference.h"
namespace warploom::graph {
// Which part of every tensor a part of an output needs: boxes (a range along every axis), pushed back through the graph.
struct Box {
  Shape begin, size;
  bool operator==(const Box&) const = default;
};
Box whole(const Shape& shape);
std::int64_t volume(const Box& box);

// One entry a tensor; nothing where a tensor is not needed. What is asked for need not be all that is given: boxes are
// rounded up to the smallest box that holds what is needed.
using Demand = std::vector<std::optional<Box>>;

// Appends the box of tensor `id` in row-major order, with magnitudes where wanted. `demand` holds the box and all that it needs.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id, const Box& box,
               bool with_magnitude, int threads, ValueAndMagnitude& to);

// FP64 matrix products of operands in any element type and any strides: c[b] += or = a[b]·bb[b], blocked, packed into
// panels for the widest vectors the processor has, on several threads. Every element is summed in the same order whatever
// the number of threads: blocks of 256 along k, in sequence.
struct Operand {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  std::int64_t row_stride = 0, column_stride = 0;          // in elements
  const std::int64_t *rows = nullptr, *columns = nullptr;  // both or none: where each is, instead of strides; of f64 data
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
