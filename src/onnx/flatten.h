// A model without functions and without branches. Private to the room.
//
// A node that calls a function of the model is replaced by the function's body; an If whose
// condition is known from the model alone by the branch that it takes. Values of a body get names
// of their own, so that two calls never meet:
//
//   functions { name: "Half" input: "a" output: "b"  h = Constant(0.5);  b = Mul(a, h) }
//   y = Half(x)      →      y/h = Constant(0.5);  y = Mul(x, y/h)
//
// Attributes that a body takes from its call (ref_attr_name) become the call's, or the function's
// defaults; what neither gives is left out. A function may call others, but not itself. It brings
// the operator set that its nodes are of; a function of the model is preferred to an operator of
// the same name.
//
// Errors: onnx-cyclic for a function that calls itself; onnx-attribute, onnx-name; onnx-too-large
// where bodies within bodies come to more nodes than a model may have; onnx-unknown-operator for an
// If whose condition depends on what the model is given.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include "onnx/model.h"

namespace warploom::onnx_import {
struct VersionedNode {
  onnx::NodeProto proto;
  int64_t opset = 0;  // of the default domain, that the node is of
};

struct FlatModel {
  std::vector<VersionedNode> nodes;
  std::vector<const onnx::TensorProto*> initializers;  // of the model, and of branches taken
  std::deque<onnx::TensorProto> own;                   // those of branches, under their new names
};

// What becomes of a tensor that the nodes before know: nothing where it depends on inputs.
using Known =
    std::function<Result<std::optional<bool>>(const FlatModel& before, const std::string& name)>;

Result<FlatModel> flattened(const onnx::ModelProto& model, int64_t opset, const Source& source,
                            const Known& known);

// A node of an operator set before 13 as those from 13 on say the same, with the nodes that it
// needs before and behind it; any other as it is. `fresh` makes a name that no other tensor has.
// Errors: onnx-attribute. (conversion.cpp)
Result<std::vector<VersionedNode>> converted(
    VersionedNode node, const std::function<std::string(const std::string&)>& fresh,
    const std::string& place);
}  // namespace warploom::onnx_import
