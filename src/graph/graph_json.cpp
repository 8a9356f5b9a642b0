#include "graph/graph_json.h"
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>
#include "base/variant_json.h"  // IWYU pragma: keep (conversions of Attribute)
#include "graph/graph.h"

namespace warploom::graph {
using nlohmann::json;

void to_json(json& out, const Tensor& tensor) {
  out = {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
  if (!tensor.constant) return;
  const auto* const begin = reinterpret_cast<const uint8_t*>(tensor.constant->data());
  std::vector<uint8_t> bytes(begin, begin + tensor.constant->size());
  out["constant"] = json::binary(std::move(bytes));
}

void from_json(const json& in, Tensor& tensor) {
  static_cast<TensorInfo&>(tensor) = {in.at("name"), in.at("dtype"), in.at("shape")};
  if (!in.contains("constant")) return;
  const auto& binary = in["constant"].get_binary();
  const auto* const begin = reinterpret_cast<const std::byte*>(binary.data());
  tensor.constant.emplace(begin, begin + binary.size());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Node, op, name, inputs, outputs, attributes)

void to_json(json& out, const Graph& graph) {
  out = {{"name", graph.name},
         {"tensors", graph.tensors},
         {"nodes", graph.nodes},
         {"inputs", graph.inputs},
         {"outputs", graph.outputs}};
}

void from_json(const json& in, Graph& graph) {
  graph = {in.at("name"), in.at("tensors"), in.at("nodes"), in.at("inputs"), in.at("outputs")};
}
}  // namespace warploom::graph
