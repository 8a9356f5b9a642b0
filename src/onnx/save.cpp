#include <google/protobuf/text_format.h>
#include "onnx/load.h"
#include "onnx/model.h"

namespace warploom {
namespace {

void describe_tensor(const graph::TensorInfo& tensor, onnx::ValueInfoProto& to) {
  to.set_name(tensor.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type_of(tensor.dtype));
  type.mutable_shape();
  for (std::int64_t size : tensor.shape) type.mutable_shape()->add_dim()->set_dim_value(size);
}

struct SetAttribute {
  onnx::AttributeProto& to;
  void operator()(std::int64_t value) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(value);
  }
  void operator()(double value) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& value) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (std::int64_t entry : value) to.add_ints(entry);
  }
};

}  // namespace

std::string to_onnx_text(const graph::Graph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(20);
  onnx::GraphProto& to = *model.mutable_graph();
  to.set_name(graph.name);
  for (const graph::Node& node : graph.nodes) {
    onnx::NodeProto& made = *to.add_node();
    made.set_name(node.name);
    made.set_op_type(std::string(name_of(node.op)));
    for (graph::TensorId id : node.inputs) made.add_input(id == graph::kAbsent ? "" : graph.tensor(id).name);
    for (graph::TensorId id : node.outputs) made.add_output(id == graph::kAbsent ? "" : graph.tensor(id).name);
    for (const auto& [key, value] : node.attributes) {
      onnx::AttributeProto& attribute = *made.add_attribute();
      attribute.set_name(key);
      std::visit(SetAttribute{attribute}, value);
    }
  }
  for (const graph::Tensor& tensor : graph.tensors) {
    if (!tensor.constant) continue;
    onnx::TensorProto& made = *to.add_initializer();
    made.set_name(tensor.name);
    made.set_data_type(onnx_type_of(tensor.dtype));
    for (std::int64_t size : tensor.shape) made.add_dims(size);
    made.set_raw_data(reinterpret_cast<const char*>(tensor.constant->data()), tensor.constant->size());
  }
  for (graph::TensorId id : graph.inputs) describe_tensor(graph.tensor(id), *to.add_input());
  for (graph::TensorId id : graph.outputs) describe_tensor(graph.tensor(id), *to.add_output());
  std::string text;
  google::protobuf::TextFormat::PrintToString(model, &text);
  return text;
}

}  // namespace warploom
