#include "onnx/spell_context.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "onnx/spell_syntax.h"
#include "onnx/spell_writer.h"

namespace warploom::spell {
using graph::AttributeRow;
using graph::kAbsent;
using graph::OpKind, graph::TensorId;

namespace {
constexpr double kLargestSize = 1e15;
constexpr size_t kMostOperators = 100'000;

// Operators whose attributes name something of every spatial axis.
bool slides(OpKind op) {
  constexpr std::array kSliding = {OpKind::Conv, OpKind::ConvTranspose, OpKind::MaxPool,
                                   OpKind::AveragePool, OpKind::LpPool};
  return contains(kSliding, op);
}

// Operators whose numbers are of the type of the tensors beside them, integers too.
bool shares_type(OpKind op) {
  return graph::class_of(op) == graph::OpClass::pointwise || op == OpKind::Pad ||
         op == OpKind::Clip;
}

// The type of numbers among an operator's operands.
Dtype type_for_numbers(const Context& context, OpKind op, const std::vector<Given>& given) {
  for (const Given& one : given) {
    const auto* const tensor = std::get_if<TensorValue>(&one.value);
    if (tensor == nullptr) continue;
    const Dtype dtype = context.writer.tensor(tensor->id).dtype;
    if (dtype == Dtype::boolean) continue;
    return is_float(dtype) || shares_type(op) ? dtype : context.dtype;
  }
  return context.dtype;
}

// A list as an attribute has it. What slides takes one number for all its axes, and pads of
// beginnings for the ends as well.
std::optional<std::vector<int64_t>> sizes_of(const Context& context, OpKind op, const Given& given,
                                             const std::vector<TensorId>& inputs) {
  List list;
  if (const auto* number = std::get_if<double>(&given.value)) list.push_back(*number);
  if (const auto* held = std::get_if<List>(&given.value)) list = *held;
  const bool none = !is_number(given.value) && !std::holds_alternative<List>(given.value);
  if (none || !std::ranges::all_of(list, is_whole)) return std::nullopt;
  std::vector<int64_t> out;
  for (const double value : list)
    out.push_back(as_int64(value));
  if (!slides(op) || inputs.empty() || inputs[0] == kAbsent) return out;
  const size_t rank = context.writer.tensor(inputs[0]).shape.size();
  const size_t axes = rank > 2 ? rank - 2 : 0;
  if (is_number(given.value)) out.assign(axes, out[0]);
  if (given.name == "pads" && out.size() == axes) out.insert(out.end(), out.begin(), out.end());
  return out;
}

tl::unexpected<Error> no_attribute(const Context& context, OpKind op, const Given& given) {
  std::vector<std::string> known;
  for (const AttributeRow* row : graph::attributes_of(op))
    known.emplace_back(row->name);
  std::string expected = fmt::format("{} has none", name_of(op));
  if (!known.empty()) expected = fmt::format("of {}: {}", name_of(op), listed(known));
  const std::string message = "the operator has no attribute of this name";
  const std::string remedy = did_you_mean(given.name, known);
  return context.wrong(given.place, message, expected, given.name, remedy);
}

Result<graph::Attribute> attribute(const Context& context, OpKind op, const Given& given,
                                   const std::vector<TensorId>& inputs) {
  const AttributeRow* const row = graph::attribute_named(op, given.name);
  if (row == nullptr) return no_attribute(context, op, given);
  const auto* const number = std::get_if<double>(&given.value);
  const auto* const text = std::get_if<std::string>(&given.value);
  using graph::AttributeKind;
  if (row->kind == AttributeKind::real && number != nullptr) return *number;
  if (row->kind == AttributeKind::text && text != nullptr) return *text;
  if (row->kind == AttributeKind::integer && number != nullptr && is_whole(*number))
    return as_int64(*number);
  if (row->kind == AttributeKind::integer && text != nullptr) {  // "to=bf16"
    WARPLOOM_TRY(const Dtype dtype, context.type_of(*text, given.place));
    return int64_t{onnx_type_of(dtype)};
  }
  if (row->kind == AttributeKind::integers)
    if (auto sizes = sizes_of(context, op, given, inputs)) return *std::move(sizes);
  static constexpr std::string_view kKinds[] = {
      "a whole number",          "a number",          "a text",
      "a list of whole numbers", "a list of numbers", "a list of texts"};
  const std::string message = fmt::format("{} of {} is of another kind", given.name, name_of(op));
  const std::string expected(kKinds[as_int(row->kind)]);
  return context.wrong(given.place, message, expected, described(given.value));
}

Result<TensorId> operand(Context& context, const Given& given, Dtype dtype) {
  if (std::holds_alternative<Absent>(given.value)) return kAbsent;
  if (const auto* tensor = std::get_if<TensorValue>(&given.value)) return tensor->id;
  if (const auto* number = std::get_if<double>(&given.value))
    return context.writer.constant(dtype, {*number}, true);
  if (const auto* list = std::get_if<List>(&given.value)) {
    const bool whole = std::ranges::all_of(*list, is_whole);
    return context.writer.constant(whole ? Dtype::i64 : dtype, *list, false);
  }
  return context.wrong(given.place, "an operand is a text", "a tensor, a number or a list",
                       described(given.value), "give attributes by name, as axis=1");
}

Error of_operator(OpKind op, Error error) {
  const std::string name(graph::name_of(op));
  if (error.message.find(name) == error.message.npos) error.message = name + ": " + error.message;
  return error;
}

Result<SpelledValue> added(Context& context, OpKind op, Place place, std::vector<TensorId> inputs,
                           const Attributes& attributes) {
  auto made = context.writer.node(op, std::move(inputs), attributes);
  if (!made) return context.at_call(place, of_operator(op, std::move(made.error())));
  return TensorValue{(*made)[0]};
}

}  // namespace

bool is_whole(double value) {
  return value == std::floor(value) && std::abs(value) <= kLargestSize;
}

bool is_number(const SpelledValue& value) {
  return std::holds_alternative<double>(value);
}

std::string described(const SpelledValue& value) {
  static constexpr std::string_view kKinds[] = {"nothing", "a number", "a list", "a text",
                                                "a tensor"};
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* list = std::get_if<List>(&value))
    return fmt::format("[{}]", fmt::join(*list, ","));
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::string(kKinds[value.index()]);
}

Result<Dtype> Context::type_of(const std::string& name, Place place) const {
  const auto known = type_names();
  if (contains(known, name)) return *dtype_named(name);
  return wrong(place, "the element type is unknown", "one of " + listed(known), name,
               did_you_mean(name, known));
}

std::vector<std::string> type_names() {
  return {"f32", "f16", "bf16", "f64", "e4m3", "e5m2", "i64", "i32", "i8", "u8", "boolean"};
}

tl::unexpected<Error> Context::wrong(Place place, std::string message, std::string expected,
                                     std::string found, std::string remedy) const {
  Error error{ErrorCode::kUsage, std::move(message)};
  error.expected = std::move(expected);
  error.found = std::move(found);
  error.remedy = std::move(remedy);
  return at_call(place, std::move(error));
}

tl::unexpected<Error> Context::at_call(Place place, Error error) const {
  if (within.empty()) return fail(error_at(text, place, std::move(error)));
  error.message = fmt::format("in {}: {}", within.front().function, error.message);
  return fail(error_at(text, within.front().place, std::move(error)));
}

bool fits(OpKind op, const std::vector<Given>& given) {
  return std::ranges::all_of(given, [&](const Given& one) {
    return one.name.empty() || graph::attribute_named(op, one.name) != nullptr;
  });
}

Result<std::vector<SpelledValue>> call_operator(Context& context, OpKind op, Place place,
                                                const std::vector<Given>& given, size_t count) {
  std::vector<TensorId> inputs;
  Attributes attributes;
  const Dtype dtype = type_for_numbers(context, op, given);
  for (const Given& one : given) {
    if (!one.name.empty()) continue;
    WARPLOOM_TRY(const TensorId id, operand(context, one, dtype));
    inputs.push_back(id);
  }
  for (const Given& one : given) {
    if (one.name.empty() || std::holds_alternative<Absent>(one.value)) continue;
    WARPLOOM_TRY(attributes[one.name], attribute(context, op, one, inputs));
  }
  if (context.operators++ > kMostOperators)
    return context.wrong(place, "the model has too many operators");
  auto made = context.writer.node(op, std::move(inputs), attributes, count);
  if (!made) return context.at_call(place, of_operator(op, std::move(made.error())));
  std::vector<SpelledValue> values;
  for (const TensorId id : *made)
    values.emplace_back(TensorValue{id});
  return values;
}

bool is_built_in(const std::string& name) {
  return name == "extent" || name == "rank" || name == "swapaxes";
}

Result<SpelledValue> call_built_in(Context& context, const std::string& name, Place place,
                                   const std::vector<Given>& given) {
  static const std::map<std::string, size_t> operands = {
      {"rank", 1}, {"extent", 2}, {"swapaxes", 3}};
  const size_t wanted = operands.at(name);
  const TensorValue* tensor = nullptr;
  if (!given.empty()) tensor = std::get_if<TensorValue>(&given[0].value);
  if (tensor == nullptr || given.size() != wanted) {
    const std::string expected = fmt::format("a tensor and {} axes", wanted - 1);
    const std::string found = fmt::format("{} operands", given.size());
    return context.wrong(place, "wrong operands", expected, found);
  }
  const auto shape = context.writer.tensor(tensor->id).shape;
  const size_t rank = shape.size();
  if (name == "rank") return as_double(rank);
  std::vector<size_t> axes;
  for (size_t i = 1; i < wanted; ++i) {
    const auto* const number = std::get_if<double>(&given[i].value);
    const double axis = number == nullptr ? HUGE_VAL : *number;
    const double counted = axis < 0 ? axis + as_double(rank) : axis;
    if (!is_whole(axis) || counted < 0 || counted >= as_double(rank)) {
      const std::string expected = fmt::format("an axis of {}", graph::to_text(shape));
      const std::string found = described(given[i].value);
      return context.wrong(given[i].place, "the tensor has no such axis", expected, found);
    }
    axes.push_back(as_size(counted));
  }
  if (name == "extent") return as_double(shape[axes[0]]);
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = as_int64(i);
  std::swap(order[axes[0]], order[axes[1]]);
  return added(context, OpKind::Transpose, place, {tensor->id}, {{"perm", order}});
}

Result<SpelledValue> convert(Context& context, const std::string& type, Place place,
                             const std::vector<Given>& given) {
  WARPLOOM_TRY(const Dtype to, context.type_of(type, place));
  if (given.size() != 1 || !given[0].name.empty())
    return context.wrong(place, "a cast has one operand", "a tensor, a number or a list",
                         fmt::format("{} operands", given.size()));
  const SpelledValue& value = given[0].value;
  if (const auto* number = std::get_if<double>(&value))
    return TensorValue{context.writer.constant(to, {*number}, true)};
  if (const auto* list = std::get_if<List>(&value))
    return TensorValue{context.writer.constant(to, *list, false)};
  if (const auto* tensor = std::get_if<TensorValue>(&value)) {
    const int64_t onnx_type = onnx_type_of(to);
    return added(context, OpKind::Cast, place, {tensor->id}, {{"to", onnx_type}});
  }
  return context.wrong(place, "a cast has a tensor, a number or a list", "", described(value));
}

}  // namespace warploom::spell
