// Which part of every tensor a part of an output needs: boxes (a range along every axis), pushed back through the graph.
#pragma once

#include <optional>
#include <vector>
#include "graph/graph.h"

namespace warploom::graph {

struct Box {
  Shape begin, size;
  bool operator==(const Box&) const = default;
};
Box whole(const Shape& shape);
std::int64_t volume(const Box& box);
Box hull(const Box& a, const Box& b);

// The boxes, in order, that make up rows [begin, end) where a row is one index of the leading `axes` axes taken together.
std::vector<Box> row_boxes(const Shape& shape, std::size_t axes, std::int64_t begin, std::int64_t end);

// One entry a tensor; nothing where a tensor is not needed. What is asked for need not be all that is given: boxes are
// rounded up to the smallest box that holds what is needed.
using Demand = std::vector<std::optional<Box>>;
void propagate(const Graph& graph, Demand& demand);

}  // namespace warploom::graph
