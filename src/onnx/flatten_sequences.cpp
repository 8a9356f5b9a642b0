// Sequences and optionals: lists of names of tensors while a model is flattened, and nothing after.
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/flatten.h"
#include "onnx/flattener.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
namespace {
using onnx::AttributeProto;
using onnx::NodeProto;

constexpr int64_t kMostTensors = 1 << 14;

bool has_input(const NodeProto& node, int i) {
  return i < node.input_size() && !node.input(i).empty();
}
}  // namespace

// Operators of tensors that are given something else.
Status Flattener::refuse_bundles(const NodeProto& node) const {
  for (const std::string& input : node.input()) {
    const bool is_sequence = sequences_.contains(input);
    if (!is_sequence && !optionals_.contains(input)) continue;
    return refused(node, ErrorCode::kOnnxType, "an input is no tensor", "a dense tensor",
                   is_sequence ? "a sequence" : "an optional");
  }
  return ok();
}

Result<const Texts*> Flattener::sequence(const NodeProto& node, int input) const {
  if (!has_input(node, input))
    return refused(node, ErrorCode::kOnnxName, "a required input is left out", "a sequence",
                   "nothing");
  const auto known = sequences_.find(node.input(input));
  if (known != sequences_.end()) return &known->second;
  return refused(node, ErrorCode::kOnnxType, "a sequence is not known from the model",
                 "a sequence that nodes of the model make", node.input(input),
                 "give the model its tensors as inputs of their own");
}

// Which of `count` an input names, from the end where it is negative.
Result<size_t> Flattener::position(const NodeProto& node, int input, size_t count,
                                   bool may_be_end) {
  WARPLOOM_TRY(const auto known, integers(node.input(input)));
  if (!known || known->size() != 1)
    return undecided(node, "a place in a sequence that depends on the inputs is not supported",
                     node.input(input));
  const int64_t size = as_int64(count);
  const int64_t end = may_be_end ? size + 1 : size;
  const int64_t given = known->front();
  const int64_t place = given < 0 ? given + size : given;
  if (place >= 0 && place < end) return as_size(place);
  return refused(node, ErrorCode::kOnnxShape, "a place lies outside a sequence",
                 fmt::format("{} to {}", -size, end - 1), std::to_string(given));
}

Status Flattener::sequence_construct(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_CHECK(refuse_bundles(proto));
  if (proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "wrong number of outputs", "1",
                   std::to_string(proto.output_size()));
  sequences_[proto.output(0)] = {proto.input().begin(), proto.input().end()};
  return ok();
}

Status Flattener::sequence_at(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const Texts* const tensors, sequence(proto, 0));
  if (proto.input_size() != 2 || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "a SequenceAt has two inputs and one output",
                   "2 and 1", fmt::format("{} and {}", proto.input_size(), proto.output_size()));
  WARPLOOM_TRY(const size_t place, position(proto, 1, tensors->size(), false));
  return alias((*tensors)[place], proto.output(0));
}

Status Flattener::sequence_insert(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const Texts* const known, sequence(proto, 0));
  Texts tensors = *known;
  if (!has_input(proto, 1) || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "a SequenceInsert lacks its tensor or its output",
                   "a sequence and a tensor, one output",
                   fmt::format("{} and {}", proto.input_size(), proto.output_size()));
  size_t place = tensors.size();
  if (has_input(proto, 2)) {
    WARPLOOM_TRY(place, position(proto, 2, tensors.size(), true));
  }
  tensors.insert(tensors.begin() + as_int64(place), proto.input(1));
  sequences_[proto.output(0)] = std::move(tensors);
  return ok();
}

Status Flattener::sequence_erase(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const Texts* const known, sequence(proto, 0));
  Texts tensors = *known;
  if (tensors.empty() || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxShape, "there is nothing to erase",
                   "a sequence of 1 tensor or more, one output", std::to_string(tensors.size()));
  size_t place = tensors.size() - 1;
  if (has_input(proto, 1)) {
    WARPLOOM_TRY(place, position(proto, 1, tensors.size(), false));
  }
  tensors.erase(tensors.begin() + as_int64(place));
  sequences_[proto.output(0)] = std::move(tensors);
  return ok();
}

Status Flattener::sequence_length(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const Texts* const tensors, sequence(proto, 0));
  const std::vector count = {integer_attribute("value_int", as_int64(tensors->size()))};
  if (proto.output_size() == 1) return make_as(proto.output(0), "Constant", {}, count);
  return refused(proto, ErrorCode::kOnnxName, "wrong number of outputs", "1",
                 std::to_string(proto.output_size()));
}

// Of the parts of an axis: those that are given, or one size for all of them, else 1.
Result<std::vector<int64_t>> Flattener::split_sizes(const NodeProto& node, int64_t size) {
  int64_t each = 1;
  std::optional<std::vector<int64_t>> list;
  if (has_input(node, 1)) {
    WARPLOOM_TRY(const auto known, integers(node.input(1)));
    if (!known)
      return undecided(node,
                       "a SplitToSequence of sizes that depend on the inputs is not supported",
                       node.input(1));
    WARPLOOM_TRY(const graph::Shape form, shape(node, node.input(1)));
    if (form.empty())
      each = known->front();
    else
      list = known;
  }
  if (each < 1 || size / each > kMostTensors)
    return refused(node, ErrorCode::kOnnxShape, "an axis is split into parts of an unfit size",
                   fmt::format("1 or more, and at most {} parts", kMostTensors),
                   fmt::format("{} of {}", each, size));
  if (list) return *std::move(list);
  std::vector<int64_t> parts(as_size(ceil_div(size, each)), each);
  if (!parts.empty()) parts.back() = size - each * (as_int64(parts.size()) - 1);
  return parts;
}

// Parts of one step each, without the axis where keepdims is 0; or of the sizes given.
Status Flattener::split_to_sequence(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  if (!has_input(proto, 0) || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "a SplitToSequence has an input and one output",
                   "1 or 2, and 1",
                   fmt::format("{} and {}", proto.input_size(), proto.output_size()));
  WARPLOOM_CHECK(refuse_bundles(proto));
  const std::string& x = proto.input(0);
  WARPLOOM_TRY(const graph::Shape sizes, shape(proto, x));
  const int64_t given = integer_of(proto, "axis", 0);
  WARPLOOM_TRY(const int axis, graph::normalized_axis(given, sizes.size(), at(proto)));
  WARPLOOM_TRY(const std::vector<int64_t> parts, split_sizes(proto, sizes[as_size(axis)]));
  const bool keeps = has_input(proto, 1) || integer_of(proto, "keepdims", 1) != 0;
  NodeProto split;
  split.set_op_type("Split");
  split.set_name(name_of(proto));
  *split.add_attribute() = integer_attribute("axis", axis);
  const std::string prefix = proto.output(0);
  const std::vector lengths = {integers_attribute("value_ints", parts)};
  WARPLOOM_TRY(const std::string list, make("Constant", {}, prefix + "/parts", lengths));
  split.add_input(x);
  split.add_input(list);
  Texts tensors;
  for (size_t i = 0; i < parts.size(); ++i)
    tensors.push_back(fresh(fmt::format("{}/part{}", prefix, i)));
  for (const std::string& tensor : tensors)
    split.add_output(tensor);
  if (!parts.empty()) WARPLOOM_CHECK(add({std::move(split), 13}));
  if (!keeps && !parts.empty()) {
    const std::vector on = {integers_attribute("value_ints", {axis})};
    WARPLOOM_TRY(const std::string axes, make("Constant", {}, prefix + "/axis", on));
    for (std::string& tensor : tensors) {
      WARPLOOM_TRY(tensor, make("Squeeze", {tensor, axes}, tensor + "/squeezed"));
    }
  }
  sequences_[proto.output(0)] = std::move(tensors);
  return ok();
}

Status Flattener::concat_from_sequence(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const Texts* const tensors, sequence(proto, 0));
  if (tensors->empty())
    return refused(proto, ErrorCode::kOnnxShape, "a sequence of no tensors is joined",
                   "1 tensor or more", "none");
  if (attribute_of(proto, "axis") == nullptr || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxAttribute, "a ConcatFromSequence lacks its axis", "axis",
                   "none");
  const bool stacked = integer_of(proto, "new_axis", 0) != 0;
  WARPLOOM_TRY(const std::string all,
               joined(proto, *tensors, integer_of(proto, "axis", 0), stacked));
  return alias(all, proto.output(0));
}

Status Flattener::optional(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  if (proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "wrong number of outputs", "1",
                   std::to_string(proto.output_size()));
  auto& held = optionals_[proto.output(0)];
  held = has_input(proto, 0) ? std::optional(proto.input(0)) : std::nullopt;
  return ok();
}

// Tensors and sequences that are none are as good as optionals that hold them.
Status Flattener::optional_has_element(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  if (proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "wrong number of outputs", "1",
                   std::to_string(proto.output_size()));
  bool has = has_input(proto, 0);
  if (has)
    if (const auto known = optionals_.find(proto.input(0)); known != optionals_.end())
      has = known->second.has_value();
  AttributeProto value;
  value.set_name("value");
  value.set_type(AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::BOOL);
  value.mutable_t()->add_int32_data(has ? 1 : 0);
  return make_as(proto.output(0), "Constant", {}, {value});
}

Status Flattener::optional_get_element(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  if (!has_input(proto, 0) || proto.output_size() != 1)
    return refused(proto, ErrorCode::kOnnxName, "an OptionalGetElement has one input and output",
                   "1 and 1", fmt::format("{} and {}", proto.input_size(), proto.output_size()));
  const auto known = optionals_.find(proto.input(0));
  if (known == optionals_.end()) return alias(proto.input(0), proto.output(0));
  if (known->second) return alias(*known->second, proto.output(0));
  return refused(proto, ErrorCode::kOnnxType, "an optional that holds nothing is read",
                 "one that holds something", proto.input(0));
}
}  // namespace warploom::onnx_import
