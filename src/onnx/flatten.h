// A model without functions, branches, loops and sequences. Private to the room.
//
// A node that calls a function of the model is replaced by the function's body; an If whose
// condition is known from the model alone by the branch that it takes; a Loop, Scan or SequenceMap
// by its body once for each step, where it is known how many there are. Values of a body get names
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
// A sequence is a list of tensors, whose names are known; so is what an optional holds. Nodes that
// make, change and read them leave plain nodes:
//
//   s = SplitToSequence(x);  y = SequenceAt(s, 1)      →      s/part0, s/part1 = Split(x);  y =
//   Identity(s/part1)
//
// Errors: onnx-cyclic for a function that calls itself; onnx-attribute, onnx-name, onnx-shape,
// onnx-type; onnx-too-large where bodies come to more nodes than a model may have, or a loop to
// more steps; onnx-unknown-operator for what depends on what the model is given: the condition of
// an If or Loop, a number of steps, a place in a sequence.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>
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

// What the nodes of a model say of its tensors, while there come more of them.
class Knowledge {
 public:
  virtual ~Knowledge() = default;
  // Its type and shape, and its elements where the model alone decides them; null where nothing
  // before defines it. Valid until the next question.
  virtual Result<const graph::Tensor*> tensor(const std::string& name) = 0;
};

// Fills an empty `flat`, of which `known` knows.
Status flatten(const onnx::ModelProto& model, int64_t opset, const Source& source, FlatModel& flat,
               Knowledge& known);

// A node of an operator set before 13 as those from 13 on say the same, with the nodes that it
// needs before and behind it; any other as it is. `fresh` makes a name that no other tensor has.
// Errors: onnx-attribute. (conversion.cpp)
Result<std::vector<VersionedNode>> converted(
    VersionedNode node, const std::function<std::string(const std::string&)>& fresh,
    const std::string& place, Knowledge& known);
}  // namespace warploom::onnx_import
