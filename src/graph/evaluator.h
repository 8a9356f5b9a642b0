// The reference at work: boxes of a primitive graph's tensors computed node by node. Private to the
// room.
#pragma once
#include <optional>
#include <span>
#include <vector>
#include "graph/box.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
// The box that is needed of each tensor; nothing where a tensor is not needed. What is computed may
// be more than is needed, because boxes are rounded up.
using Demand = std::vector<std::optional<Box>>;

// Operations that a tensor of a primitive graph takes.
double evaluation_cost(const Graph& graph, TensorId id);

// Appends box `box` of tensor `id` in row-major order; `demand` holds that box and all that it
// needs.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id,
               const Box& box, const EvalOptions& options, ValueAndMagnitude& to);
}  // namespace warploom::graph
