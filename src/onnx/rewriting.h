// What the conversion of nodes of older operator sets is written with. Private to the room.
#pragma once
#include <onnx/onnx.pb.h>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/flatten.h"

namespace warploom::onnx_import {
inline constexpr int64_t kHelper = 21;  // the operator set of nodes that are put beside the model's
inline constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();

onnx::AttributeProto integer_attribute(const std::string& name, int64_t value);
onnx::AttributeProto integers_attribute(const std::string& name,
                                        const std::vector<int64_t>& values);
onnx::AttributeProto text_attribute(const std::string& name, const std::string& value);

// One node, and what comes to stand before and behind it.
class Rewriting {
 public:
  Rewriting(VersionedNode of, const std::function<std::string(const std::string&)>& fresh,
            std::string where, Knowledge& knowledge)
      : node(std::move(of.proto)),
        opset(of.opset),
        place(std::move(where)),
        known(knowledge),
        fresh_(fresh) {}

  onnx::NodeProto node;
  int64_t opset;  // that it is of
  std::string place;
  Knowledge& known;
  std::vector<VersionedNode> before;
  std::vector<VersionedNode> behind;

  // The attribute, which the node then lacks.
  std::optional<onnx::AttributeProto> take(std::string_view name) {
    for (int i = 0; i < node.attribute_size(); ++i) {
      if (node.attribute(i).name() != name) continue;
      onnx::AttributeProto taken = node.attribute(i);
      node.mutable_attribute()->DeleteSubrange(i, 1);
      return taken;
    }
    return std::nullopt;
  }

  // Input i, where the node has none of it yet: those before it are left out.
  void set_input(int i, const std::string& name) {
    while (node.input_size() <= i)
      node.add_input();
    node.set_input(i, name);
  }

  std::string name(const std::string& what) const {
    const bool named = node.output_size() > 0 && !node.output(0).empty();
    return fresh_((named ? node.output(0) : node.op_type()) + "/" + what);
  }

  // A node before this one; the name of what it makes.
  std::string make(std::string_view op, const std::vector<std::string>& inputs,
                   const std::string& what,
                   const std::vector<onnx::AttributeProto>& attributes = {}) {
    onnx::NodeProto made = node_of(op, inputs, name(what), attributes);
    before.push_back({made, kHelper});
    return made.output(0);
  }

  // An attribute's numbers as a constant: i64 or f32.
  std::string constant(onnx::AttributeProto numbers, const std::string& what) {
    using Kind = onnx::AttributeProto;
    static const std::map<int, std::string> kForms = {{Kind::FLOAT, "value_float"},
                                                      {Kind::FLOATS, "value_floats"},
                                                      {Kind::INT, "value_int"},
                                                      {Kind::INTS, "value_ints"}};
    const auto form = kForms.find(numbers.type());
    numbers.set_name(form == kForms.end() ? "value" : form->second);
    return make("Constant", {}, what, {numbers});
  }

  // A node behind this one, which makes one of this one's outputs out of what this one then makes.
  void finish(std::string_view op, const std::vector<std::string>& more_inputs, int i = 0) {
    const std::string output = node.output(i);
    const std::string inner = name(i == 0 ? "inner" : "second");
    node.set_output(i, inner);
    std::vector<std::string> inputs = {inner};
    inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
    behind.push_back({node_of(op, inputs, output, {}), kHelper});
  }

  // The axes of an input, where nodes before make it.
  Result<size_t> rank_of(int i) {
    WARPLOOM_TRY(const graph::Tensor* const tensor, known.tensor(node.input(i)));
    if (tensor != nullptr) return tensor->shape.size();
    return fail({ErrorCode::kOnnxName, "a tensor is used that nothing before defines", place,
                 "an input, an initializer or an earlier node's output", node.input(i)});
  }

 private:
  static onnx::NodeProto node_of(std::string_view op, const std::vector<std::string>& inputs,
                                 const std::string& output,
                                 const std::vector<onnx::AttributeProto>& attributes) {
    onnx::NodeProto made;
    made.set_op_type(std::string(op));
    made.set_name(output);
    for (const std::string& input : inputs)
      made.add_input(input);
    made.add_output(output);
    for (const auto& attribute : attributes)
      *made.add_attribute() = attribute;
    return made;
  }

  const std::function<std::string(const std::string&)>& fresh_;
};

// How a form that an operator had until some operator set is written in the present one.
struct Change {
  std::string_view op;
  int64_t until;  // the last operator set that has the form
  Status (*rewrite)(Rewriting&);
};

// Of forms that operator sets up to 6 alone have. (conversion_first.cpp)
std::span<const Change> first_changes();
}  // namespace warploom::onnx_import
