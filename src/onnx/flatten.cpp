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
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
namespace {
using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;

constexpr size_t kMostNodes = 1 << 18;
constexpr size_t kDeepestCalls = 200;

using Names = std::map<std::string, std::string>;

struct FunctionKey {
  std::string domain;
  std::string name;
  std::string overload;
  friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;

  std::string text() const {
    const std::string before = domain.empty() ? "" : domain + ".";
    const std::string behind = overload.empty() ? "" : ":" + overload;
    return before + name + behind;
  }
};

std::string plain_domain(const std::string& domain) {
  return is_default_domain(domain) ? "" : domain;
}

// How a body's nodes are written where they are put: other names, and attributes in the place of
// references to the call's.
struct Renaming {
  Names names;
  const std::map<std::string, const AttributeProto*>* attributes = nullptr;
};

void rename_node(NodeProto& node, const Renaming& how);

std::string renamed(const std::string& name, const Names& names) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

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
    output.set_name(renamed(output.name(), how.names));
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

void rename_node(NodeProto& node, const Renaming& how) {
  for (std::string& input : *node.mutable_input())
    input = renamed(input, how.names);
  for (std::string& output : *node.mutable_output())
    output = renamed(output, how.names);
  replace_references(node, how);
  for_subgraphs(node, [&](GraphProto& graph) { rename_graph(graph, how); });
}

NodeProto identity(const std::string& from, const std::string& to) {
  NodeProto node;
  node.set_op_type("Identity");
  node.set_name(to);
  node.add_input(from);
  node.add_output(to);
  return node;
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

class Flattener {
 public:
  Flattener(const ModelProto& model, int64_t opset, const Source& source, const Known& known)
      : model_(model), opset_(opset), source_(source), known_(known) {
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
      names_.insert(node.input().begin(), node.input().end());
      names_.insert(node.output().begin(), node.output().end());
    }
    for (const auto& initializer : graph.initializer()) {
      names_.insert(initializer.name());
      flat_.initializers.push_back(&initializer);
    }
  }

  Result<FlatModel> run() {
    if (functions_.size() < as_size(model_.functions_size()))
      return fail({ErrorCode::kOnnxName, "two functions have one name", source_.place,
                   "one function of each domain, name and overload"});
    for (const auto& node : model_.graph().node())
      WARPLOOM_CHECK(add({node, opset_}));
    return std::move(flat_);
  }

 private:
  std::string at(const NodeProto& node) const {
    return fmt::format("{} ({})", place_of(source_, "node", name_of(node)), node.op_type());
  }

  std::string fresh(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 2; !names_.insert(name).second; ++i)
      name = fmt::format("{}/{}", wanted, i);
    return name;
  }

  Status add(VersionedNode node) {
    if (flat_.nodes.size() >= kMostNodes)
      return fail({ErrorCode::kOnnxTooLarge, "functions within functions come to too many nodes",
                   source_.place, fmt::format("at most {}", kMostNodes)});
    const NodeProto& proto = node.proto;
    const std::string domain = plain_domain(proto.domain());
    const FunctionKey key{domain, proto.op_type(), proto.overload()};
    if (const auto function = functions_.find(key); function != functions_.end())
      return call(node.proto, key, *function->second);
    if (key.domain.empty() && key.name == "If") return take_branch(node);
    const std::string place = at(node.proto);
    const auto fresh_name = [&](const std::string& name) { return fresh(name); };
    WARPLOOM_TRY(auto nodes, converted(std::move(node), fresh_name, place));
    std::ranges::move(nodes, std::back_inserter(flat_.nodes));
    return ok();
  }

  // What the call gives a function's attributes, or else the function itself.
  Result<std::map<std::string, const AttributeProto*>> attributes_of(
      const NodeProto& node, const FunctionProto& function) const {
    std::map<std::string, const AttributeProto*> attributes;
    const auto& without_default = function.attribute();
    std::vector<std::string> known(without_default.begin(), without_default.end());
    for (const auto& attribute : function.attribute_proto()) {
      attributes[attribute.name()] = &attribute;
      known.push_back(attribute.name());
    }
    for (const auto& attribute : node.attribute()) {
      if (!contains(known, attribute.name())) {
        Error error{ErrorCode::kOnnxAttribute};
        error.message = fmt::format("the function has no attribute {}", attribute.name());
        error.place = at(node);
        error.expected = known.empty() ? "no attributes" : listed(known);
        error.found = attribute.name();
        return fail(error);
      }
      attributes[attribute.name()] = &attribute;
    }
    return attributes;
  }

  Result<int64_t> opset_of(const FunctionProto& function) const {
    for (const auto& import : function.opset_import()) {
      if (!is_default_domain(import.domain())) continue;
      WARPLOOM_CHECK(
          checked_opset(import.version(), place_of(source_, "function", function.name())));
      return import.version();
    }
    return opset_;
  }

  Status check_call(const NodeProto& node, const FunctionKey& key,
                    const FunctionProto& function) const {
    if (contains(calls_, key) || calls_.size() >= kDeepestCalls) {
      Error error{ErrorCode::kOnnxCyclic, "a function calls itself", at(node)};
      error.expected = "functions that call only others";
      error.found = listed(calls_, &FunctionKey::text, " → ") + " → " + key.text();
      error.remedy = "write the recursion out, as ONNX has none";
      return fail(error);
    }
    const int inputs = function.input_size();
    const int outputs = function.output_size();
    if (node.input_size() <= inputs && node.output_size() <= outputs) return ok();
    Error error{ErrorCode::kOnnxName, "a call does not fit its function", at(node)};
    error.expected = fmt::format("at most {} inputs and {} outputs", inputs, outputs);
    error.found = fmt::format("{} and {}", node.input_size(), node.output_size());
    return fail(error);
  }

  // A new name for a tensor within a body, where it has none yet.
  void name_within(const std::string& prefix, const std::string& name, Renaming& how) {
    if (name.empty() || how.names.contains(name)) return;
    how.names[name] = fresh(prefix + "/" + name);
  }

  Status call(const NodeProto& node, const FunctionKey& key, const FunctionProto& function) {
    WARPLOOM_CHECK(check_call(node, key, function));
    WARPLOOM_TRY(const auto attributes, attributes_of(node, function));
    WARPLOOM_TRY(const int64_t opset, opset_of(function));
    const std::string prefix = name_of(node);
    Renaming how{{}, &attributes};
    for (int i = 0; i < function.input_size(); ++i) {
      const bool is_given = i < node.input_size();
      how.names[function.input(i)] = is_given ? node.input(i) : "";
    }
    std::vector<NodeProto> behind;
    for (int i = 0; i < node.output_size(); ++i) {
      const std::string& own = function.output(i);
      if (node.output(i).empty()) continue;
      const auto [known, added] = how.names.try_emplace(own, node.output(i));
      if (!added) behind.push_back(identity(known->second, node.output(i)));
    }
    for (const auto& inner : function.node())
      for (const std::string& name : inner.output())
        name_within(prefix, name, how);
    // A body sees nothing of what is around it: a name that it does not define is nobody's.
    for (const auto& inner : function.node())
      for (const std::string& name : inner.input())
        name_within(prefix, name, how);
    calls_.push_back(key);
    for (NodeProto inner : function.node()) {
      inner.set_name(prefix + "/" + name_of(inner));
      rename_node(inner, how);
      WARPLOOM_CHECK(add({std::move(inner), opset}));
    }
    calls_.pop_back();
    for (NodeProto& copy : behind)
      WARPLOOM_CHECK(add({std::move(copy), opset}));
    return ok();
  }

  Status take_branch(const VersionedNode& node) {
    const NodeProto& proto = node.proto;
    if (proto.input_size() != 1) {
      Error error{ErrorCode::kOnnxName, "wrong number of inputs", at(proto), "one condition"};
      error.found = std::to_string(proto.input_size());
      return fail(error);
    }
    WARPLOOM_TRY(const std::optional<bool> condition, known_(flat_, proto.input(0)));
    if (!condition) {
      Error error{ErrorCode::kOnnxUnknownOperator};
      error.message = "an If whose condition depends on the inputs is not supported";
      error.place = at(proto);
      error.expected = "a condition that the model itself decides";
      error.found = proto.input(0);
      error.remedy =
          "fix what decides it when the model is exported (sizes with --dim, flags as constants), "
          "or export the branch that is taken";
      return fail(error);
    }
    const std::string_view which = *condition ? "then_branch" : "else_branch";
    const AttributeProto* const branch = attribute_of(proto, which);
    if (branch == nullptr || !branch->has_g())
      return fail({ErrorCode::kOnnxAttribute, fmt::format("an If lacks its {}", which), at(proto),
                   "a graph"});
    return put_branch(node, branch->g());
  }

  // A branch sees the names around it; its own get new ones.
  Status put_branch(const VersionedNode& node, const GraphProto& branch) {
    const NodeProto& proto = node.proto;
    if (branch.output_size() != proto.output_size()) {
      Error error{ErrorCode::kOnnxName, "a branch makes another number of outputs than its If"};
      error.place = at(proto);
      error.expected = std::to_string(proto.output_size());
      error.found = std::to_string(branch.output_size());
      return fail(error);
    }
    const std::string prefix = name_of(proto);
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
    for (const std::string& name : made)
      name_within(prefix, name, how);
    for (const auto& initializer : branch.initializer()) {
      auto& own = flat_.own.emplace_back(initializer);
      const std::string name = fresh(prefix + "/" + initializer.name());
      how.names[initializer.name()] = name;
      own.set_name(name);
      flat_.initializers.push_back(&own);
    }
    for (NodeProto inner : branch.node()) {
      inner.set_name(prefix + "/" + name_of(inner));
      rename_node(inner, how);
      WARPLOOM_CHECK(add({std::move(inner), node.opset}));
    }
    for (const auto& [own, output] : copies)
      WARPLOOM_CHECK(add({identity(renamed(own, how.names), output), node.opset}));
    return ok();
  }

  const ModelProto& model_;
  int64_t opset_;
  const Source& source_;
  const Known& known_;
  std::map<FunctionKey, const FunctionProto*> functions_;
  std::set<std::string> names_;  // of tensors
  std::vector<FunctionKey> calls_;
  FlatModel flat_;
};
}  // namespace

Result<FlatModel> flattened(const ModelProto& model, int64_t opset, const Source& source,
                            const Known& known) {
  return Flattener(model, opset, source, known).run();
}
}  // namespace warploom::onnx_import
