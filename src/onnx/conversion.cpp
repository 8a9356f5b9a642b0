// Operators of older operator sets. Where 13 says the same in another form, nodes are rewritten:
//
//   Unsqueeze(x) axes=[0]          →   Unsqueeze(x, [0])
//   Softmax(x) axis=1 (until 12)   →   Reshape(Softmax(Flatten(x) axis=1) axis=-1, Shape(x))
//   Clip(x) max=6                  →   Clip(x, , CastLike(6, x))
//
// What has kept its form is left alone: the importer takes it as one of 13.
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "onnx/flatten.h"
#include "onnx/model.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
namespace {
using onnx::NodeProto;

constexpr int64_t kPresent = 13;  // the operator set that converted nodes are of

// All from `axis` on, which is 1 where nothing is said, is one row.
Status flatten_rows(Rewriting& rewriting) {
  const auto axis = rewriting.take("axis");
  if (rewriting.node.input_size() < 1 || rewriting.node.output_size() < 1)
    return ok();  // refused by and by
  const std::string x = rewriting.node.input(0);
  const int64_t first = axis ? axis->i() : 1;
  *rewriting.node.add_attribute() = integer_attribute("axis", -1);
  if (first == -1) return ok();
  const std::vector attributes = {integer_attribute("axis", first)};
  const std::string rows = rewriting.make("Flatten", {x}, "rows", attributes);
  rewriting.node.set_input(0, rows);
  const std::string shape = rewriting.make("Shape", {x}, "shape");
  rewriting.finish("Reshape", {shape});
  return ok();
}

Status axes_as_input(Rewriting& rewriting) {
  if (const auto axes = rewriting.take("axes"))
    rewriting.set_input(1, rewriting.constant(*axes, "axes"));
  return ok();
}

Status split_as_input(Rewriting& rewriting) {
  if (const auto split = rewriting.take("split"))
    rewriting.set_input(1, rewriting.constant(*split, "split"));
  return ok();
}

// Bounds of the type of what is clipped; one that is not given is none.
Status bounds_as_inputs(Rewriting& rewriting) {
  for (const auto& [name, place] : {std::pair("min", 1), std::pair("max", 2)}) {
    const auto bound = rewriting.take(name);
    if (!bound || rewriting.node.input_size() < 1) continue;
    const std::string number = rewriting.constant(*bound, name);
    const std::string& clipped = rewriting.node.input(0);
    const std::string what = std::string(name) + "_bound";
    rewriting.set_input(place, rewriting.make("CastLike", {number, clipped}, what));
  }
  return ok();
}

Status pads_as_inputs(Rewriting& rewriting) {
  if (const auto pads = rewriting.take("pads"))
    rewriting.set_input(1, rewriting.constant(*pads, "pads"));
  const auto value = rewriting.take("value");
  if (!value || rewriting.node.input_size() < 1) return ok();
  const std::string number = rewriting.constant(*value, "number");
  const std::string& padded = rewriting.node.input(0);
  rewriting.set_input(2, rewriting.make("CastLike", {number, padded}, "fill"));
  return ok();
}

Status ends_as_inputs(Rewriting& rewriting) {
  int place = 1;
  for (const char* name : {"starts", "ends", "axes"}) {
    if (const auto list = rewriting.take(name))
      rewriting.set_input(place, rewriting.constant(*list, name));
    ++place;
  }
  return ok();
}

// Upsample and the first Resize look at index i / scale, rounded down for `nearest`.
Status sizes_as_resize(Rewriting& rewriting) {
  rewriting.node.set_op_type("Resize");
  if (const auto scales = rewriting.take("scales")) {
    rewriting.set_input(2, rewriting.constant(*scales, "scales"));
  } else if (rewriting.node.input_size() == 2) {
    const std::string given = rewriting.node.input(1);
    rewriting.set_input(2, given);
  }
  if (rewriting.node.input_size() > 1)
    rewriting.node.set_input(1, "");  // a region, which there was none of
  *rewriting.node.add_attribute() = text_attribute("coordinate_transformation_mode", "asymmetric");
  *rewriting.node.add_attribute() = text_attribute("nearest_mode", "floor");
  return ok();
}

// With statistics of its own for each element of an input: arithmetic of a few operators.
Status spatial_statistics(Rewriting& rewriting) {
  const auto spatial = rewriting.take("spatial");
  NodeProto& node = rewriting.node;
  if (!spatial || spatial->i() != 0 || node.input_size() != 5) return ok();
  auto epsilon = rewriting.take("epsilon");
  if (!epsilon) {
    epsilon.emplace();
    epsilon->set_type(onnx::AttributeProto::FLOAT);
    epsilon->set_f(1e-5F);
  }
  const std::string& x = node.input(0);
  const std::string number = rewriting.constant(*epsilon, "number");
  const std::string small = rewriting.make("CastLike", {number, x}, "epsilon");
  const std::string apart = rewriting.make("Sub", {x, node.input(3)}, "apart");
  const std::string moved = rewriting.make("Add", {node.input(4), small}, "moved");
  const std::string deviation = rewriting.make("Sqrt", {moved}, "deviation");
  const std::string normal = rewriting.make("Div", {apart, deviation}, "normal");
  const std::string scaled = rewriting.make("Mul", {normal, node.input(1)}, "scaled");
  const std::string shift = node.input(2);
  node.set_op_type("Add");
  node.clear_attribute();
  node.clear_input();
  node.add_input(scaled);
  node.add_input(shift);
  return ok();
}

// The mask was of the type of what is dropped.
Status mask_like_input(Rewriting& rewriting) {
  const bool has_mask = rewriting.node.output_size() == 2 && !rewriting.node.output(1).empty();
  if (has_mask && rewriting.node.input_size() > 0)
    rewriting.finish("CastLike", {rewriting.node.input(0)}, 1);
  return ok();
}

Status as_scatter_elements(Rewriting& rewriting) {
  rewriting.node.set_op_type("ScatterElements");
  return ok();
}

Status without_ratio(Rewriting& rewriting) {
  rewriting.take("ratio");  // which says something in training alone
  return ok();
}

// Y, where only the last states are wanted.
Status name_states(Rewriting& rewriting) {
  NodeProto& node = rewriting.node;
  if (node.output_size() > 1 && node.output(0).empty()) node.set_output(0, rewriting.name("Y"));
  rewriting.take("output_sequence");  // of the first operator sets
  return ok();
}

constexpr Change kChanges[] = {
    {"Softmax", 12, flatten_rows},    {"LogSoftmax", 12, flatten_rows},
    {"Hardmax", 12, flatten_rows},    {"Squeeze", 12, axes_as_input},
    {"Unsqueeze", 12, axes_as_input}, {"Split", 12, split_as_input},
    {"Clip", 10, bounds_as_inputs},   {"Pad", 10, pads_as_inputs},
    {"Slice", 9, ends_as_inputs},     {"Upsample", 9, sizes_as_resize},
    {"Resize", 10, sizes_as_resize},  {"BatchNormalization", 8, spatial_statistics},
    {"Dropout", 11, without_ratio},   {"RNN", kAlways, name_states},
    {"GRU", kAlways, name_states},    {"LSTM", kAlways, name_states},
    {"Dropout", 9, mask_like_input},  {"Scatter", kAlways, as_scatter_elements},
};
}  // namespace

onnx::AttributeProto integer_attribute(const std::string& name, int64_t value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

onnx::AttributeProto integers_attribute(const std::string& name,
                                        const std::vector<int64_t>& values) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
  return attribute;
}

onnx::AttributeProto text_attribute(const std::string& name, const std::string& value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}

Result<std::vector<VersionedNode>> converted(
    VersionedNode node, const std::function<std::string(const std::string&)>& fresh,
    const std::string& place, Knowledge& known) {
  const int64_t opset = node.opset;
  if (!is_default_domain(node.proto.domain())) {
    node.opset = std::max(opset, kPresent);
    return std::vector{std::move(node)};
  }
  const std::string op = node.proto.op_type();
  Rewriting rewriting(std::move(node), fresh, place, known);
  if (opset < 6) rewriting.take("consumed_inputs");
  for (const auto changes : {first_changes(), std::span<const Change>(kChanges)})
    for (const Change& change : changes)
      if (change.op == op && opset <= change.until) WARPLOOM_CHECK(change.rewrite(rewriting));
  std::vector<VersionedNode> nodes = std::move(rewriting.before);
  nodes.push_back({std::move(rewriting.node), std::max(opset, kPresent)});
  std::ranges::move(rewriting.behind, std::back_inserter(nodes));
  return nodes;
}
}  // namespace warploom::onnx_import
