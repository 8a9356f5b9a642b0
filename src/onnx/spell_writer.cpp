#include "onnx/spell_writer.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::spell {
namespace {
using graph::kAbsent;
using graph::OpKind;
using graph::Shape;
using graph::Tensor;
using graph::TensorId;
using graph::TensorInfo;
using onnx::AttributeProto;
using onnx::ModelProto;

constexpr int kOpset = 23;
constexpr int kIrVersion = 10;

void declare(onnx::ValueInfoProto& info, const Tensor& tensor) {
  info.set_name(tensor.name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type_of(tensor.dtype));
  type.mutable_shape();
  for (const int64_t size : tensor.shape)
    type.mutable_shape()->add_dim()->set_dim_value(size);
}

// One overload an alternative of graph::Attribute.
void store(AttributeProto& to, int64_t value) {
  to.set_type(AttributeProto::INT);
  to.set_i(value);
}

void store(AttributeProto& to, double value) {
  to.set_type(AttributeProto::FLOAT);
  to.set_f(as_float(value));
}

void store(AttributeProto& to, const std::string& value) {
  to.set_type(AttributeProto::STRING);
  to.set_s(value);
}

void store(AttributeProto& to, const std::vector<int64_t>& values) {
  to.set_type(AttributeProto::INTS);
  to.mutable_ints()->Add(values.begin(), values.end());
}

void store(AttributeProto& to, const std::vector<double>& values) {
  to.set_type(AttributeProto::FLOATS);
  for (const double value : values)
    to.add_floats(as_float(value));
}

void store(AttributeProto& to, const std::vector<std::string>& values) {
  to.set_type(AttributeProto::STRINGS);
  for (const std::string& value : values)
    to.add_strings(value);
}

// The arity that infer() checks before a node's rule.
Status check_arity(OpKind op, const std::vector<TensorId>& inputs) {
  const auto& row = graph::operator_of(op);
  const auto count = as_int(inputs.size());
  const auto first_absent = std::ranges::find(inputs, kAbsent) - inputs.begin();
  const bool count_fits = count >= row.min_inputs && count <= row.max_inputs;
  const bool all_there = first_absent >= row.min_inputs || first_absent == count;
  if (count_fits && all_there) return ok();
  std::string most = fmt::format(" to {}", row.max_inputs);
  if (row.max_inputs == row.min_inputs) most = "";
  if (row.max_inputs == graph::kVariadic) most = " or more";
  const std::string expected = fmt::format("{}{} of {}", row.min_inputs, most, row.name);
  return fail({ErrorCode::kUsage, "wrong number of operands", "", expected, std::to_string(count)});
}
}  // namespace

TensorId ModelWriter::input(const std::string& name, Dtype dtype, const Shape& shape) {
  inputs_.push_back(graph_.add_tensor({{name, dtype, shape}, std::nullopt}));
  named_.insert(inputs_.back());
  return inputs_.back();
}

TensorId ModelWriter::constant(Dtype dtype, const std::vector<double>& values, bool scalar) {
  const std::string numbers = fmt::format("{}", fmt::join(values, ","));
  const std::string what = fmt::format("{} {} {}", name_of(dtype), scalar, numbers);
  if (const auto found = known_.find(what); found != known_.end()) return found->second[0];
  Shape shape;
  if (!scalar) shape.push_back(as_int64(values.size()));
  std::vector<std::byte> bytes(values.size() * as_size(bytes_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(dtype, bytes.data(), i, values[i]);
  const std::string name = fresh("c", constants_.size() + 1);
  const TensorInfo info{name, dtype, shape};
  constants_.push_back(graph_.add_tensor({info, std::move(bytes)}));
  known_[what] = {constants_.back()};
  return constants_.back();
}

Result<std::vector<TensorId>> ModelWriter::node(OpKind op, std::vector<TensorId> inputs,
                                                const Attributes& attributes, size_t outputs) {
  while (!inputs.empty() && inputs.back() == kAbsent)
    inputs.pop_back();
  WARPLOOM_CHECK(check_arity(op, inputs));
  const std::string operands = fmt::format("{}", fmt::join(inputs, ","));
  std::string what = fmt::format("{}({})", graph::name_of(op), operands);
  for (const auto& [key, value] : attributes)
    what += " " + key + "=" + graph::to_text(value);
  if (const auto found = known_.find(what);
      found != known_.end() && found->second.size() == outputs)
    return found->second;
  const size_t tensors = graph_.tensors.size();
  graph::Node node{op, "", inputs, {}, attributes};
  size_t number = nodes_.size() + 1;
  for (size_t i = 0; i < outputs; ++i) {
    std::string name = fresh("t", number);
    if (outputs > 1) name += fmt::format("_{}", i + 1);
    const TensorInfo info{name, Dtype::f32, {}};
    node.outputs.push_back(graph_.add_tensor({info, std::nullopt}));
  }
  node.name = graph_.tensor(node.outputs[0]).name;
  if (const Status inferred = graph::infer_node(graph_, node); !inferred) {
    graph_.tensors.resize(tensors);
    return fail(inferred.error());
  }
  nodes_.push_back({op, std::move(inputs), node.outputs, attributes});
  known_[what] = node.outputs;
  return node.outputs;
}

void ModelWriter::name(TensorId id, const std::string& name) {
  const bool made = !contains(constants_, id);
  if (made && named_.insert(id).second) graph_.tensor(id).name = name;
}

Status ModelWriter::output(TensorId id, const std::string& name) {
  ModelWriter::name(id, name);
  if (graph_.tensor(id).name != name || contains(inputs_, id)) {
    // A second name of a tensor is another tensor.
    const size_t tensors = graph_.tensors.size();
    WARPLOOM_TRY(const auto copies, node(OpKind::Identity, {id}, {}));
    const bool again = graph_.tensors.size() == tensors;
    if (again || !named_.insert(copies[0]).second)
      return fail({ErrorCode::kUsage, "one value is given out under three names or more", "",
                   "one name, or two", name, "leave one out"});
    graph_.tensor(copies[0]).name = name;
    id = copies[0];
  }
  outputs_.push_back(id);
  return ok();
}

std::string ModelWriter::fresh(std::string_view prefix, size_t number) const {
  std::string name = fmt::format("{}{}", prefix, number);
  while (reserved_.contains(name))
    name += "_";
  return name;
}

ModelProto ModelWriter::model(std::string_view name) const {
  ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("warploom");
  model.add_opset_import()->set_version(kOpset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(std::string(name));
  for (const TensorId id : inputs_)
    declare(*graph.add_input(), graph_.tensor(id));
  for (const TensorId id : constants_) {
    const Tensor& tensor = graph_.tensor(id);
    onnx::TensorProto& to = *graph.add_initializer();
    to.set_name(tensor.name);
    to.set_data_type(onnx_type_of(tensor.dtype));
    for (const int64_t size : tensor.shape)
      to.add_dims(size);
    to.set_raw_data(tensor.constant->data(), tensor.constant->size());
  }
  for (const Made& made : nodes_) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(std::string(graph::name_of(made.op)));
    for (const TensorId id : made.inputs)
      node.add_input(id == kAbsent ? "" : graph_.tensor(id).name);
    for (const TensorId id : made.outputs)
      node.add_output(graph_.tensor(id).name);
    for (const auto& [key, value] : made.attributes) {
      AttributeProto& to = *node.add_attribute();
      to.set_name(key);
      std::visit([&](const auto& held) { store(to, held); }, value);
    }
  }
  for (const TensorId id : outputs_)
    declare(*graph.add_output(), graph_.tensor(id));
  return model;
}
}  // namespace warploom::spell
