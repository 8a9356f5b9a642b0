// Operators of operator sets 1 to 6, whose forms those from 7 on have changed:
//
//   Add(a [2,3,4], b [3]) broadcast=1 axis=1   →   Add(a, Reshape(b, [3,1]))
//   Reshape(x) shape=[2,6]                     →   Reshape(x, [2,6])
//   Cast(x) to="FLOAT"                         →   Cast(x) to=1
//
// Where a form has kept its meaning, conversion.cpp has what became of it later.
#include <fmt/format.h>
#include <onnx/onnx.pb.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/flatten.h"
#include "onnx/rewriting.h"

namespace warploom::onnx_import {
namespace {
using onnx::AttributeProto;
using onnx::NodeProto;

tl::unexpected<Error> unfit(const Rewriting& rewriting, std::string message, std::string expected,
                            std::string found, std::string remedy = {}) {
  Error error{ErrorCode::kOnnxAttribute, std::move(message), rewriting.place};
  error.expected = std::move(expected);
  error.found = std::move(found);
  error.remedy = std::move(remedy);
  return fail(error);
}

// Input i with axes of 1 behind its own, so that its first is axis `axis` of `rank`.
Status align(Rewriting& rewriting, int i, int64_t axis, size_t rank) {
  WARPLOOM_TRY(const size_t own, rewriting.rank_of(i));
  const int64_t from = axis < 0 ? axis + as_int64(rank) : axis;
  const int64_t behind = as_int64(rank) - from - as_int64(own);
  if (from < 0 || behind < 0)
    return unfit(rewriting, "an operand does not fit from its axis on",
                 fmt::format("{} axes from {} of {}", own, axis, rank), std::to_string(axis));
  if (behind == 0) return ok();
  std::vector<int64_t> axes;
  for (int64_t added = 0; added < behind; ++added)
    axes.push_back(as_int64(own) + added);
  const std::string list = rewriting.constant(integers_attribute("axes", axes), "axes");
  const std::string given = rewriting.node.input(i);
  rewriting.node.set_input(i, rewriting.make("Unsqueeze", {given, list}, "aligned"));
  return ok();
}

// The second operand stretches to the first, from an axis on where one is named.
Status broadcast_from_axis(Rewriting& rewriting) {
  const auto broadcast = rewriting.take("broadcast");
  const auto axis = rewriting.take("axis");
  if (!axis || !broadcast || broadcast->i() == 0 || rewriting.node.input_size() != 2) return ok();
  WARPLOOM_TRY(const size_t rank, rewriting.rank_of(0));
  return align(rewriting, 1, axis->i(), rank);
}

Status broadcast_always(Rewriting& rewriting) {
  rewriting.take("broadcast");
  return ok();
}

// A slope for each channel.
Status slope_of_channels(Rewriting& rewriting) {
  if (rewriting.node.input_size() != 2) return ok();
  WARPLOOM_TRY(const size_t rank, rewriting.rank_of(0));
  WARPLOOM_TRY(const graph::Tensor* const slope, rewriting.known.tensor(rewriting.node.input(1)));
  if (rank < 2 || slope == nullptr || slope->shape.size() != 1 || slope->shape[0] == 1) return ok();
  return align(rewriting, 1, 1, rank);
}

Status type_by_name(Rewriting& rewriting) {
  const auto to = rewriting.take("to");
  if (!to) return ok();
  onnx::TensorProto::DataType type{};
  if (!onnx::TensorProto::DataType_Parse(to->s(), &type))
    return unfit(rewriting, "an element type is unknown", "FLOAT, INT64 and the like", to->s());
  *rewriting.node.add_attribute() = integer_attribute("to", type);
  return ok();
}

Status shape_as_input(Rewriting& rewriting) {
  if (const auto shape = rewriting.take("shape"))
    rewriting.set_input(1, rewriting.constant(*shape, "shape"));
  return ok();
}

Status first_axis_by_default(Rewriting& rewriting) {
  if (const auto axis = rewriting.take("axis"))
    *rewriting.node.add_attribute() = *axis;
  else
    *rewriting.node.add_attribute() = integer_attribute("axis", 1);
  return ok();
}

Status paddings(Rewriting& rewriting) {
  auto pads = rewriting.take("paddings");
  if (!pads) return ok();
  pads->set_name("pads");
  *rewriting.node.add_attribute() = *pads;
  return ok();
}

// Tile(x, 3, 1): one number of repeats, of one axis.
Status repeats_of_one_axis(Rewriting& rewriting) {
  if (rewriting.node.input_size() != 3) return ok();
  WARPLOOM_TRY(const size_t rank, rewriting.rank_of(0));
  std::vector<int64_t> repeats(rank, 1);
  std::vector<int64_t> said;
  for (const int i : {1, 2}) {
    WARPLOOM_TRY(const graph::Tensor* const tensor,
                 rewriting.known.tensor(rewriting.node.input(i)));
    const bool is_known = tensor != nullptr && tensor->constant;
    if (!is_known || graph::element_count(tensor->shape) != 1)
      return fail({ErrorCode::kOnnxDynamicShape, "the repeats of a Tile are not known",
                   rewriting.place, "constants", rewriting.node.input(i)});
    said.push_back(as_int64(load_as_double(tensor->dtype, tensor->constant->data(), 0)));
  }
  WARPLOOM_TRY(const int axis, graph::normalized_axis(said[1], rank, rewriting.place));
  repeats[as_size(axis)] = said[0];
  const std::string list = rewriting.constant(integers_attribute("repeats", repeats), "repeats");
  rewriting.node.set_input(1, list);
  rewriting.node.mutable_input()->RemoveLast();
  return ok();
}

// One scale for the heights and one for the widths of images.
Status scales_of_images(Rewriting& rewriting) {
  const auto height = rewriting.take("height_scale");
  const auto width = rewriting.take("width_scale");
  if (const auto mode = rewriting.take("mode")) {
    const bool bilinear = mode->s() == "bilinear";
    *rewriting.node.add_attribute() =
        text_attribute("mode", bilinear ? std::string("linear") : mode->s());
  }
  if (!height || !width) return ok();
  AttributeProto scales;
  scales.set_name("scales");
  scales.set_type(AttributeProto::FLOATS);
  for (const float scale : {1.0F, 1.0F, height->f(), width->f()})
    scales.add_floats(scale);
  *rewriting.node.add_attribute() = scales;
  return ok();
}

// The power of a norm as a whole number.
Status whole_power(Rewriting& rewriting) {
  const auto power = rewriting.take("p");
  if (!power) return ok();
  const bool real = power->type() == AttributeProto::FLOAT;
  if (real && std::floor(power->f()) != power->f())
    return unfit(rewriting, "the power of a norm is no whole number", "1, 2 and the like",
                 fmt::format("{}", power->f()));
  const int64_t whole = real ? as_int64(as_double(power->f())) : power->i();
  *rewriting.node.add_attribute() = integer_attribute("p", whole);
  return ok();
}

Status first_selu(Rewriting& rewriting) {
  for (const auto& [name, value] : {std::pair("alpha", 1.6732F), std::pair("gamma", 1.0507F)}) {
    auto given = rewriting.take(name);
    if (!given) {
      given.emplace();
      given->set_name(name);
      given->set_type(AttributeProto::FLOAT);
      given->set_f(value);
    }
    *rewriting.node.add_attribute() = *given;
  }
  return ok();
}

// is_test is 0 where nothing is said.
Status for_inference(Rewriting& rewriting) {
  const auto is_test = rewriting.take("is_test");
  if (is_test && is_test->i() != 0) return ok();
  return unfit(rewriting,
               fmt::format("{} in training mode is not supported", rewriting.node.op_type()),
               "is_test=1", "is_test=0", "export the model for inference");
}

constexpr Change kChanges[] = {
    {"Add", 6, broadcast_from_axis},
    {"Sub", 6, broadcast_from_axis},
    {"Mul", 6, broadcast_from_axis},
    {"Div", 6, broadcast_from_axis},
    {"Pow", 6, broadcast_from_axis},
    {"And", 6, broadcast_from_axis},
    {"Or", 6, broadcast_from_axis},
    {"Xor", 6, broadcast_from_axis},
    {"Equal", 6, broadcast_from_axis},
    {"Less", 6, broadcast_from_axis},
    {"Greater", 6, broadcast_from_axis},
    {"Gemm", 6, broadcast_always},
    {"PRelu", 6, slope_of_channels},
    {"BatchNormalization", 6, for_inference},
    {"Dropout", 6, for_inference},
    {"Cast", 5, type_by_name},
    {"Reshape", 4, shape_as_input},
    {"Tile", 5, repeats_of_one_axis},
    {"Selu", 5, first_selu},
    {"Concat", 3, first_axis_by_default},
    {"Upsample", 6, scales_of_images},
    {"Pad", 1, paddings},
    {"LpNormalization", 1, whole_power},
    {"LpPool", 1, whole_power},
    {"GlobalLpPool", 1, whole_power},
};
}  // namespace

std::span<const Change> first_changes() {
  return kChanges;
}
}  // namespace warploom::onnx_import
