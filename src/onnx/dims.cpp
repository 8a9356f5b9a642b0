// Dimensions that a model leaves open, and sizes for them.
//
//   input x [batch, 3, ?]     --dim batch=4 --dim x.2=224     →     x [4, 3, 224]
//
// A dimension with a name has one size wherever the name stands; one without is named by its input
// and its axis.
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include "base/error.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "onnx/model.h"

namespace warploom::onnx_import {
namespace {
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::ValueInfoProto;
using Dim = onnx::TensorShapeProto::Dimension;

bool is_open(const Dim& dim) {
  return !dim.has_dim_value() || dim.dim_value() < 0;
}

// The inputs of a model that are to be given: a default value has a shape.
std::vector<const ValueInfoProto*> given_inputs(const GraphProto& graph) {
  std::set<std::string> constants;
  for (const auto& initializer : graph.initializer())
    constants.insert(initializer.name());
  std::vector<const ValueInfoProto*> inputs;
  for (const auto& input : graph.input())
    if (input.type().has_tensor_type() && !constants.contains(input.name()))
      inputs.push_back(&input);
  return inputs;
}

std::string place_name(const ValueInfoProto& input, int axis) {
  return fmt::format("{}.{}", input.name(), axis);
}

// What --dim calls an open dimension.
std::string name_of(const ValueInfoProto& input, int axis) {
  const Dim& dim = input.type().tensor_type().shape().dim(axis);
  const bool is_named = dim.has_dim_param() && !dim.dim_param().empty();
  return is_named ? dim.dim_param() : place_name(input, axis);
}

// The names of all open dimensions, each once, in the order of the inputs.
std::vector<std::string> open_dims(const GraphProto& graph) {
  std::vector<std::string> names;
  for (const ValueInfoProto* input : given_inputs(graph)) {
    const auto& shape = input->type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      if (!is_open(shape.dim(axis))) continue;
      const std::string name = name_of(*input, axis);
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

void set_named(ValueInfoProto& value, const std::string& name, int64_t size) {
  if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) return;
  for (Dim& dim : *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
    if (dim.dim_param() == name && is_open(dim)) dim.set_dim_value(size);
}

void set_everywhere(GraphProto& graph, const std::string& name, int64_t size) {
  for (auto* values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (ValueInfoProto& value : *values)
      set_named(value, name, size);
  for (onnx::NodeProto& node : *graph.mutable_node())
    for_subgraphs(node, [&](GraphProto& inner) { set_everywhere(inner, name, size); });
}

void set_at(GraphProto& graph, const std::string& name, int64_t size) {
  for (ValueInfoProto& input : *graph.mutable_input()) {
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis)
      if (is_open(shape.dim(axis)) && place_name(input, axis) == name)
        shape.mutable_dim(axis)->set_dim_value(size);
  }
}

std::string plain_or_quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    constexpr std::string_view kPlain = "_.:/-";
    const bool is_mark = kPlain.find(static_cast<char>(c)) != kPlain.npos;
    return std::isalnum(c) != 0 || is_mark;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string flags_for(const std::vector<std::string>& names) {
  const auto flag = [](const std::string& name) {
    return fmt::format("--dim {}=SIZE", plain_or_quoted(name));
  };
  return listed(names, flag, " ");
}

struct Binding {
  std::string name;
  int64_t size = 0;
};

Result<Binding> binding_of(const std::string& said) {
  const size_t sign = said.rfind('=');
  Binding binding{said.substr(0, sign), -1};
  const std::string digits = sign == std::string::npos ? "" : said.substr(sign + 1);
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, binding.size);
  const bool is_number = !digits.empty() && stopped == end && error == std::errc{};
  if (!binding.name.empty() && is_number && binding.size >= 0) return binding;
  Error wrong{ErrorCode::kUsage, "a dimension's size cannot be read", "--dim " + said};
  wrong.expected = "NAME=SIZE or INPUT.AXIS=SIZE, with a whole number of 0 or more";
  wrong.found = said;
  wrong.remedy = "name a dimension and its size: --dim batch=4";
  return fail(wrong);
}

Error no_such_dim(const std::string& said, const std::string& name,
                  const std::vector<std::string>& open) {
  if (open.empty())
    return {ErrorCode::kUsage,
            "the model leaves no dimension open",
            "--dim " + said,
            "a model with a dimension of no fixed size",
            name,
            "leave out --dim"};
  Error error{ErrorCode::kUsage, "the model has no open dimension of that name"};
  error.place = "--dim " + said;
  error.expected = "one of " + listed(open);
  error.found = name;
  error.remedy = did_you_mean(name, open, "say: " + flags_for(open));
  return error;
}
}  // namespace

Status bind_dims(ModelProto& model, const std::vector<std::string>& sizes) {
  GraphProto& graph = *model.mutable_graph();
  const auto open = open_dims(graph);
  // By place, also those that have a name: "x.0" may be "batch".
  std::map<std::string, std::string> named;
  for (const ValueInfoProto* input : given_inputs(graph)) {
    const auto& shape = input->type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis)
      if (is_open(shape.dim(axis))) named.emplace(place_name(*input, axis), name_of(*input, axis));
  }
  std::map<std::string, int64_t> bound;
  for (const std::string& said : sizes) {
    WARPLOOM_TRY(const Binding binding, binding_of(said));
    const auto place = named.find(binding.name);
    const bool is_name = contains(open, binding.name);
    if (!is_name && place == named.end()) return fail(no_such_dim(said, binding.name, open));
    const std::string& name = is_name ? binding.name : place->second;
    const auto [known, added] = bound.try_emplace(name, binding.size);
    if (!added && known->second != binding.size) {
      Error error{ErrorCode::kFlagsContradict, "a dimension is given two sizes"};
      error.place = "--dim " + said;
      error.expected = std::to_string(known->second);
      error.found = std::to_string(binding.size);
      error.remedy = "give it one";
      return fail(error);
    }
    set_everywhere(graph, name, binding.size);
    set_at(graph, name, binding.size);
  }
  return ok();
}

Status all_dims_known(const ModelProto& model, const Source& source) {
  const auto open = open_dims(model.graph());
  if (open.empty()) return ok();
  for (const ValueInfoProto* input : given_inputs(model.graph())) {
    const auto& shape = input->type().tensor_type().shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      if (!is_open(shape.dim(axis))) continue;
      const bool one = open.size() == 1;
      Error error{ErrorCode::kOnnxDynamicShape};
      error.message = one ? "a dimension has no fixed size" : "dimensions have no fixed size";
      error.place = place_of(source, "input", input->name());
      error.expected = "a size for " + listed(open);
      error.found = fmt::format("'{}' for axis {}", name_of(*input, axis), axis);
      error.remedy = fmt::format("give {}: {}", one ? "it" : "them", flags_for(open));
      return fail(error);
    }
  }
  return ok();
}
}  // namespace warploom::onnx_import
