// The reference at work: a box of a tensor, computed node by node. Private to the room.
#pragma once

#include "graph/demand.h"
#include "graph/reference.h"

namespace warploom::graph {

// Appends the box of tensor `id` in row-major order, with magnitudes where wanted. `demand` is propagated and holds the box.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id, const Box& box,
               bool with_magnitude, int threads, ValueAndMagnitude& to);

}  // namespace warploom::graph
