#include "search/policy/graph_record.h"
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/graph_json.h"  // IWYU pragma: keep (conversions of Graph)

namespace warploom::search {
namespace {
using nlohmann::json;

// Whether nodes name tensors that there are.
bool is_whole(const graph::Graph& graph) {
  const auto is_there = [&](graph::TensorId id) {
    return id >= 0 && as_size(id) < graph.tensors.size();
  };
  const auto are_there = [&](const auto& ids) { return std::ranges::all_of(ids, is_there); };
  const auto is_sound = [&](const graph::Node& node) {
    const auto is_known = [&](graph::TensorId id) { return id == -1 || is_there(id); };
    return std::ranges::all_of(node.inputs, is_known) &&
           std::ranges::all_of(node.outputs, is_known);
  };
  return are_there(graph.inputs) && are_there(graph.outputs) && !graph.outputs.empty() &&
         std::ranges::all_of(graph.nodes, is_sound);
}

// Whether all names are known, which numbers take the place of.
bool take_numbers(json& record) {
  for (json& node : record.at("nodes")) {
    const auto op = graph::op_named(node.at("op").get<std::string>());
    if (!op) return false;
    node["op"] = *op;
  }
  for (json& tensor : record.at("tensors")) {
    const auto dtype = dtype_named(tensor.at("dtype").get<std::string>());
    if (!dtype) return false;
    tensor["dtype"] = *dtype;
  }
  return true;
}
}  // namespace

json graph_to_record(const graph::Graph& graph) {
  json out = graph;
  for (json& node : out["nodes"])
    node["op"] = name_of(node["op"].get<graph::OpKind>());
  for (json& tensor : out["tensors"])
    tensor["dtype"] = name_of(tensor["dtype"].get<Dtype>());
  return out;
}

std::optional<graph::Graph> graph_from_record(json record) {
  try {
    if (!take_numbers(record)) return std::nullopt;
    auto graph = record.get<graph::Graph>();
    return is_whole(graph) ? std::optional(std::move(graph)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}
}  // namespace warploom::search
