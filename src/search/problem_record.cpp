#include "search/problem_record.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "search/policy/features.h"
#include "search/policy/graph_record.h"
#include "search/policy/outcomes.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using nlohmann::json;

constexpr size_t kMostConstant = 4096;  // bytes

// Large constants become inputs.
graph::Graph without_weights(graph::Graph graph) {
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    auto& constant = graph.tensors[i].constant;
    if (!constant || constant->size() <= kMostConstant) continue;
    constant.reset();
    graph.inputs.push_back(static_cast<graph::TensorId>(i));
  }
  return graph;
}

// JSON's text has no binary values: what was one is {"bytes": […], "subtype": null} there.
json with_binaries(json graph) {
  for (json& tensor : graph.at("tensors")) {
    const auto constant = tensor.find("constant");
    if (constant == tensor.end() || constant->is_binary()) continue;
    *constant = json::binary(constant->at("bytes").get<std::vector<uint8_t>>());
  }
  return graph;
}

// Whether shapes follow from the operators, and constants fill theirs: a record of another archive
// may say anything.
bool is_sound(const graph::Graph& graph) {
  for (const graph::Tensor& tensor : graph.tensors) {
    if (std::ranges::any_of(tensor.shape, [](int64_t size) { return size < 0; })) return false;
    const auto bytes = as_size(graph::byte_count(tensor));
    if (tensor.constant && tensor.constant->size() != bytes) return false;
  }
  const auto inferred = graph::infer(graph);
  return inferred && graph::to_text(*inferred) == graph::to_text(graph);
}

bool is_of_problem(std::string_view group) {
  return group == "region" || group == "target";
}
}  // namespace

void note_problem(archive::Problem& problem, const SearchSpace& space) {
  const FeatureVector seen = Features(space).of_problem();
  for (size_t i = 0; i < kFeatures; ++i) {
    const FeatureRow& row = kFeatureRows[i];
    if (is_of_problem(row.group)) problem.features[row.name] = seen[i];
  }
  problem.graph = graph_to_record(without_weights(space.region.graph));
  problem.capabilities = capabilities_to_json(space.capabilities);
}

std::optional<kernels::Region> region_of(const archive::Problem& problem) {
  const auto track = track_named(problem.track);
  if (!track || !problem.graph.is_object()) return std::nullopt;
  try {
    auto graph = graph_from_record(with_binaries(problem.graph));
    if (!graph || !is_sound(*graph)) return std::nullopt;
    return kernels::Region(*std::move(graph), *track);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<target::Capabilities> capabilities_of(const archive::Problem& problem) {
  if (!problem.capabilities.is_object()) return std::nullopt;
  try {
    return capabilities_from_json(problem.capabilities);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}
}  // namespace warploom::search
