#include "onnx/flatten.h"
#include <fmt/format.h>
#include <google/protobuf/repeated_ptr_field.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "graph/graph.h"
#include "onnx/flattener.h"
#include "onnx/model.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
using graph::Tensor;
using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;

namespace {
constexpr size_t kMostNodes = 1 << 18;
constexpr int64_t kMostWork = 1 << 20;
constexpr size_t kMostParts = 32;  // of one Concat: each is an argument of a kernel

// Names that a graph defines itself are its own; the others are those around it.
void rename_graph(GraphProto& graph, Renaming how) {
  for (const auto& input : graph.input())
    how.names.erase(input.name());
  for (const auto& initializer : graph.initializer())
    how.names.erase(initializer.name());
  for (const auto& node : graph.node())
    for (const std::string& output : node.output())
      how.names.erase(output);
  for (auto& node : *graph.mutable_node())
    rename_node(node, how);
  for (auto& output : *graph.mutable_output())
    output.set_name(how.of(output.name()));
}

// Those that refer to an attribute of the call become that attribute under their own name, or go.
void replace_references(NodeProto& node, const Renaming& how) {
  if (how.attributes == nullptr) return;
  google::protobuf::RepeatedPtrField<AttributeProto> kept;
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *kept.Add() = std::move(attribute);
      continue;
    }
    const auto given = how.attributes->find(attribute.ref_attr_name());
    if (given == how.attributes->end()) continue;
    AttributeProto& own = *kept.Add();
    own = *given->second;
    own.set_name(attribute.name());
  }
  node.mutable_attribute()->Swap(&kept);
}

// The node and those of graphs within it, which are copied with it.
int64_t nodes_of(const NodeProto& node) {
  int64_t count = 1;
  for_subgraphs(node, [&](const GraphProto& graph) {
    for (const auto& inner : graph.node())
      count += nodes_of(inner);
  });
  return count;
}
}  // namespace

void rename_node(NodeProto& node, const Renaming& how) {
  for (std::string& input : *node.mutable_input())
    input = how.of(input);
  for (std::string& output : *node.mutable_output())
    output = how.of(output);
  replace_references(node, how);
  for_subgraphs(node, [&](GraphProto& graph) { rename_graph(graph, how); });
}

std::string plain_domain(const std::string& domain) {
  return is_default_domain(domain) ? "" : domain;
}

std::string FunctionKey::text() const {
  const std::string before = domain.empty() ? "" : domain + ".";
  const std::string behind = overload.empty() ? "" : ":" + overload;
  return before + name + behind;
}

std::string Renaming::of(const std::string& name) const {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

std::string name_of(const NodeProto& node) {
  if (!node.name().empty()) return node.name();
  const bool has_output = node.output_size() > 0 && !node.output(0).empty();
  return has_output ? node.output(0) : node.op_type();
}

const AttributeProto* attribute_of(const NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

int64_t integer_of(const NodeProto& node, std::string_view name, int64_t otherwise) {
  const AttributeProto* const found = attribute_of(node, name);
  return found == nullptr ? otherwise : found->i();
}

std::vector<int64_t> integers_of(const NodeProto& node, std::string_view name) {
  const AttributeProto* const found = attribute_of(node, name);
  if (found == nullptr) return {};
  return {found->ints().begin(), found->ints().end()};
}

const Flattener::OwnNode Flattener::kOwnNodes[] = {
    {"If", &Flattener::take_branch},
    {"Loop", &Flattener::unroll_loop},
    {"Scan", &Flattener::unroll_scan},
    {"SequenceMap", &Flattener::map_sequence},
    {"SequenceConstruct", &Flattener::sequence_construct},
    {"SequenceEmpty", &Flattener::sequence_construct},
    {"SequenceAt", &Flattener::sequence_at},
    {"SequenceInsert", &Flattener::sequence_insert},
    {"SequenceErase", &Flattener::sequence_erase},
    {"SequenceLength", &Flattener::sequence_length},
    {"SplitToSequence", &Flattener::split_to_sequence},
    {"ConcatFromSequence", &Flattener::concat_from_sequence},
    {"Optional", &Flattener::optional},
    {"OptionalHasElement", &Flattener::optional_has_element},
    {"OptionalGetElement", &Flattener::optional_get_element},
};

Flattener::Flattener(const ModelProto& model, int64_t opset, const Source& source, FlatModel& flat,
                     Knowledge& known)
    : model_(model), opset_(opset), source_(source), flat_(flat), known_(known) {
  for (const auto& function : model.functions()) {
    const std::string domain = plain_domain(function.domain());
    functions_.emplace(FunctionKey{domain, function.name(), function.overload()}, &function);
  }
  const GraphProto& graph = model.graph();
  for (const auto& input : graph.input())
    names_.insert(input.name());
  for (const auto& output : graph.output())
    names_.insert(output.name());
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input())
      names_.insert(input);
    for (const std::string& output : node.output())
      names_.insert(output);
  }
  for (const auto& initializer : graph.initializer()) {
    names_.insert(initializer.name());
    flat_.initializers.push_back(&initializer);
  }
}

Status Flattener::run() {
  if (functions_.size() < as_size(model_.functions_size()))
    return fail({ErrorCode::kOnnxName, "two functions have one name", source_.place,
                 "one function of each domain, name and overload"});
  for (const auto& node : model_.graph().node())
    WARPLOOM_CHECK(add({node, opset_}));
  for (const auto& output : model_.graph().output()) {
    const bool is_bundle = sequences_.contains(output.name()) || optionals_.contains(output.name());
    if (!is_bundle) continue;
    Error error{ErrorCode::kOnnxType, "an output is no tensor"};
    error.place = place_of(source_, "output", output.name());
    error.expected = "a dense tensor";
    error.found = sequences_.contains(output.name()) ? "a sequence" : "an optional";
    error.remedy = "give its tensors back as outputs of their own";
    return fail(error);
  }
  return ok();
}

std::string Flattener::at(const NodeProto& node) const {
  return fmt::format("{} ({})", place_of(source_, "node", name_of(node)), node.op_type());
}

Status Flattener::count_work(int64_t steps) {
  work_ += steps;
  if (work_ <= kMostWork) return ok();
  return fail({ErrorCode::kOnnxTooLarge,
               "functions within functions, or the steps of loops, come to too much work",
               source_.place, fmt::format("at most {} nodes and bodies", kMostWork)});
}

tl::unexpected<Error> Flattener::refused(const NodeProto& node, ErrorCode code, std::string message,
                                         std::string expected, std::string found,
                                         std::string remedy) const {
  Error error{code, std::move(message), at(node)};
  error.expected = std::move(expected);
  error.found = std::move(found);
  error.remedy = std::move(remedy);
  return fail(error);
}

tl::unexpected<Error> Flattener::undecided(const NodeProto& node, std::string message,
                                           const std::string& name) const {
  return refused(node, ErrorCode::kOnnxUnknownOperator, std::move(message),
                 "what the model itself decides", name,
                 "fix what decides it when the model is exported (sizes with --dim, flags and "
                 "counts as constants), or export what is computed with them as plain nodes");
}

Result<std::optional<std::vector<int64_t>>> Flattener::integers(const std::string& name) {
  WARPLOOM_TRY(const Tensor* const tensor, known_.tensor(name));
  if (tensor == nullptr || !tensor->constant || is_float(tensor->dtype)) return std::nullopt;
  std::vector<int64_t> values(as_size(graph::element_count(tensor->shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* const data = tensor->constant->data();
    if (is_integer(tensor->dtype))
      values[i] = load_integer(tensor->dtype, data, as_int64(i));
    else
      values[i] = as_int64(load_as_double(tensor->dtype, data, i));
  }
  return values;
}

Result<std::optional<bool>> Flattener::truth(const std::string& name) {
  WARPLOOM_TRY(const Tensor* const tensor, known_.tensor(name));
  if (tensor == nullptr || !tensor->constant) return std::nullopt;
  if (graph::element_count(tensor->shape) != 1) return std::nullopt;
  return load_as_double(tensor->dtype, tensor->constant->data(), 0) != 0;
}

Result<graph::Shape> Flattener::shape(const NodeProto& of, const std::string& name) {
  WARPLOOM_TRY(const Tensor* const tensor, known_.tensor(name));
  if (tensor != nullptr) return tensor->shape;
  return refused(of, ErrorCode::kOnnxName, "a tensor is used that nothing before defines",
                 "an input, an initializer or an earlier node's output", name);
}

Status Flattener::add(VersionedNode node) {
  WARPLOOM_CHECK(count_work(nodes_of(node.proto)));
  if (flat_.nodes.size() >= kMostNodes)
    return fail({ErrorCode::kOnnxTooLarge,
                 "functions within functions, or the steps of loops, come to too many nodes",
                 source_.place, fmt::format("at most {}", kMostNodes)});
  const NodeProto& proto = node.proto;
  const std::string domain = plain_domain(proto.domain());
  const FunctionKey key{domain, proto.op_type(), proto.overload()};
  if (const auto function = functions_.find(key); function != functions_.end())
    return call(node.proto, key, *function->second);
  if (key.domain.empty()) {
    const auto* const own = std::ranges::find(kOwnNodes, key.name, &OwnNode::op);
    if (own != std::end(kOwnNodes)) return (this->*own->work)(node);
    const bool is_alias = key.name == "Identity" && proto.input_size() == 1;
    if (is_alias && proto.output_size() == 1) {
      const std::string& from = proto.input(0);
      if (sequences_.contains(from) || optionals_.contains(from))
        return alias(from, proto.output(0));
    }
  }
  WARPLOOM_CHECK(refuse_bundles(proto));
  const std::string place = at(node.proto);
  const auto fresh_name = [&](const std::string& name) { return fresh(name); };
  WARPLOOM_TRY(auto nodes, converted(std::move(node), fresh_name, place, known_));
  std::ranges::move(nodes, std::back_inserter(flat_.nodes));
  return ok();
}

Status Flattener::make_as(const std::string& output, std::string_view op, const Texts& inputs,
                          const std::vector<AttributeProto>& attributes) {
  NodeProto node;
  node.set_op_type(std::string(op));
  node.set_name(output);
  for (const std::string& input : inputs)
    node.add_input(input);
  node.add_output(output);
  for (const AttributeProto& attribute : attributes)
    *node.add_attribute() = attribute;
  return add({std::move(node), kHelper});
}

Result<std::string> Flattener::make(std::string_view op, const Texts& inputs,
                                    const std::string& wanted,
                                    const std::vector<AttributeProto>& attributes) {
  const std::string name = fresh(wanted);
  WARPLOOM_CHECK(make_as(name, op, inputs, attributes));
  return name;
}

Result<std::string> Flattener::joined(const NodeProto& of, Texts parts, int64_t axis,
                                      bool stacked) {
  const std::string prefix = name_of(of) + "/joined";
  if (stacked) {
    const std::vector attributes = {integers_attribute("value_ints", {axis})};
    WARPLOOM_TRY(const std::string on, make("Constant", {}, prefix + "/axis", attributes));
    for (size_t i = 0; i < parts.size(); ++i) {
      WARPLOOM_TRY(parts[i],
                   make("Unsqueeze", {parts[i], on}, fmt::format("{}/part{}", prefix, i)));
    }
  }
  for (int level = 0; parts.size() > 1; ++level) {
    Texts longer;
    for (size_t i = 0; i < parts.size(); i += kMostParts) {
      const auto begin = parts.begin() + as_int64(i);
      const auto end = begin + as_int64(std::min(kMostParts, parts.size() - i));
      const std::string name = fmt::format("{}/{}_{}", prefix, level, i / kMostParts);
      const Texts few(begin, end);
      WARPLOOM_TRY(std::string one, make("Concat", few, name, {integer_attribute("axis", axis)}));
      longer.push_back(std::move(one));
    }
    parts = std::move(longer);
  }
  return parts[0];
}

Status Flattener::alias(const std::string& from, const std::string& to) {
  if (to.empty()) return ok();
  if (const auto known = sequences_.find(from); known != sequences_.end()) {
    const Texts tensors = known->second;
    sequences_[to] = tensors;
    return ok();
  }
  if (const auto known = optionals_.find(from); known != optionals_.end()) {
    const auto held = known->second;
    optionals_[to] = held;
    return ok();
  }
  return make_as(to, "Identity", {from});
}

Result<const GraphProto*> Flattener::body_of(const NodeProto& node, std::string_view name) const {
  const AttributeProto* const found = attribute_of(node, name);
  if (found != nullptr && found->has_g()) return &found->g();
  return refused(node, ErrorCode::kOnnxAttribute, fmt::format("the {} of a node is missing", name),
                 "a graph", "none");
}

Status Flattener::take_branch(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  if (proto.input_size() != 1) {
    Error error{ErrorCode::kOnnxName, "wrong number of inputs", at(proto), "one condition"};
    error.found = std::to_string(proto.input_size());
    return fail(error);
  }
  WARPLOOM_TRY(const std::optional<bool> condition, truth(proto.input(0)));
  if (!condition)
    return undecided(proto, "an If whose condition depends on the inputs is not supported",
                     proto.input(0));
  WARPLOOM_TRY(const GraphProto* const branch,
               body_of(proto, *condition ? "then_branch" : "else_branch"));
  return put_branch(node, *branch);
}

// A branch sees the names around it; its own get new ones.
Status Flattener::put_branch(const VersionedNode& node, const GraphProto& branch) {
  const NodeProto& proto = node.proto;
  if (branch.output_size() != proto.output_size()) {
    Error error{ErrorCode::kOnnxName, "a branch makes another number of outputs than its If"};
    error.place = at(proto);
    error.expected = std::to_string(proto.output_size());
    error.found = std::to_string(branch.output_size());
    return fail(error);
  }
  std::set<std::string> made;  // by nodes of the branch
  for (const auto& inner : branch.node())
    made.insert(inner.output().begin(), inner.output().end());
  Renaming how;
  std::vector<std::pair<std::string, std::string>> copies;
  for (int i = 0; i < branch.output_size(); ++i) {
    const std::string& own = branch.output(i).name();
    if (proto.output(i).empty()) continue;
    const bool is_free = made.contains(own) && !how.names.contains(own);
    if (is_free)
      how.names.emplace(own, proto.output(i));
    else
      copies.emplace_back(own, proto.output(i));
  }
  WARPLOOM_CHECK(put_nodes(name_of(proto), branch, node.opset, how));
  for (const auto& [own, output] : copies)
    WARPLOOM_CHECK(alias(how.of(own), output));
  return ok();
}

// `how` says what the graph's inputs and, where that is settled, its outputs are called.
Status Flattener::put_nodes(const std::string& prefix, const GraphProto& graph, int64_t opset,
                            Renaming& how) {
  WARPLOOM_CHECK(count_work(1 + graph.initializer_size()));
  for (const auto& inner : graph.node())
    for (const std::string& name : inner.output())
      name_within(prefix, name, how);
  for (const auto& initializer : graph.initializer()) {
    auto& own = flat_.own.emplace_back(initializer);
    const std::string name = fresh(prefix + "/" + initializer.name());
    how.names[initializer.name()] = name;
    own.set_name(name);
    flat_.initializers.push_back(&own);
  }
  for (NodeProto inner : graph.node()) {
    inner.set_name(prefix + "/" + name_of(inner));
    rename_node(inner, how);
    WARPLOOM_CHECK(add({std::move(inner), opset}));
  }
  return ok();
}

Result<Texts> Flattener::put_body(const VersionedNode& node, const GraphProto& body,
                                  const std::string& prefix, const Texts& inputs) {
  Renaming how;
  for (int i = 0; i < body.input_size(); ++i)
    how.names[body.input(i).name()] = inputs[as_size(i)];
  WARPLOOM_CHECK(put_nodes(prefix, body, node.opset, how));
  Texts outputs;
  for (const auto& output : body.output())
    outputs.push_back(how.of(output.name()));
  return outputs;
}

Status flatten(const ModelProto& model, int64_t opset, const Source& source, FlatModel& flat,
               Knowledge& known) {
  return Flattener(model, opset, source, flat, known).run();
}
}  // namespace warploom::onnx_import
