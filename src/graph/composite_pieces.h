// What the rewrites of several composites share. Private to the room.
#pragma once
#include <functional>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
// The norm's attribute p, an integer: 1 or 2 of an LpNormalization, to 64 of the pools.
Status check_power(const NodeContext& context);
// The first input has a batch axis and channels.
Status check_channels(const NodeContext& context);

// A pool or convolution as the primitive, with all its attributes.
Id windowed(PrimitiveWriter& writer, OpKind op, std::vector<Id> inputs, const WindowSpec& spec);

// The p-th root of `sum` of |x|^p, `sum` over windows or over axes.
Id rooted(PrimitiveWriter& writer, Id x, const std::function<Id(Id)>& sum);
}  // namespace warploom::graph
