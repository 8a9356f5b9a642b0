// Loop, Scan and SequenceMap: a body once for each step.
//
//   y, all = Loop(3, true, x) body (i, c, v) → (c, v·2, v)
//     →   v0 = Mul(x, 2);  v1 = Mul(v0, 2);  y = Mul(v1, 2);  all = Concat of x, v0, v1
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/flatten.h"
#include "onnx/flattener.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
namespace {
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::ValueInfoProto;

constexpr int64_t kMostSteps = 1 << 14;

Texts inputs_of(const NodeProto& node) {
  return {node.input().begin(), node.input().end()};
}

// A tensor without elements, of the type that a body declares for its steps, whose new axis counts
// from either end; nothing where the sizes are open.
Result<std::optional<AttributeProto>> nothing_of(const ValueInfoProto& step, int64_t axis,
                                                 const std::string& place) {
  const auto& type = step.type().tensor_type();
  AttributeProto attribute;
  attribute.set_name("value");
  attribute.set_type(AttributeProto::TENSOR);
  onnx::TensorProto& tensor = *attribute.mutable_t();
  tensor.set_data_type(type.elem_type());
  if (!type.has_shape()) return std::nullopt;
  const size_t rank = as_size(type.shape().dim_size()) + 1;
  WARPLOOM_TRY(const int at, graph::normalized_axis(axis, rank, place));
  for (const auto& dim : type.shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return std::nullopt;
    tensor.add_dims(dim.dim_value());
  }
  tensor.add_dims(0);
  auto& dims = *tensor.mutable_dims();
  std::rotate(dims.begin() + at, dims.end() - 1, dims.end());
  return attribute;
}

int64_t entry(const std::vector<int64_t>& list, size_t i) {
  return i < list.size() ? list[i] : 0;
}
}  // namespace

Status Flattener::check_body(const NodeProto& node, const GraphProto& body, int inputs,
                             int least_outputs) const {
  if (body.input_size() == inputs && body.output_size() >= least_outputs) return ok();
  return refused(node, ErrorCode::kOnnxName, "a body does not fit its node",
                 fmt::format("{} inputs and {} outputs or more", inputs, least_outputs),
                 fmt::format("{} and {}", body.input_size(), body.output_size()));
}

// What is left of the state, and what the steps have made: `made[k]` of output k behind the
// state's.
Status Flattener::finish_steps(const NodeProto& node, const GraphProto& body, const Texts& state,
                               const std::vector<Texts>& made, int first_body_output) {
  const auto axes = integers_of(node, "scan_output_axes");
  const auto directions = integers_of(node, "scan_output_directions");
  if (as_size(node.output_size()) > state.size() + made.size())
    return refused(node, ErrorCode::kOnnxName, "wrong number of outputs",
                   fmt::format("at most {}", state.size() + made.size()),
                   std::to_string(node.output_size()));
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& output = node.output(i);
    if (output.empty()) continue;
    if (as_size(i) < state.size()) {
      WARPLOOM_CHECK(alias(state[as_size(i)], output));
      continue;
    }
    const size_t k = as_size(i) - state.size();
    Texts parts = made[k];
    if (entry(directions, k) != 0) std::ranges::reverse(parts);
    if (!parts.empty()) {
      WARPLOOM_TRY(const std::string all, joined(node, parts, entry(axes, k), true));
      WARPLOOM_CHECK(alias(all, output));
      continue;
    }
    const auto& declared = body.output(first_body_output + i);
    WARPLOOM_TRY(const auto nothing, nothing_of(declared, entry(axes, k), at(node)));
    if (!nothing)
      return refused(node, ErrorCode::kOnnxDynamicShape,
                     "the shape of what no step makes is not known", "sizes of the body's outputs",
                     declared.name(), "declare them, or leave the loop out");
    WARPLOOM_CHECK(make_as(output, "Constant", {}, {*nothing}));
  }
  return ok();
}

// Nothing: only its condition ends a Loop.
Result<std::optional<int64_t>> Flattener::most_steps(const NodeProto& loop) {
  if (loop.input(0).empty()) return std::nullopt;
  WARPLOOM_TRY(const auto count, integers(loop.input(0)));
  if (count && count->size() == 1) return count->front();
  return undecided(loop, "a Loop whose number of steps depends on the inputs is not supported",
                   loop.input(0));
}

Result<bool> Flattener::goes_on(const NodeProto& loop, const std::string& condition) {
  if (condition.empty()) return true;
  WARPLOOM_TRY(const std::optional<bool> known, truth(condition));
  if (known) return *known;
  return undecided(loop, "a Loop whose condition depends on the inputs is not supported",
                   condition);
}

// The number of a Loop's step and its condition, as a body's first inputs.
Result<Texts> Flattener::step_inputs(int64_t number, const std::string& condition,
                                     const std::string& prefix) {
  const std::vector value = {integer_attribute("value_int", number)};
  WARPLOOM_TRY(const std::string step, make("Constant", {}, prefix + "/step", value));
  if (!condition.empty()) return Texts{step, condition};
  const std::vector always = {integer_attribute("value_int", 1)};
  WARPLOOM_TRY(const std::string one, make("Constant", {}, prefix + "/one", always));
  const std::vector to = {integer_attribute("to", onnx::TensorProto::BOOL)};
  WARPLOOM_TRY(const std::string yes, make("Cast", {one}, prefix + "/true", to));
  return Texts{step, yes};
}

Status Flattener::unroll_loop(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const GraphProto* const body, body_of(proto, "body"));
  const int carried = proto.input_size() - 2;
  if (carried < 0)
    return refused(proto, ErrorCode::kOnnxName, "wrong number of inputs", "2 or more",
                   std::to_string(proto.input_size()));
  WARPLOOM_CHECK(check_body(proto, *body, carried + 2, carried + 1));
  WARPLOOM_TRY(const std::optional<int64_t> most, most_steps(proto));
  const Texts given = inputs_of(proto);
  std::string condition = given[1];
  Texts state(given.begin() + 2, given.end());
  std::vector<Texts> made(as_size(body->output_size() - 1 - carried));
  for (int64_t i = 0; !most || i < *most; ++i) {
    WARPLOOM_TRY(const bool is_on, goes_on(proto, condition));
    if (!is_on) break;
    if (i == kMostSteps)
      return refused(proto, ErrorCode::kOnnxTooLarge, "a loop has too many steps",
                     fmt::format("at most {}", kMostSteps),
                     most ? std::to_string(*most) : "no end that is known");
    const std::string prefix = fmt::format("{}/{}", name_of(proto), i);
    WARPLOOM_TRY(Texts inputs, step_inputs(i, condition, prefix));
    inputs.insert(inputs.end(), state.begin(), state.end());
    WARPLOOM_TRY(const Texts outputs, put_body(node, *body, prefix, inputs));
    condition = outputs[0];
    state.assign(outputs.begin() + 1, outputs.begin() + 1 + carried);
    for (size_t k = 0; k < made.size(); ++k)
      made[k].push_back(outputs[1 + as_size(carried) + k]);
  }
  return finish_steps(proto, *body, state, made, 1);
}

// How many steps the inputs that are scanned have, along an axis each.
Result<int64_t> Flattener::steps_of(const NodeProto& scan, std::span<const std::string> scanned,
                                    const std::vector<int64_t>& axes) {
  std::optional<int64_t> steps;
  for (size_t k = 0; k < axes.size(); ++k) {
    WARPLOOM_TRY(const graph::Shape shape, this->shape(scan, scanned[k]));
    WARPLOOM_TRY(const int axis, graph::normalized_axis(axes[k], shape.size(), at(scan)));
    const int64_t size = shape[as_size(axis)];
    if (steps.value_or(size) != size)
      return refused(scan, ErrorCode::kOnnxShape, "inputs of a Scan have other numbers of steps",
                     std::to_string(*steps), std::to_string(size));
    steps = size;
  }
  if (*steps <= kMostSteps) return *steps;
  return refused(scan, ErrorCode::kOnnxTooLarge, "a loop has too many steps",
                 fmt::format("at most {}", kMostSteps), std::to_string(*steps));
}

// A tensor at one place along an axis, without that axis.
Result<std::string> Flattener::taken(const std::string& tensor, int64_t place, int64_t axis,
                                     const std::string& wanted) {
  const std::vector number = {integer_attribute("value_int", place)};
  WARPLOOM_TRY(const std::string at, make("Constant", {}, wanted + "/place", number));
  return make("Gather", {tensor, at}, wanted, {integer_attribute("axis", axis)});
}

Status Flattener::unroll_scan(const VersionedNode& node) {
  if (node.opset < 9) return unroll_old_scan(node);
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const GraphProto* const body, body_of(proto, "body"));
  const auto scanned = integer_of(proto, "num_scan_inputs", 0);
  const auto carried = proto.input_size() - scanned;
  if (scanned < 1 || carried < 0)
    return refused(proto, ErrorCode::kOnnxAttribute, "num_scan_inputs has an unfit value",
                   fmt::format("1 to {}", proto.input_size()), std::to_string(scanned));
  WARPLOOM_CHECK(check_body(proto, *body, proto.input_size(), as_int(carried)));
  const Texts given = inputs_of(proto);
  const auto directions = integers_of(proto, "scan_input_directions");
  auto axes = integers_of(proto, "scan_input_axes");
  axes.resize(as_size(scanned));
  const std::span<const std::string> sources = std::span(given).subspan(as_size(carried));
  WARPLOOM_TRY(const int64_t steps, steps_of(proto, sources, axes));
  Texts state(given.begin(), given.begin() + carried);
  std::vector<Texts> made(as_size(body->output_size() - carried));
  for (int64_t i = 0; i < steps; ++i) {
    const std::string prefix = fmt::format("{}/{}", name_of(proto), i);
    Texts inputs = state;
    for (size_t k = 0; k < axes.size(); ++k) {
      const int64_t t = entry(directions, k) != 0 ? steps - 1 - i : i;
      const std::string what = fmt::format("{}/in{}", prefix, k);
      WARPLOOM_TRY(std::string part, taken(sources[k], t, axes[k], what));
      inputs.push_back(std::move(part));
    }
    WARPLOOM_TRY(const Texts outputs, put_body(node, *body, prefix, inputs));
    state.assign(outputs.begin(), outputs.begin() + carried);
    for (size_t k = 0; k < made.size(); ++k)
      made[k].push_back(outputs[as_size(carried) + k]);
  }
  return finish_steps(proto, *body, state, made, 0);
}

// The Scan of operator set 9 that is a batch's entry `b` of one of 8; its inputs and outputs are
// the entry's.
Result<VersionedNode> Flattener::scan_of_entry(const NodeProto& proto, int64_t b) {
  VersionedNode one = {proto, 9};
  const std::string prefix = fmt::format("{}/of{}", name_of(proto), b);
  one.proto.set_name(prefix);
  one.proto.clear_input();
  one.proto.clear_output();
  for (auto& attribute : *one.proto.mutable_attribute())
    if (attribute.name() == "directions") attribute.set_name("scan_input_directions");
  for (int i = 1; i < proto.input_size(); ++i) {
    WARPLOOM_TRY(const std::string part,
                 taken(proto.input(i), b, 0, fmt::format("{}/in{}", prefix, i)));
    one.proto.add_input(part);
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const bool is_wanted = !proto.output(i).empty();
    one.proto.add_output(is_wanted ? fresh(fmt::format("{}/out{}", prefix, i)) : "");
  }
  return one;
}

// Scan of operator set 8 is one of 9 for each of a batch, which is the first axis of everything.
Status Flattener::unroll_old_scan(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_CHECK(body_of(proto, "body"));
  const int given = proto.input_size();
  if (given < 2)
    return refused(proto, ErrorCode::kOnnxName, "wrong number of inputs", "2 or more",
                   std::to_string(given));
  if (!proto.input(0).empty())
    return refused(proto, ErrorCode::kOnnxUnknownOperator,
                   "a Scan with lengths of its sequences is not supported", "whole sequences",
                   proto.input(0), "export the model with operator set 9 or later");
  WARPLOOM_TRY(const graph::Shape first, shape(proto, proto.input(1)));
  if (first.empty() || first[0] < 1 || first[0] > kMostSteps)
    return refused(proto, ErrorCode::kOnnxShape, "a Scan has no batch of a size that is read",
                   fmt::format("1 to {}", kMostSteps), graph::to_text(first));
  std::vector<Texts> outputs(as_size(proto.output_size()));
  for (int64_t b = 0; b < first[0]; ++b) {
    WARPLOOM_TRY(const VersionedNode one, scan_of_entry(proto, b));
    for (int i = 0; i < proto.output_size(); ++i)
      outputs[as_size(i)].push_back(one.proto.output(i));
    WARPLOOM_CHECK(unroll_scan(one));
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    WARPLOOM_TRY(const std::string all, joined(proto, outputs[as_size(i)], 0, true));
    WARPLOOM_CHECK(alias(all, proto.output(i)));
  }
  return ok();
}

// Inputs behind the first are sequences of as many tensors, or the same for all.
Status Flattener::map_sequence(const VersionedNode& node) {
  const NodeProto& proto = node.proto;
  WARPLOOM_TRY(const GraphProto* const body, body_of(proto, "body"));
  WARPLOOM_TRY(const Texts* const first, sequence(proto, 0));
  const size_t count = first->size();
  WARPLOOM_CHECK(check_body(proto, *body, proto.input_size(), proto.output_size()));
  std::vector<Texts> made(as_size(proto.output_size()));
  for (size_t i = 0; i < count; ++i) {
    Texts inputs;
    for (const std::string& input : proto.input()) {
      const auto known = sequences_.find(input);
      if (known != sequences_.end() && known->second.size() != count)
        return refused(proto, ErrorCode::kOnnxShape, "sequences of different lengths",
                       std::to_string(count), std::to_string(known->second.size()));
      inputs.push_back(known == sequences_.end() ? input : known->second[i]);
    }
    const std::string prefix = fmt::format("{}/{}", name_of(proto), i);
    WARPLOOM_TRY(const Texts outputs, put_body(node, *body, prefix, inputs));
    for (size_t k = 0; k < made.size(); ++k)
      made[k].push_back(outputs[k]);
  }
  for (size_t k = 0; k < made.size(); ++k)
    if (const std::string& output = proto.output(as_int(k)); !output.empty())
      sequences_[output] = std::move(made[k]);
  return ok();
}
}  // namespace warploom::onnx_import
