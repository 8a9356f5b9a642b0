// For tests: integers that no float holds.
#pragma once
#include <array>
#include "base/integers.h"
#include "base/random.h"
#include "graph/graph.h"

namespace warploom::test {
// The ends of the type, what lies around 2^24, 2^31 and 2^53, and small numbers; of floats, normal
// ones.
inline std::vector<std::byte> integers_of(const graph::Tensor& tensor, Random& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(graph::byte_count(tensor)));
  for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i) {
    if (is_float(tensor.dtype)) {
      store_from_double(tensor.dtype, bytes.data(), static_cast<size_t>(i), random.normal());
      continue;
    }
    const int shift = std::array{0, 0, 23, 24, 31, 52, 53, 62, 63}[random.below(9)];
    auto value = static_cast<int64_t>(random.below(7)) - 3;
    if (shift > 0) value += static_cast<int64_t>(uint64_t{1} << shift);
    if (random.below(2) == 0) value = apply_integers(ValueOp::neg, value);
    store_integer(tensor.dtype, bytes.data(), i, value);
  }
  return bytes;
}

// Of every input of a graph.
inline std::vector<std::vector<std::byte>> large_inputs(const graph::Graph& graph, uint64_t seed) {
  Random random(seed, "integers");
  std::vector<std::vector<std::byte>> inputs;
  for (const graph::TensorId id : graph.inputs)
    inputs.push_back(integers_of(graph.tensor(id), random));
  return inputs;
}
}  // namespace warploom::test
