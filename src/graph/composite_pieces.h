// What the rewrites of several composites share. Private to the room.
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
// The norm's attribute p, an integer: 1 or 2 of an LpNormalization, to 64 of the pools.
Status check_power(const NodeContext& context);
// The first input has a batch axis and channels.
Status check_channels(const NodeContext& context);

// x and its scales in blocks: an axis of x that has several scales becomes two, the second within a
// block.
//   x [4,256], scale [4,2]: x as [4,2,128], the scale as [4,2,1]
struct Blocks {
  bool fit = true;  // each scale is of a whole number of elements
  Shape of_x;
  Shape of_scale;
};

Blocks blocks_of(const Shape& x, const Shape& scale);
// The shape of scales, a QuantizeLinear's or a DequantizeLinear's second input, with as many axes
// as the first.
Result<Shape> scale_shape(const PrimitiveWriter& writer);

// onnx-name where one of these inputs is left out: of operators whose optional inputs come before
// required ones.
Status check_given(const NodeContext& context, std::initializer_list<size_t> required);

// x behind an activation that ONNX Runtime joins with what makes it, by its name; "": x. The
// operator's attributes activation_alpha and the like, or a list of them, are the activation's.
Result<Id> activated(PrimitiveWriter& writer, Id x, const std::string& activation);

// The attributes that a node has of windows, for another one.
std::map<std::string, Attribute> window_attributes(const Node& node);

// A pool or convolution as the primitive, with all its attributes.
Id windowed(PrimitiveWriter& writer, OpKind op, std::vector<Id> inputs, const WindowSpec& spec);

// The p-th root of `sum` of |x|^p, `sum` over windows or over axes.
Id rooted(PrimitiveWriter& writer, Id x, const std::function<Id(Id)>& sum);
}  // namespace warploom::graph
