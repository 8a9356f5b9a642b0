// How a target's graphs are cut: what is done to a graph before, and by which families.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "graph/common_subexpressions.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/stack_products.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "loopnest/loop_nest.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/prepare.h"
#include "target/capabilities.h"

namespace warploom::plan {
using graph::Graph;
using target::Capabilities;

namespace {
// Of a reduction that is cheaper made again than kept.
constexpr int64_t kFewTerms = 16;
}  // namespace

Result<Graph> primitives_for_target(Graph given, const Capabilities& capabilities) {
  WARPLOOM_TRY(Graph graph, graph::merge_common(std::move(given)));
  WARPLOOM_TRY(graph, graph::decompose(std::move(graph)));
  WARPLOOM_TRY(graph, graph::merge_common(std::move(graph)));
  if (capabilities.gpu) {
    WARPLOOM_TRY(graph, graph::pad_rows_to_sectors(std::move(graph)));
  }
  // On a GPU blocks look back at each other instead, along lines whose elements 32 bits count.
  const auto is_long = [](const graph::Tensor& tensor) {
    return std::ranges::any_of(tensor.shape,
                               [](int64_t size) { return size > loopnest::kLongestAxis; });
  };
  if (!capabilities.gpu || std::ranges::any_of(graph.tensors, is_long)) {
    WARPLOOM_TRY(graph, graph::split_scans(std::move(graph), capabilities.num_sms));
  }
  return graph;
}

Result<Graph> lower_for_target(Graph given, const Capabilities& capabilities, Track track,
                               const std::vector<graph::Rewrite>& rewrites) {
  WARPLOOM_TRY(Graph graph, primitives_for_target(std::move(given), capabilities));
  WARPLOOM_TRY(graph, graph::rewrite(std::move(graph), rewrites, track));
  // Last: what passes fold would be data that the model does not know. Families of sm_80 take a
  // product's second axis of columns for a convolution's pixels.
  if (capabilities.gpu && !capabilities.has_wgmma) return graph;
  return graph::stack_products(std::move(graph));
}

namespace {
// What a region's only loop nest does; nothing of those that take several.
std::optional<LoopWork> work_of_loops(const Graph& region, Track track) {
  const kernels::Region with{region, track};
  const auto& nests = with.nests();
  if (nests.size() != 1) return std::nullopt;
  LoopWork work;
  work.values = as_int(nests[0].values.size());
  const auto count = [&](const loopnest::Access& access) {
    if (access.tensor != graph::kAbsent)
      work.bytes += as_double(graph::byte_count(region.tensor(access.tensor)));
  };
  std::ranges::for_each(nests[0].loads, count);
  std::ranges::for_each(nests[0].outputs, count, &loopnest::LoopNest::Output::place);
  return work;
}
}  // namespace

Result<Boundaries> boundaries_of(const Graph& graph, Track track, const Capabilities& capabilities,
                                 const Limits& limits, const std::set<std::string>& constants) {
  // On a GPU loops compute what an element needs by themselves: reductions that others need as well
  // are for families that keep them.
  const auto repeats = [capabilities](const kernels::Region& region) {
    const auto& nests = region.nests();
    return capabilities.gpu && nests.size() == 1 && nests[0].repeats_reductions(kFewTerms);
  };
  const auto rank = [track, capabilities, repeats](const Graph& of) -> std::optional<int> {
    const kernels::Region region{of, track};
    std::optional<int> best;
    for (const auto& family : kernels::families_for(region, capabilities)) {
      const bool is_loops = &family->type() == &kernels::DirectConfig::type();
      if (is_loops && repeats(region)) continue;
      best = std::min(best.value_or(kLastRank), as_int(family->suit()));
    }
    return best;
  };
  const auto work = [track](const Graph& region) { return work_of_loops(region, track); };
  WARPLOOM_CHECK(check_constants(graph, constants));
  return Boundaries(graph, rank, limits, constants, work);
}

Result<Partition> regions_of(const Graph& graph, Track track, const Capabilities& capabilities,
                             const Limits& limits, const std::set<std::string>& constants,
                             const BoundaryChanges& changes) {
  WARPLOOM_TRY(Boundaries boundaries, boundaries_of(graph, track, capabilities, limits, constants));
  return boundaries.under(changes);
}
}  // namespace warploom::plan
