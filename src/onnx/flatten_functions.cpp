// Calls of functions of the model: the function's body with the call's names and attributes.
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rows.h"
#include "onnx/flattener.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
using onnx::AttributeProto;
using onnx::FunctionProto;
using onnx::NodeProto;

namespace {
constexpr size_t kDeepestCalls = 200;
}  // namespace

// What the call gives a function's attributes, or else the function itself.
Result<std::map<std::string, const AttributeProto*>> Flattener::attributes_of(
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

Result<int64_t> Flattener::opset_of(const FunctionProto& function) const {
  for (const auto& import : function.opset_import()) {
    if (!is_default_domain(import.domain())) continue;
    WARPLOOM_CHECK(checked_opset(import.version(), place_of(source_, "function", function.name())));
    return import.version();
  }
  return opset_;
}

Status Flattener::check_call(const NodeProto& node, const FunctionKey& key,
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
void Flattener::name_within(const std::string& prefix, const std::string& name, Renaming& how) {
  if (name.empty() || how.names.contains(name)) return;
  how.names[name] = fresh(prefix + "/" + name);
}

Status Flattener::call(const NodeProto& node, const FunctionKey& key,
                       const FunctionProto& function) {
  WARPLOOM_CHECK(check_call(node, key, function));
  WARPLOOM_CHECK(count_work());
  WARPLOOM_TRY(const auto attributes, attributes_of(node, function));
  WARPLOOM_TRY(const int64_t opset, opset_of(function));
  const std::string prefix = name_of(node);
  Renaming how{{}, &attributes};
  for (int i = 0; i < function.input_size(); ++i) {
    const bool is_given = i < node.input_size();
    how.names[function.input(i)] = is_given ? node.input(i) : "";
  }
  std::vector<std::pair<std::string, std::string>> copies;
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& own = function.output(i);
    if (node.output(i).empty()) continue;
    const auto [known, added] = how.names.try_emplace(own, node.output(i));
    if (!added) copies.emplace_back(known->second, node.output(i));
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
  for (const auto& [own, output] : copies)
    WARPLOOM_CHECK(alias(own, output));
  return ok();
}
}  // namespace warploom::onnx_import
