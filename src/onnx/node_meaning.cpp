#include "onnx/node_meaning.h"
#include <cstdint>
#include <optional>
#include <string>
#include "graph/graph.h"
#include "graph/operators.h"
#include "onnx/contributed.h"

namespace warploom::onnx_import {
using graph::OpKind;

std::optional<OpKind> operator_named(const NamedNode& node) {
  if (node.is_contributed) return contributed_named(node.name);
  const auto op = graph::op_named(node.name);
  if (op == OpKind::MaxPool && node.outputs > 1) return OpKind::MaxPoolPlaces;
  if (!op || graph::operator_of(*op).since >= graph::kInternal) return std::nullopt;
  return op;
}

void say_defaults(int64_t opset, graph::Node& node) {
  const int64_t first_axis = 1;
  const std::string from_corner = "output_half_pixel";
  if (node.op == OpKind::RoiAlign && opset < 16)
    node.attributes.emplace("coordinate_transformation_mode", from_corner);
  if (node.op == OpKind::DFT && opset < 20) node.attributes.emplace("axis", first_axis);
}
}  // namespace warploom::onnx_import
