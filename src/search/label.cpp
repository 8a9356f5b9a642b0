#include "search/label.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>
#include <string>
#include <vector>
#include "base/casts.h"
#include "graph/graph.h"
#include "plan/region.h"

namespace warploom::search {
namespace {
using graph::Graph;
using graph::TensorId;

// What the whole graph calls what the region's nodes make.
std::set<std::string> results_of(const plan::Region& region) {
  std::set<std::string> made;
  for (const graph::Node& node : region.graph.nodes)
    for (const TensorId output : node.outputs)
      made.insert(region.tensors[as_size(output)]);
  return made;
}
}  // namespace

std::string label_of(const Graph& given, const Graph& whole, const plan::Region& region) {
  const auto made = results_of(region);
  std::set<std::string> left;
  for (const graph::Tensor& tensor : whole.tensors)
    left.insert(tensor.name);
  std::set<TensorId> read_inside;  // by operators that count
  std::vector<std::string> operators;
  for (auto node = given.nodes.rbegin(); node != given.nodes.rend(); ++node) {
    const bool inside = std::ranges::any_of(node->outputs, [&](TensorId output) {
      const std::string& name = given.tensor(output).name;
      return left.contains(name) ? made.contains(name) : read_inside.contains(output);
    });
    if (!inside) continue;
    operators.emplace_back(graph::name_of(node->op));
    read_inside.insert(node->inputs.begin(), node->inputs.end());
  }
  if (operators.empty()) return region.graph.name;
  std::ranges::reverse(operators);
  return fmt::format("{}", fmt::join(operators, " + "));
}
}  // namespace warploom::search
