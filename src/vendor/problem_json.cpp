// Problems as JSON: every field under its own name.
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>
#include "base/variant_json.h"  // IWYU pragma: keep (conversions of Operation)
#include "graph/graph_json.h"   // IWYU pragma: keep (conversions of Graph)
#include "vendor/problem.h"

namespace warploom::vendor {
using nlohmann::json;

void to_json(json& out, const std::optional<Place>& place);
void from_json(const json& in, std::optional<Place>& place);

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Place, buffer, dtype, shape, strides, offset)

void to_json(json& out, const std::optional<Place>& place) {
  out = nullptr;
  if (place) out = *place;
}

void from_json(const json& in, std::optional<Place>& place) {
  place.reset();
  if (!in.is_null()) place = in.get<Place>();
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(After, function, alpha, beta, other, combine)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Window, kernel, strides, dilations, begins, ends)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Convolution, src, weights, dst, window, groups)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Deconvolution, src, weights, dst, window, groups)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Pooling, src, dst, window, how)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Matmul, a, b, dst, tf32)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Softmax, src, dst, axis, log)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BatchNorm, src, dst, scale, shift, mean, variance, epsilon)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayerNorm, src, dst, scale, shift, size, epsilon)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Reduction, src, dst, how)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Lrn, src, dst, size, alpha, beta, bias)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Copy, src, dst)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Elementwise, src, dst)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Unmatched, reads, writes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Step, operation, after)

void to_json(json& out, const VendorProblem& problem) {
  out = json::object();
  out["graph"] = problem.graph;
  out["steps"] = problem.steps;
  out["chosen"] = problem.chosen;
}

void from_json(const json& in, VendorProblem& problem) {
  problem.graph = in.at("graph").get<graph::Graph>();
  problem.steps = in.at("steps").get<std::vector<Step>>();
  problem.chosen = in.at("chosen");
}
}  // namespace warploom::vendor
