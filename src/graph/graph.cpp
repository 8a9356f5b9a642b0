#include "graph/graph.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/rows.h"

namespace warploom::graph {
std::optional<TensorId> Graph::tensor_named(std::string_view wanted) const {
  return row_where<TensorId>(tensors, wanted, &Tensor::name);
}

int Graph::producer(TensorId id) const {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (contains(nodes[i].outputs, id)) return as_int(i);
  return -1;
}

std::vector<int> Graph::consumers(TensorId id) const {
  std::vector<int> found;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (contains(nodes[i].inputs, id)) found.push_back(as_int(i));
  return found;
}

TensorId Graph::add_tensor(Tensor added) {
  tensors.push_back(std::move(added));
  return static_cast<TensorId>(tensors.size() - 1);
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape)
    count *= size;
  return count;
}

int64_t byte_count(const TensorInfo& tensor) {
  return element_count(tensor.shape) * bytes_of(tensor.dtype);
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string to_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::string to_text(const TensorInfo& tensor) {
  return fmt::format("{} {} {}", tensor.name, name_of(tensor.dtype), to_text(tensor.shape));
}

std::string to_text(const Attribute& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  if (const auto* const list = std::get_if<Shape>(&value)) return to_text(*list);
  if (const auto* const reals = std::get_if<std::vector<double>>(&value))
    return fmt::format("[{}]", fmt::join(*reals, ","));
  if (const auto* const texts = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("[\"{}\"]", fmt::join(*texts, "\",\""));
  if (const auto* const real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return std::to_string(std::get<int64_t>(value));
}

std::string to_text(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name);
  const auto name = [&](TensorId id) { return id == kAbsent ? "_" : graph.tensor(id).name; };
  for (TensorId id : graph.inputs)
    text += fmt::format("  input {}\n", to_text(graph.tensor(id)));
  for (const Tensor& tensor : graph.tensors)
    if (tensor.constant) text += fmt::format("  constant {}\n", to_text(tensor));
  for (const Node& node : graph.nodes) {
    const std::string outputs = listed(node.outputs, name);
    const std::string inputs = listed(node.inputs, name);
    text += fmt::format("  {} = {}({})", outputs, name_of(node.op), inputs);
    for (const auto& [key, value] : node.attributes)
      text += fmt::format(" {}={}", key, to_text(value));
    if (!node.outputs.empty() && node.outputs[0] != kAbsent) {
      const Tensor& made = graph.tensor(node.outputs[0]);
      text += fmt::format(" : {} {}", name_of(made.dtype), to_text(made.shape));
    }
    text += "\n";
  }
  for (TensorId id : graph.outputs)
    text += fmt::format("  output {}\n", to_text(graph.tensor(id)));
  return text;
}

std::string place_of(const Node& node) {
  return fmt::format("node '{}' ({})", node.name, name_of(node.op));
}

Result<int64_t> checked_element_count(const Shape& shape, std::string_view place) {
  const std::string at(place);
  if (shape.size() > kMaxRank) {
    const std::string expected = fmt::format("at most {} axes", kMaxRank);
    const std::string found = std::to_string(shape.size());
    return fail({ErrorCode::kOnnxTooLarge, "a tensor has too many axes", at, expected, found});
  }
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0) {
      const std::string message = "a dimension has no fixed size";
      const std::string expected = "sizes of 0 or more";
      return fail({ErrorCode::kOnnxDynamicShape, message, at, expected, to_text(shape)});
    }
    if (size > 0 && count > kMaxElements / size) {
      const std::string message = "a tensor has too many elements";
      const std::string expected = fmt::format("at most {} elements", kMaxElements);
      return fail({ErrorCode::kOnnxTooLarge, message, at, expected, to_text(shape)});
    }
    count *= std::max<int64_t>(size, 1);
  }
  return contains(shape, 0) ? 0 : count;
}

Result<Dtype> checked_dtype(int64_t onnx_type, std::string_view what, std::string_view place) {
  const bool in_range = onnx_type > 0 && onnx_type < 1000;
  std::optional<Dtype> dtype;
  if (in_range) dtype = dtype_of_onnx(as_int(onnx_type));
  if (dtype) return *dtype;
  Error error{ErrorCode::kOnnxType, fmt::format("{} is not supported", what), std::string(place)};
  error.expected = "f64, f32, bf16, f16, e4m3, e5m2, i64, i32, i8, u8 or boolean";
  error.found = fmt::format("ONNX type {}", onnx_type);
  return fail(error);
}

Result<Shape> broadcast(const Shape& a, const Shape& b, std::string_view place) {
  Shape out(std::max(a.size(), b.size()));
  const auto from_last = [](const Shape& shape, size_t i) {
    return i < shape.size() ? shape[shape.size() - 1 - i] : int64_t{1};
  };
  for (size_t i = 0; i < out.size(); ++i) {  // i counts from the last axis
    const int64_t x = from_last(a, i);
    const int64_t y = from_last(b, i);
    if (x != y && x != 1 && y != 1) {
      Error error{ErrorCode::kOnnxShape, "shapes do not broadcast", std::string(place)};
      error.expected = "sizes that are equal or 1, counted from the last axis";
      error.found = to_text(a) + " and " + to_text(b);
      return fail(error);
    }
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<std::vector<int64_t>> constant_integers(const Graph& graph, TensorId id) {
  if (id == kAbsent || !graph.tensor(id).constant) return std::nullopt;
  const Tensor& tensor = graph.tensor(id);
  if (is_float(tensor.dtype)) return std::nullopt;
  std::vector<int64_t> values(element_count(tensor.shape));
  const std::byte* const data = tensor.constant->data();
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_integer(tensor.dtype))
      values[i] = load_integer(tensor.dtype, data, int64_t(i));
    else
      values[i] = as_int64(load_as_double(tensor.dtype, data, i));
  }
  return values;
}

std::optional<double> constant_scalar(const Graph& graph, TensorId id) {
  if (id == kAbsent) return std::nullopt;
  const Tensor& tensor = graph.tensor(id);
  if (!tensor.constant || element_count(tensor.shape) != 1) return std::nullopt;
  return load_as_double(tensor.dtype, tensor.constant->data(), 0);
}

Result<int> normalized_axis(int64_t axis, size_t rank, std::string_view place) {
  const auto size = as_int64(rank);
  if (axis >= -size && axis < size) return as_int(axis < 0 ? axis + size : axis);
  const std::string message = "an axis is outside the tensor's rank";
  const std::string expected = fmt::format("{} to {}", -size, size - 1);
  Error error{ErrorCode::kOnnxAttribute, message, std::string(place)};
  error.expected = expected;
  error.found = std::to_string(axis);
  return fail(error);
}
}  // namespace warploom::graph
