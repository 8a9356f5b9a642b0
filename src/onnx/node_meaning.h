// What a node of a model is here: its operator, and what attributes that it leaves out say in an
// operator set of its time. Within the room only.
//
//   operator_named({.name = "MaxPool", .outputs = 2})     OpKind::MaxPoolPlaces
//   say_defaults(15, node)                                RoiAlign reads corners until 16
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include "graph/graph.h"

namespace warploom::onnx_import {
struct NamedNode {
  std::string_view name;
  int outputs = 1;
  bool is_contributed = false;  // of a domain of ONNX Runtime's (contributed.h)
};

// Nothing where models have no operator of that name.
std::optional<graph::OpKind> operator_named(const NamedNode& node);

// Adds attributes that meant something else, where they are left out, in older operator sets.
void say_defaults(int64_t opset, graph::Node& node);
}  // namespace warploom::onnx_import
