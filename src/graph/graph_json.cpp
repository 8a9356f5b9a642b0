#include "graph/graph_json.h"
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/variant_json.h"  // IWYU pragma: keep (conversions of Attribute)
#include "graph/graph.h"

namespace warploom::graph {
using nlohmann::json;

void to_json(json& out, const Tensor& tensor) {
  out = json::object();
  out["name"] = tensor.name;
  out["dtype"] = tensor.dtype;
  out["shape"] = tensor.shape;
  if (!tensor.constant) return;
  const auto* const begin = reinterpret_cast<const uint8_t*>(tensor.constant->data());
  std::vector<uint8_t> bytes(begin, begin + tensor.constant->size());
  out["constant"] = json::binary(std::move(bytes));
}

void from_json(const json& in, Tensor& tensor) {
  tensor.name = in.at("name").get<std::string>();
  tensor.dtype = in.at("dtype").get<Dtype>();
  tensor.shape = in.at("shape").get<Shape>();
  if (!in.contains("constant")) return;
  const auto& binary = in["constant"].get_binary();
  const auto* const begin = reinterpret_cast<const std::byte*>(binary.data());
  tensor.constant.emplace(begin, begin + binary.size());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Node, op, name, inputs, outputs, attributes)

void to_json(json& out, const Graph& graph) {
  out = json::object();
  out["name"] = graph.name;
  out["tensors"] = graph.tensors;
  out["nodes"] = graph.nodes;
  out["inputs"] = graph.inputs;
  out["outputs"] = graph.outputs;
}

void from_json(const json& in, Graph& graph) {
  graph.name = in.at("name").get<std::string>();
  graph.tensors = in.at("tensors").get<std::vector<Tensor>>();
  graph.nodes = in.at("nodes").get<std::vector<Node>>();
  graph.inputs = in.at("inputs").get<std::vector<TensorId>>();
  graph.outputs = in.at("outputs").get<std::vector<TensorId>>();
}
}  // namespace warploom::graph
