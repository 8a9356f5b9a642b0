#include "onnx/weights.h"
#include <onnx/onnx.pb.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
namespace {
using graph::Tensor;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;

// The tensor of a Constant in its long form, or null.
TensorProto* value_of(NodeProto& node) {
  if (node.op_type() != "Constant" || node.output_size() != 1) return nullptr;
  if (node.attribute_size() != 1 || !node.attribute(0).has_t()) return nullptr;
  return node.mutable_attribute(0)->mutable_t();
}

int64_t elements_of(const TensorProto& proto) {
  const auto& dims = proto.dims();
  const graph::Shape shape(dims.begin(), dims.end());
  return graph::element_count(shape);
}

bool is_real(const TensorProto& proto) {
  const auto dtype = graph::checked_dtype(proto.data_type(), "", "");
  return dtype && is_float(*dtype);
}

void declare(GraphProto& graph, const TensorProto& proto) {
  if (contains(graph.input(), proto.name(), &ValueInfoProto::name)) return;
  ValueInfoProto& input = *graph.add_input();
  input.set_name(proto.name());
  onnx::TypeProto::Tensor& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(proto.data_type());
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  for (const int64_t size : proto.dims())
    shape.add_dim()->set_dim_value(size);
}

template <class Field, class Gone> void remove_if(Field& field, const Gone& gone) {
  const auto kept_end = std::remove_if(field.begin(), field.end(), gone);
  field.erase(kept_end, field.end());
}

// The bytes, wherever they lie, as raw data.
Status embed(TensorProto& proto, const Source& source) {
  if (proto.data_location() != TensorProto::EXTERNAL) return ok();
  WARPLOOM_TRY(const Tensor read, to_tensor(proto, source));
  proto.set_raw_data(read.constant->data(), read.constant->size());
  proto.clear_external_data();
  proto.clear_data_location();
  return ok();
}

void clear_bytes(TensorProto& proto) {
  TensorProto bare;
  bare.set_name(proto.name());
  bare.set_data_type(proto.data_type());
  *bare.mutable_dims() = proto.dims();
  proto = bare;
}
}  // namespace

void separate_merged(ModelProto& model) {
  GraphProto& graph = *model.mutable_graph();
  std::map<std::string, int> places;  // of initializers, by name
  for (int i = 0; i < graph.initializer_size(); ++i)
    places[graph.initializer(i).name()] = i;
  const auto is_copy = [&](const NodeProto& node) {
    const bool is_identity = node.op_type() == "Identity" && node.domain().empty();
    if (!is_identity || node.input_size() != 1 || node.output_size() != 1) return false;
    if (contains(graph.output(), node.output(0), &ValueInfoProto::name)) return false;
    const auto found = places.find(node.input(0));
    if (found == places.end() || places.contains(node.output(0))) return false;
    TensorProto copy = graph.initializer(found->second);
    copy.set_name(node.output(0));
    places[node.output(0)] = graph.initializer_size();
    *graph.add_initializer() = std::move(copy);
    return true;
  };
  std::vector<bool> gone;
  for (const NodeProto& node : graph.node())
    gone.push_back(is_copy(node));
  size_t at = 0;
  remove_if(*graph.mutable_node(), [&](const NodeProto&) { return gone[at++]; });
}

Result<std::map<std::string, Tensor>> take_weights(ModelProto& model, const Source& source,
                                                   int64_t least_elements) {
  GraphProto& graph = *model.mutable_graph();
  std::map<std::string, Tensor> taken;
  const auto take = [&](const TensorProto& proto) -> Status {
    WARPLOOM_TRY(Tensor read, to_tensor(proto, source));
    declare(graph, proto);
    taken.emplace(proto.name(), std::move(read));
    return ok();
  };
  for (const TensorProto& proto : graph.initializer())
    if (is_real(proto) && elements_of(proto) >= least_elements) WARPLOOM_CHECK(take(proto));
  for (NodeProto& node : *graph.mutable_node()) {
    TensorProto* value = value_of(node);
    if (value == nullptr || !is_real(*value) || elements_of(*value) <= 1) continue;
    TensorProto named = *value;
    named.set_name(node.output(0));
    WARPLOOM_CHECK(take(named));
  }
  const auto is_taken = [&](const TensorProto& proto) { return taken.contains(proto.name()); };
  remove_if(*graph.mutable_initializer(), is_taken);
  const auto is_taken_node = [&](const NodeProto& node) {
    const bool is_constant = node.op_type() == "Constant" && node.output_size() == 1;
    return is_constant && taken.contains(node.output(0));
  };
  remove_if(*graph.mutable_node(), is_taken_node);
  return taken;
}

Status drop_bytes(ModelProto& model, const Source& source, const std::set<std::string>& carried) {
  GraphProto& graph = *model.mutable_graph();
  model.DiscardUnknownFields();
  model.clear_doc_string();
  graph.clear_doc_string();
  graph.clear_value_info();
  for (TensorProto& proto : *graph.mutable_initializer()) {
    if (carried.contains(proto.name()))
      clear_bytes(proto);
    else
      WARPLOOM_CHECK(embed(proto, source));
  }
  for (NodeProto& node : *graph.mutable_node()) {
    node.clear_doc_string();
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) WARPLOOM_CHECK(embed(*attribute.mutable_t(), source));
    TensorProto* value = value_of(node);
    if (value != nullptr && carried.contains(node.output(0))) clear_bytes(*value);
  }
  return ok();
}
}  // namespace warploom::onnx_import
