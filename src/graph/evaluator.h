// The reference at work: boxes of a primitive graph's tensors computed node by node. Private to the
// room.
#pragma once
#include <cstddef>
#include <cstdint>
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

// What a box of one tensor needs, pushed back through the graph.
Demand demand_for(const Graph& graph, TensorId id, const Box& asked);

// The boxes, in order, that make up rows [begin, end) where a row is one index of the leading
// `axes` axes taken together.
std::vector<Box> row_boxes(const Shape& shape, size_t axes, int64_t begin, int64_t end);

// Operations that a tensor of a primitive graph takes.
double evaluation_cost(const Graph& graph, TensorId id);

// Appends box `box` of tensor `id` in row-major order; `demand` holds that box and all that it
// needs.
Status compute(const Graph& graph, std::span<const Bytes> inputs, const Demand& demand, TensorId id,
               const Box& box, const EvalOptions& options, ValueAndMagnitude& to);
}  // namespace warploom::graph
