#include "search/optimize.h"
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/machine.h"
#include "runtime/rates.h"
#include "search/choice_search.h"
#include "search/graph_search.h"
#include "search/options.h"
#include "search/outcome.h"
#include "target/capabilities.h"
#include "target/card.h"
#include "target/instruction_set.h"

namespace warploom::search {

namespace {
// Whether capabilities of the card that is here are those that a name asks for: of any card, of
// its architecture, or of this card.
bool means(const std::string& name, const target::Capabilities& here) {
  if (name == "auto" || name == here.arch) return true;
  const target::Card* const card = target::card_named(name);
  return card && card->name == here.card;
}
}  // namespace

target::Capabilities with_rates(target::Capabilities capabilities, double budget_seconds) {
  constexpr double kSeconds = 1;
  constexpr double kLittle = 0.05;
  const bool known = !capabilities.gpu || capabilities.measured.copy_gbs > 0;
  const auto here = runtime::capabilities_here(Engine::cuda);
  const bool is_here = here && here->card == capabilities.card;
  if (known || !is_here || kSeconds > kLittle * budget_seconds) return capabilities;
  const auto measured = runtime::rates_within(Engine::cuda, kSeconds);
  return measured ? target::with_measured(std::move(capabilities), *measured) : capabilities;
}

namespace {
// An instruction set: of this processor on this machine, else as nobody knows it.
Result<target::Capabilities> with_set(const std::string& name) {
  WARPLOOM_TRY(target::Capabilities here, runtime::capabilities_here(Engine::cpu));
  if (name == here.arch) return here;
  WARPLOOM_TRY(target::Capabilities other, target::capabilities_of(name));
  if (!runtime::runs_on(name, here.arch)) return other;
  other.card = here.card;
  other.measured.copy_gbs = here.measured.copy_gbs;  // of memory, whatever the vectors
  return other;
}
}  // namespace

Result<target::Capabilities> resolve_target(const std::string& name) {
  if (name == "cpu") return runtime::capabilities_here(Engine::cpu);
  if (target::instruction_set(name)) return with_set(name);
  const auto here = runtime::capabilities_here(Engine::cuda);
  if (here && means(name, *here)) return *here;
  return name == "auto" ? runtime::capabilities_here(Engine::cpu) : target::capabilities_of(name);
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
  if (options.choice) return GraphSearch(options).run(graph);
  return search_choices(graph, options);
}
}  // namespace warploom::search
