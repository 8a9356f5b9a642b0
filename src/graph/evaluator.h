// The reference at work: boxes of tensors, computed node by node. Private to the room.
#pragma once

#include "graph/demand.h"
#include "graph/reference.h"

namespace warploom::graph {

// A box of a tensor, to be appended in row-major order; magnitudes where there is a place for them.
struct Wanted {
  TensorId id;
  Box box;
  std::vector<double>*value, *magnitude = nullptr;
};
// `demand` is propagated and holds the boxes, each tensor once.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand,
               const std::vector<Wanted>& wanted, int threads);

}  // namespace warploom::graph
