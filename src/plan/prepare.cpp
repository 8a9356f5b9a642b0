#include "plan/prepare.h"
#include <fmt/format.h>
#include <string>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "codegen/prepare.h"
#include "graph/graph.h"
#include "plan/fusion.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::TensorId;

// By the names of the whole graph.
Names constants_of(const Graph& whole, const Names& named) {
  Names known = named;
  for (const graph::Tensor& tensor : whole.tensors)
    if (tensor.constant) known.insert(tensor.name);
  return known;
}
}  // namespace

Status check_constants(const Graph& graph, const Names& named) {
  const auto name = [&](TensorId id) { return graph.tensor(id).name; };
  for (const std::string& constant : named) {
    if (contains(graph.inputs, constant, name)) continue;
    Error error{ErrorCode::kUsage, "the model has no such input", "--constant " + constant};
    error.expected = listed(graph.inputs, name);
    error.found = constant;
    error.remedy = "name an input that holds the same in every call";
    return fail(error);
  }
  return ok();
}

void mark_constants(Partition& partition, const Graph& whole, const Names& named) {
  Names known = constants_of(whole, named);
  for (Region& region : partition.regions) {
    for (const TensorId id : region.graph.inputs)
      if (known.contains(region.tensors[as_size(id)]))
        region.constants.insert(region.graph.tensor(id).name);
    if (region.constants.size() == region.graph.inputs.size())
      for (const std::string& stored : region.stored())
        known.insert(stored);
    if (!region.constants.empty())
      region.identity += fmt::format("constant: {}\n", listed(region.constants));
  }
}

void add_prepare(LaunchList& list, const Graph& graph, const Names& named) {
  const Names known = constants_of(graph, named);
  list.constants.clear();
  for (const BufferSpec& input : list.inputs)
    if (known.contains(input.name)) list.constants.push_back(input.name);
  mark_prepare(list);
  if (list.prepare.empty()) list.constants.clear();
}
}  // namespace warploom::plan
