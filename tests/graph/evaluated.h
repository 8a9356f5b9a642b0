// What a graph of a test comes to, by FP64, on inputs that the names of its tensors draw.
#pragma once
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
using Values = std::vector<std::vector<double>>;  // of each output

// Graphs that compute the same have the same values: equal names draw equal inputs.
inline Values evaluated(const Graph& graph) {
  std::vector<std::vector<std::byte>> inputs;
  for (const TensorId id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    Random random(1, tensor.name);
    auto& bytes = inputs.emplace_back(as_size(byte_count(tensor)));
    for (int64_t i = 0; i < element_count(tensor.shape); ++i)
      store_from_double(tensor.dtype, bytes.data(), as_size(i), random.normal());
  }
  const std::vector<Bytes> views(inputs.begin(), inputs.end());
  const auto found = evaluate(graph, views, 1);
  EXPECT_TRUE(found) << describe(found.error());
  return found.value_or(Values{});
}
}  // namespace warploom::graph
