#include "onnx/model.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "onnx/contributed.h"
#include "onnx/flatten.h"
#include "onnx/node_meaning.h"
#include "onnx/unsupported.h"

namespace warploom::onnx_import {
namespace {
using graph::Attribute;
using graph::Graph, graph::Node, graph::OpKind, graph::Tensor, graph::TensorId;
using graph::kAbsent;
using graph::TensorInfo;
using onnx::AttributeProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;
constexpr int64_t kFirstOpset = 1;
constexpr int64_t kLastOpset = 28;

// A fixed shape, or the reason why it is none.
Result<TensorInfo> declared(const ValueInfoProto& proto, const std::string& place) {
  if (!proto.type().has_tensor_type())
    return fail({ErrorCode::kOnnxType, "an input is no tensor", place, "a dense tensor"});
  const auto& type = proto.type().tensor_type();
  const auto known = graph::checked_dtype(type.elem_type(), "a tensor's element type", place);
  WARPLOOM_TRY(const Dtype dtype, known);
  if (!type.has_shape()) {
    Error error{ErrorCode::kOnnxDynamicShape, "an input has no shape", place};
    error.expected = "a size for every axis, or a name for it that --dim binds";
    error.remedy = "export the model with a shape for every input";
    return fail(error);
  }
  TensorInfo info{proto.name(), dtype, {}};
  for (const auto& dim : type.shape().dim()) {
    info.shape.push_back(dim.dim_value());
  }
  WARPLOOM_CHECK(graph::checked_element_count(info.shape, place));
  return info;
}

class Importer {
 public:
  Importer(const ModelProto& model, const FlatModel& flat, const Source& source)
      : model_(model), flat_(flat), source_(source) {}

  Result<Graph> run();
  // Of the model as far as it has come: what is asked for, and what that is made of, once each.
  Result<const Tensor*> learn(const std::string& name);
  Status check_declared(const Graph& inferred) const;

 private:
  std::string at(std::string_view kind, std::string_view name) const;

  std::string at(const NodeProto& node) const;
  TensorId tensor(const std::string& name);
  Status read_initializers();
  Status named_once(std::string_view kind, const std::string& name,
                    std::set<std::string>& seen) const;
  Status read_inputs();
  Status read_outputs();
  Result<Attribute> read_attribute(const AttributeProto& proto, const std::string& place) const;
  Status read_constant(const NodeProto& proto);
  Status read_filled(const NodeProto& proto);
  Status add_attribute(const AttributeProto& attribute, int64_t opset, const std::string& place,
                       Node& node) const;
  Status read_node(const VersionedNode& node_of_model);
  Status learn_given(const std::string& name);
  Status learn_node(const VersionedNode& node);
  Status check_declared(const Graph& inferred, const ValueInfoProto& proto,
                        std::string_view kind) const;

  const ModelProto& model_;
  const FlatModel& flat_;
  const Source& source_;
  Graph graph_;
  std::map<std::string, TensorId, std::less<>> ids_;
  std::set<std::string> narrow_;  // constants of 4 bits
  // Of what is learned.
  size_t nodes_seen_ = 0;
  size_t initializers_seen_ = 0;
  std::map<std::string, size_t> makers_;
  std::map<std::string, const TensorProto*> known_;
  std::set<std::string> learned_;
};

// The whole model, inferred.
Result<Graph> Importer::run() {
  graph_.name = model_.graph().name();
  WARPLOOM_CHECK(read_initializers());
  WARPLOOM_CHECK(read_inputs());
  for (const VersionedNode& node : flat_.nodes)
    WARPLOOM_CHECK(read_node(node));
  WARPLOOM_CHECK(read_outputs());
  auto inferred = graph::infer(std::move(graph_));
  if (!inferred) {
    std::string& place = inferred.error().place;
    place = fmt::format("{}: {}", source_.place, place);
  }
  return inferred;
}

Result<const Tensor*> Importer::learn(const std::string& name) {
  for (; nodes_seen_ < flat_.nodes.size(); ++nodes_seen_)
    for (const std::string& output : flat_.nodes[nodes_seen_].proto.output())
      makers_.emplace(output, nodes_seen_);
  for (; initializers_seen_ < flat_.initializers.size(); ++initializers_seen_) {
    const TensorProto* const initializer = flat_.initializers[initializers_seen_];
    known_.emplace(initializer->name(), initializer);
  }
  std::set<size_t> needed;
  std::set<std::string> asked = {name};
  for (std::vector<std::string> open = {name}; !open.empty();) {
    const std::string next = std::move(open.back());
    open.pop_back();
    const auto maker = makers_.find(next);
    if (maker == makers_.end()) {
      WARPLOOM_CHECK(learn_given(next));
    } else if (!learned_.contains(next) && needed.insert(maker->second).second) {
      for (const std::string& input : flat_.nodes[maker->second].proto.input())
        if (!input.empty() && asked.insert(input).second) open.push_back(input);
    }
  }
  for (const size_t n : needed)
    WARPLOOM_CHECK(learn_node(flat_.nodes[n]));
  if (!learned_.contains(name)) return nullptr;
  return &graph_.tensor(ids_.find(name)->second);
}

// An initializer or an input.
Status Importer::learn_given(const std::string& name) {
  if (learned_.contains(name)) return ok();
  std::optional<Tensor> given;
  if (const auto initializer = known_.find(name); initializer != known_.end()) {
    WARPLOOM_TRY(given, to_tensor(*initializer->second, source_));
  }
  for (const auto& proto : model_.graph().input()) {
    if (given || proto.name() != name) continue;
    WARPLOOM_TRY(TensorInfo info, declared(proto, at("input", name)));
    given = Tensor{std::move(info), std::nullopt};
  }
  if (!given) return ok();
  graph_.tensor(tensor(name)) = *std::move(given);
  learned_.insert(name);
  return ok();
}

// What the nodes before made is known.
Status Importer::learn_node(const VersionedNode& node) {
  for (const std::string& input : node.proto.input())
    if (!input.empty() && !learned_.contains(input)) return ok();  // of a later node, or nobody's
  WARPLOOM_CHECK(read_node(node));
  for (Node& made : graph_.nodes) {
    Status inferred = graph::infer_node(graph_, made);
    if (!inferred) {
      Error error = inferred.error();
      error.place = fmt::format("{}: {}", source_.place, error.place);
      return fail(error);
    }
  }
  graph_.nodes.clear();
  for (const std::string& output : node.proto.output())
    if (!output.empty()) learned_.insert(output);
  return ok();
}

// What the model says of outputs and tensors in between must agree with what was inferred.
Status Importer::check_declared(const Graph& inferred) const {
  for (const auto& proto : model_.graph().output())
    WARPLOOM_CHECK(check_declared(inferred, proto, "output"));
  for (const auto& proto : model_.graph().value_info())
    WARPLOOM_CHECK(check_declared(inferred, proto, "tensor"));
  return ok();
}

std::string Importer::at(std::string_view kind, std::string_view name) const {
  return place_of(source_, kind, name);
}

std::string Importer::at(const NodeProto& node) const {
  return fmt::format("{} ({})", at("node", node.name()), node.op_type());
}

// By name; a new one if it was not mentioned yet.
TensorId Importer::tensor(const std::string& name) {
  if (name.empty()) return kAbsent;
  const auto next = static_cast<TensorId>(graph_.tensors.size());
  const auto [found, is_new] = ids_.try_emplace(name, next);
  if (is_new) graph_.add_tensor({{name, Dtype::f32, {}}, std::nullopt});
  return found->second;
}

Status Importer::read_initializers() {
  if (model_.graph().sparse_initializer_size() > 0)
    return fail({ErrorCode::kOnnxType, "sparse initializers are not supported", source_.place,
                 "dense tensors"});
  for (const TensorProto* const each : flat_.initializers) {
    const TensorProto& proto = *each;
    if (proto.name().empty())
      return fail({ErrorCode::kOnnxName, "an initializer has no name", source_.place});
    if (ids_.contains(proto.name()))
      return fail(
          {ErrorCode::kOnnxName, "an initializer is defined twice", at("tensor", proto.name())});
    WARPLOOM_TRY(Tensor read, to_tensor(proto, source_));
    if (is_of_four_bits(proto)) narrow_.insert(proto.name());
    ids_.emplace(proto.name(), graph_.add_tensor(std::move(read)));
  }
  return ok();
}

// Every input, or output, has a name of its own.
Status Importer::named_once(std::string_view kind, const std::string& name,
                            std::set<std::string>& seen) const {
  if (name.empty())
    return fail({ErrorCode::kOnnxName, fmt::format("an {} has no name", kind), source_.place});
  if (seen.insert(name).second) return ok();
  return fail({ErrorCode::kOnnxName, fmt::format("an {} is named twice", kind), at(kind, name)});
}

Status Importer::read_inputs() {
  std::set<std::string> seen;
  for (const auto& proto : model_.graph().input()) {
    const std::string place = at("input", proto.name());
    WARPLOOM_CHECK(named_once("input", proto.name(), seen));
    WARPLOOM_TRY(TensorInfo info, declared(proto, place));
    const bool given = ids_.contains(proto.name());  // a default value: the input stays constant
    const TensorId id = tensor(proto.name());
    Tensor& known = graph_.tensor(id);
    if (!given) {
      known = {info, std::nullopt};
      graph_.inputs.push_back(id);
      continue;
    }
    const bool same_type = known.dtype == info.dtype;
    if (same_type && known.shape == info.shape) continue;
    const ErrorCode code = same_type ? ErrorCode::kOnnxShape : ErrorCode::kOnnxType;
    const std::string message = "an input and its initializer differ";
    return fail({code, message, place, to_text(info), to_text(known)});
  }
  return ok();
}

Status Importer::read_outputs() {
  std::set<std::string> seen;
  for (const auto& proto : model_.graph().output()) {
    WARPLOOM_CHECK(named_once("output", proto.name(), seen));
    graph_.outputs.push_back(tensor(proto.name()));
  }
  if (graph_.outputs.empty())
    return fail({ErrorCode::kOnnxName, "the graph has no output", source_.place});
  return ok();
}

Result<Attribute> Importer::read_attribute(const AttributeProto& proto,
                                           const std::string& place) const {
  if (!proto.ref_attr_name().empty()) {
    const std::string message = fmt::format("attribute {} refers to a function's", proto.name());
    return fail({ErrorCode::kOnnxAttribute, message, place});
  }
  switch (proto.type()) {
    case AttributeProto::INT: return proto.i();
    case AttributeProto::FLOAT: return as_double(proto.f());
    case AttributeProto::STRING: return proto.s();
    case AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case AttributeProto::FLOATS:
      return std::vector<double>(proto.floats().begin(), proto.floats().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    default: break;
  }
  const std::string message = fmt::format("attribute {} is of the wrong type", proto.name());
  Error error{ErrorCode::kOnnxAttribute, message, place};
  error.expected = "an integer, a float, a string or a list of these";
  error.found = fmt::format("AttributeProto type {}", as_int(proto.type()));
  return fail(error);
}

Status Importer::read_constant(const NodeProto& proto) {
  const std::string place = at(proto);
  const bool has_output = proto.output_size() == 1 && !proto.output(0).empty();
  if (proto.attribute_size() != 1 || !has_output || proto.input_size() != 0) {
    const std::string message = "a Constant has one value, one output and no input";
    return fail({ErrorCode::kOnnxAttribute, message, place});
  }
  WARPLOOM_TRY(TensorProto value, constant_value(proto.attribute(0), place));
  value.set_name(proto.output(0));
  WARPLOOM_TRY(Tensor read, to_tensor(value, source_));
  if (is_of_four_bits(value)) narrow_.insert(proto.output(0));
  const TensorId id = tensor(proto.output(0));
  Tensor& made = graph_.tensor(id);
  if (made.constant || contains(graph_.inputs, id))
    return fail({ErrorCode::kOnnxName, "a tensor is defined twice", place, "one definition",
                 proto.output(0)});
  made = std::move(read);
  return ok();
}

// ConstantOfShape(shape) is Expand(value, shape).
Status Importer::read_filled(const NodeProto& proto) {
  const std::string place = at(proto);
  const std::vector<std::byte> zero(sizeof(float));
  Tensor value{{"", Dtype::f32, {}}, zero};  // unless another one is given
  const bool has_one = proto.attribute_size() == 1;
  const bool given = has_one && proto.attribute(0).name() == "value" && proto.attribute(0).has_t();
  if (given) {
    WARPLOOM_TRY(value, to_tensor(proto.attribute(0).t(), source_));
  }
  if ((proto.attribute_size() > 0 && !given) || graph::element_count(value.shape) != 1)
    return fail({ErrorCode::kOnnxAttribute, "a ConstantOfShape has at most one value", place,
                 "a tensor of one element"});
  const bool has_input = proto.input_size() == 1 && !proto.input(0).empty();
  const bool has_output = proto.output_size() == 1 && !proto.output(0).empty();
  if (!has_input || !has_output)
    return fail({ErrorCode::kOnnxName, "a ConstantOfShape has one input and one output", place});
  value.name = proto.output(0) + "/value";
  value.shape.clear();
  const TensorId filled = graph_.add_tensor(std::move(value));
  const TensorId shape = tensor(proto.input(0));
  const TensorId made = tensor(proto.output(0));
  Node expand{OpKind::Expand, proto.name(), {filled, shape}, {made}, {}};
  graph_.nodes.push_back(std::move(expand));
  return ok();
}

Status Importer::add_attribute(const AttributeProto& attribute, int64_t opset,
                               const std::string& place, Node& node) const {
  const std::string& name = attribute.name();
  const auto* const known = graph::attribute_named(node.op, name);  // infer() refuses others
  if (known != nullptr && known->since > opset) {
    const std::string message = fmt::format("attribute {} is not in opset {}", name, opset);
    const std::string expected = fmt::format("opset {} or later", known->since);
    return fail({ErrorCode::kOnnxAttribute, message, place, expected});
  }
  WARPLOOM_TRY(Attribute value, read_attribute(attribute, place));
  if (node.attributes.emplace(name, std::move(value)).second) return ok();
  const std::string message = fmt::format("attribute {} is given twice", name);
  return fail({ErrorCode::kOnnxAttribute, message, place});
}

Status Importer::read_node(const VersionedNode& node_of_model) {
  const auto& [proto, opset] = node_of_model;
  const std::string place = at(proto);
  const bool ours = proto.domain() == "warploom";
  const bool contributed = is_contributed_domain(proto.domain());
  const bool known_domain = ours || contributed || is_default_domain(proto.domain());
  if (!known_domain) return fail(foreign_operator(proto, place));
  if (proto.op_type() == "ConstantOfShape" && !contributed) return read_filled(proto);
  const auto op = operator_named({proto.op_type(), proto.output_size(), contributed});
  if (contributed && !op) return fail(foreign_operator(proto, place));
  if (!op || ours != (op == OpKind::ScaledMatMul)) return fail(unknown_operator(proto, place));
  const int64_t since = graph::operator_of(*op).since;
  if (since > opset && since < graph::kInternal) {
    Error error{ErrorCode::kOnnxUnknownOperator};
    error.message = fmt::format("operator {} is not in opset {}", proto.op_type(), opset);
    error.place = place;
    error.expected = fmt::format("opset {} or later", since);
    error.found = fmt::format("opset {}", opset);
    error.remedy = "export the model with a later opset";
    return fail(error);
  }
  if (*op == OpKind::Constant) return read_constant(proto);
  for (const std::string& name : proto.input())
    if (narrow_.contains(name) && *op != OpKind::DequantizeLinear)
      return fail({ErrorCode::kOnnxType, "numbers of 4 bits are only dequantized", place,
                   "a DequantizeLinear", proto.op_type()});
  Node node{*op, proto.name(), {}, {}, {}};
  if (node.name.empty() && proto.output_size() > 0) node.name = proto.output(0);
  const auto read = [&](const auto& names, std::vector<TensorId>& ids) {
    for (const std::string& name : names)
      ids.push_back(tensor(name));
    while (!ids.empty() && ids.back() == kAbsent)
      ids.pop_back();
  };
  read(proto.input(), node.inputs);
  read(proto.output(), node.outputs);
  const int64_t version = contributed ? graph::kContributed : opset;
  for (const auto& attribute : proto.attribute())
    WARPLOOM_CHECK(add_attribute(attribute, version, place, node));
  if (!contributed) say_defaults(opset, node);
  graph_.nodes.push_back(std::move(node));
  return ok();
}

Status Importer::check_declared(const Graph& inferred, const ValueInfoProto& proto,
                                std::string_view kind) const {
  const auto found = ids_.find(proto.name());
  if (found == ids_.end() || !proto.type().has_tensor_type()) return ok();
  const Tensor& tensor = inferred.tensor(found->second);
  const auto& type = proto.type().tensor_type();
  const bool has_type = type.has_elem_type() && type.elem_type() != 0;
  if (has_type && type.elem_type() != onnx_type_of(tensor.dtype)) {
    Error error{ErrorCode::kOnnxType, "a declared element type contradicts the inferred one"};
    error.place = at(kind, proto.name());
    error.expected = name_of(tensor.dtype);
    error.found = fmt::format("ONNX type {}", type.elem_type());
    return fail(error);
  }
  if (!type.has_shape()) return ok();
  std::vector<std::string> sizes;
  for (const auto& dim : type.shape().dim())
    sizes.push_back(dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?");
  const auto fits = [](const std::string& said, int64_t size) {
    return said == "?" || said == std::to_string(size);
  };
  if (std::ranges::equal(sizes, tensor.shape, fits)) return ok();
  // Exporters lose count of axes of 1; what was inferred holds.
  graph::Shape wide = tensor.shape;
  std::vector<std::string> wide_sizes = sizes;
  std::erase(wide, 1);
  std::erase(wide_sizes, "1");
  if (std::ranges::equal(wide_sizes, wide, fits)) return ok();
  Error error{ErrorCode::kOnnxShape, "a declared shape contradicts the inferred one"};
  error.place = at(kind, proto.name());
  error.expected = graph::to_text(tensor.shape);
  error.found = fmt::format("[{}]", fmt::join(sizes, ","));
  return fail(error);
}

Result<int64_t> opset_of(const ModelProto& model, const Source& source) {
  int64_t opset = 0;
  for (const auto& import : model.opset_import()) {
    if (!is_default_domain(import.domain())) continue;  // refused where a node uses it
    if (opset != 0 && opset != import.version())
      return fail({ErrorCode::kOnnxOpset, "the default operator set is imported in two versions",
                   source.place});
    opset = import.version();
  }
  constexpr int64_t kFirstWithOpsets = 3;  // models before are of the first operator set
  if (opset == 0 && model.ir_version() < kFirstWithOpsets) opset = 1;
  WARPLOOM_CHECK(checked_opset(opset, source.place));
  return opset;
}

// What an importer learns of a growing model.
class Learner : public Knowledge {
 public:
  Learner(const ModelProto& model, const FlatModel& flat, const Source& source)
      : importer_(model, flat, source) {}

  Result<const Tensor*> tensor(const std::string& name) override { return importer_.learn(name); }

 private:
  Importer importer_;
};
}  // namespace

Status checked_opset(int64_t version, const std::string& place) {
  if (version >= kFirstOpset && version <= kLastOpset) return ok();
  Error error{ErrorCode::kOnnxOpset, "the model's operator set is not supported", place};
  error.expected = fmt::format("opset {} to {}", kFirstOpset, kLastOpset);
  error.found = version == 0 ? std::string("none named") : fmt::format("opset {}", version);
  error.remedy = "convert it (onnx.version_converter) or export it with another opset version";
  return fail(error);
}

Result<Graph> to_graph(const ModelProto& model, const Source& source, bool simplified) {
  WARPLOOM_TRY(const int64_t opset, opset_of(model, source));
  WARPLOOM_CHECK(all_dims_known(model, source));
  FlatModel flat;
  Learner learner(model, flat, source);
  WARPLOOM_CHECK(flatten(model, opset, source, flat, learner));
  Importer importer(model, flat, source);
  WARPLOOM_TRY(Graph inferred, importer.run());
  WARPLOOM_CHECK(importer.check_declared(inferred));
  if (!simplified) return inferred;
  return graph::simplify(std::move(inferred));
}
}  // namespace warploom::onnx_import
