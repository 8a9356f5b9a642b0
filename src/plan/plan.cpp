#include "plan/plan.h"
#include <fmt/format.h>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "plan/boundary_change.h"
#include "plan/link.h"
#include "plan/region.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
std::vector<std::string> read_by(const Region& region) {
  std::vector<std::string> names;
  for (const graph::TensorId id : region.graph.inputs)
    names.push_back(region.tensors[as_size(id)]);
  return names;
}
}  // namespace

std::string Plan::text() const {
  std::string out =
      fmt::format("plan of {} for {}, track {}\n", graph.name, target, name_of(track));
  if (!constants.empty()) out += fmt::format("constant: {}\n", listed(constants));
  if (!rewrites.empty())
    out += fmt::format("rewrites: {}\n", listed(rewrites, &graph::Rewrite::text, "; "));
  if (!partition.changes.empty())
    out += fmt::format("boundaries: {}\n", to_text(partition.changes));
  for (size_t i = 0; i < partition.regions.size(); ++i) {
    const Region& region = partition.regions[i];
    const std::string read = listed(read_by(region));
    const std::string stored = listed(region.stored());
    const std::string_view in_place = region.alias ? ", in place" : "";
    out += fmt::format("{} {}: {} -> {}{}\n", i, region.graph.name, read, stored, in_place);
    if (!region.alias) out += fmt::format("  {}\n", configs[i].text());
  }
  return out;
}

std::string Plan::hash() const {
  std::string all = graph::to_text(graph) + text();
  for (const Region& region : partition.regions) {
    all += region.identity;
    for (const int node : region.nodes)
      all += fmt::format(" {}", node);
  }
  return hash_hex(all);
}

Result<LaunchList> build_plan(const Plan& plan, const target::Capabilities& capabilities) {
  std::deque<LaunchList> built;
  std::vector<const LaunchList*> lists;
  for (size_t i = 0; i < plan.partition.regions.size(); ++i) {
    const Region& region = plan.partition.regions[i];
    lists.push_back(nullptr);
    if (region.alias) continue;
    WARPLOOM_TRY(LaunchList list,
                 kernels::build({region.graph, plan.track}, plan.configs[i], capabilities));
    lists.back() = &built.emplace_back(std::move(list));
  }
  return link(plan.graph, plan.partition, lists, plan.constants);
}
}  // namespace warploom::plan
