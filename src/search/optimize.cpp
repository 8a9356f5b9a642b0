#include "search/optimize.h"
#include <algorithm>
#include <set>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/driver.h"
#include "search/graph_search.h"
#include "search/options.h"
#include "search/outcome.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
// The capabilities to plan for on the GPU that is here. A newer architecture than any that is known
// is planned for as the newest whose instructions it still has, and compiled under its own name.
Result<target::Capabilities> gpu_here() {
  WARPLOOM_TRY(const runtime::Driver* cuda, runtime::Driver::get());
  WARPLOOM_TRY(const std::string arch, cuda->arch());
  if (auto known = target::capabilities_of(arch)) return known;
  WARPLOOM_TRY(target::Capabilities found, target::capabilities_of("sm_80"));
  if (!arch.starts_with("sm_8")) found.arch = arch;
  return found;
}
}  // namespace

Result<target::Capabilities> resolve_target(const std::string& name) {
  if (name != "auto") return target::capabilities_of(name);
  if (auto here = gpu_here()) return here;
  return target::capabilities_of("cpu");
}

Track default_track(const graph::Graph& graph) {
  for (const auto& node : graph.nodes)
    if (graph::is_scaling(node.op)) return Track::fp8;  // 8-bit operands, scaled
  std::set<Dtype> types;
  for (const auto id : graph.inputs)
    if (is_float(graph.tensor(id).dtype)) types.insert(graph.tensor(id).dtype);
  if (types.empty() || std::ranges::any_of(types, [](Dtype dtype) { return bits_of(dtype) >= 32; }))
    return Track::fp32;
  if (types.contains(Dtype::bf16)) return Track::bf16;
  return types.contains(Dtype::f16) ? Track::fp16 : Track::fp8;
}

Result<Outcome> optimize(const graph::Graph& graph, const Options& options) {
  return GraphSearch(options).run(graph);
}
}  // namespace warploom::search
