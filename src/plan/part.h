// A part of a tensor that lies in one piece of its memory: what a Slice or a Gather of one index
// takes, where all axes before the one that it cuts have one element and all behind are whole.
//
//   x f32 [512,10,256]     Gather(x, 3, axis=0) → [10,256]     from byte 30720 on
#pragma once
#include <cstdint>
#include <optional>
#include "graph/graph.h"

namespace warploom::plan {
// Where it begins, in bytes; nothing where it is not in one piece, or not where memory that kernels
// load from may begin.
std::optional<int64_t> begin_of_part(const graph::Graph& graph, const graph::Node& node);

// Whether what a Concat joins lies in the result in one piece each, where memory may begin.
bool lies_in_pieces(const graph::Graph& graph, const graph::Node& concat);
}  // namespace warploom::plan
