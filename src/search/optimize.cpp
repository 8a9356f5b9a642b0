#include "search/optimize.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/link.h"
#include "plan/region.h"
#include "runtime/compile.h"
#include "runtime/noise.h"
#include "runtime/rates.h"
#include "search/budget.h"
#include "search/judging.h"
#include "search/label.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/search_space.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "target/card.h"
#include "vendor/match.h"
#include "vendor/problem.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// Whether capabilities of the card that is here are those that a name asks for: of any card, of its
// architecture, or of this card.
bool means(const std::string& name, const target::Capabilities& here) {
  if (name == "auto" || name == here.arch) return true;
  const target::Card* const card = target::card_named(name);
  return card && card->name == here.card;
}

// Rates of a card that was never measured, where the second that takes is little of the budget.
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
}  // namespace

Result<target::Capabilities> resolve_target(const std::string& name) {
  if (name == "cpu") return runtime::capabilities_here(Engine::cpu);
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

namespace {
// One of the graph's different regions: what is searched, and what was found.
struct RegionSearch {
  Task task;
  int times = 0;  // how often the region occurs
  Outcome outcome;

  double weight() const { return times * task.bound.us + 1e-3; }
};

// The search of a whole graph: its regions' searches one after the other, and their results as one
// plan.
class GraphSearch {
 public:
  explicit GraphSearch(const Options& options)
      : options_(options), budget_(options.budget_seconds, false) {}

  Result<Outcome> run(const graph::Graph& given) {
    say("planning");
    WARPLOOM_TRY(target::Capabilities found, resolve_target(options_.target));
    const auto capabilities = with_rates(std::move(found), options_.budget_seconds);
    WARPLOOM_TRY(const graph::Graph primitive, graph::decompose(given));
    WARPLOOM_TRY(graph::Graph graph, plan::lower_for_target(given, capabilities));
    const auto limits =
        plan::Limits::of_budget(options_.budget_seconds, budget_.start(), options_.interrupted);
    WARPLOOM_TRY(partition_,
                 plan::regions_of(graph, options_.track, capabilities, limits, options_.constants));
    whole_ =
        make_task({primitive, options_.track}, capabilities, options_.seed, options_.constants);
    WARPLOOM_CHECK(make_searches(given, capabilities, limits));
    const bool trivial = partition_.trivial(graph);
    if (!trivial) whole_.setup.reference = whole_reference(given, primitive);
    WARPLOOM_CHECK(search(trivial ? 0 : std::min(0.2 * options_.budget_seconds, 60.0)));
    Outcome outcome = summed();
    outcome.list = linked(graph, outcome.plan);
    name_regions(outcome, given, graph);
    if (!trivial && !outcome.interrupted) WARPLOOM_CHECK(judge(outcome));
    outcome.speedup = outcome.verdict.speedup.median;
    outcome.card = target::card_to_json(capabilities);
    outcome.bound = whole_.bound;
    const double us = outcome.verdict.median_us;
    outcome.roofline_fraction = us > 0 ? whole_.bound.us / us : 0;
    outcome.plan.graph = std::move(graph);
    outcome.seconds = budget_.spent();
    return outcome;
  }

 private:
  void say(const char* phase) const {
    if (options_.on_progress)
      options_.on_progress({.budget_seconds = options_.budget_seconds, .phase = phase});
  }

  Status make_searches(const graph::Graph& given, const target::Capabilities& capabilities,
                       const plan::Limits& limits);
  Status search(double kept_back);
  Options options_for(size_t number, double share, double asked_share, double kept_back);
  Outcome summed() const;
  LaunchList linked(const graph::Graph& graph, plan::Plan& plan) const;
  std::optional<vendor::VendorProblem> whole_reference(const graph::Graph& given,
                                                       const graph::Graph& primitive) const;
  void name_regions(Outcome& out, const graph::Graph& given, const graph::Graph& whole) const;
  Status judge(Outcome& out);
  void compile_as_one(const LaunchList& list) const;

  const Options& options_;
  Budget budget_;
  plan::Partition partition_;
  Task whole_;
  std::vector<RegionSearch> searches_;       // one a different region
  std::map<std::string, size_t> search_of_;  // by the region's identity
  std::vector<RegionSearch*> order_;         // in which they are searched
};

Status GraphSearch::make_searches(const graph::Graph& given,
                                  const target::Capabilities& capabilities,
                                  const plan::Limits& limits) {
  for (const plan::Region& region : partition_.regions) {
    if (region.alias) continue;
    WARPLOOM_CHECK(limits.check());
    const auto [known, fresh] = search_of_.try_emplace(region.identity, searches_.size());
    if (fresh) {
      Task& task = searches_.emplace_back().task;
      const kernels::Region alone(region.graph, options_.track);
      task = make_task(alone, capabilities, options_.seed, region.constants);
      task.setup.ranges = region.ranges;
      task.space = search_space_of(alone, capabilities, region.constants, options_.exact);
      const auto operators = vendor::operators_of(given, region.graph, region.tensors);
      task.setup.reference = vendor::match_region(region.graph, operators, options_.track);
    }
    ++searches_[known->second].times;
  }
  return ok();
}

// A region's share of the budget, half in equal parts, half by the time that each takes at best:
// the share of number `i` among those from number `first` on.
double share_of(const std::vector<RegionSearch*>& order, size_t i, size_t first) {
  double weights = 0;
  for (size_t j = first; j < order.size(); ++j) weights += order[j]->weight();
  const double equal = 1 / static_cast<double>(order.size() - first);
  return 0.5 * equal + 0.5 * order[i]->weight() / weights;
}

// Every different region in turn, the lightest first: what those do not use of their shares is left
// for the others. `kept_back`: seconds that are for the whole.
Status GraphSearch::search(double kept_back) {
  for (RegionSearch& one : searches_) order_.push_back(&one);
  std::ranges::stable_sort(order_, {}, [](const RegionSearch* one) { return one->weight(); });
  for (size_t i = 0; i < order_.size(); ++i) {
    const double share = share_of(order_, i, i);
    const double asked_share = share_of(order_, i, 0);
    auto found = tune(order_[i]->task, options_for(i, share, asked_share, kept_back));
    if (!found && order_.size() > 1) {
      std::string& place = found.error().place;
      place = fmt::format("region {} of {}, {}", i + 1, order_.size(), place);
    }
    WARPLOOM_TRY(order_[i]->outcome, std::move(found));
  }
  return ok();
}

Options GraphSearch::options_for(size_t number, double share, double asked_share,
                                 double kept_back) {
  const double budget = options_.budget_seconds;
  Options options = options_;
  options.asked_seconds = asked_share * budget;
  const double left = budget - kept_back - budget_.spent();
  options.budget_seconds = std::max(share * left, 0.02 * budget);
  options.patience_seconds = std::max(10.0, budget);
  const std::string name = order_[number]->task.setup.graph.name;
  options.on_progress = [this, number, name, before = budget_.spent()](Progress progress) {
    progress.seconds += before;
    progress.budget_seconds = options_.budget_seconds;
    progress.region = static_cast<int>(number) + 1;
    progress.regions = static_cast<int>(order_.size());
    progress.region_name = name;
    if (options_.on_progress) options_.on_progress(progress);
  };
  return options;
}

// The regions' figures added up.
Outcome GraphSearch::summed() const {
  Outcome out = searches_.empty() ? Outcome{} : searches_[0].outcome;
  out.problem = whole_.setup.graph.name;
  std::vector<Outcome> regions;
  for (const RegionSearch& one : searches_) {
    regions.push_back(one.outcome);
    regions.back().times = one.times;
    regions.back().speedup = one.outcome.verdict.speedup.median;
    regions.back().bound = one.task.bound;
  }
  sum_up(out, regions);
  out.plan = {{}, options_.track, out.target, options_.constants, partition_, {}};
  return out;
}

// The regions' launch lists as one. Adds their configs to the plan.
LaunchList GraphSearch::linked(const graph::Graph& graph, plan::Plan& plan) const {
  std::vector<const LaunchList*> lists;
  for (const plan::Region& region : partition_.regions) {
    lists.push_back(nullptr);
    plan.configs.emplace_back();
    if (region.alias) continue;
    const Outcome& found = searches_[search_of_.at(region.identity)].outcome;
    lists.back() = &found.list;
    plan.configs.back() = found.schedule;
  }
  return plan::link(graph, partition_, lists, options_.constants);
}

// What libraries make of the whole model at once, where what they pass on has room.
std::optional<vendor::VendorProblem> GraphSearch::whole_reference(
    const graph::Graph& given, const graph::Graph& primitive) const {
  constexpr int64_t kMostPassedOn = int64_t{4} << 30;
  int64_t bytes = 0;
  for (const graph::Tensor& tensor : given.tensors) bytes += graph::byte_count(tensor);
  if (bytes > kMostPassedOn) return std::nullopt;
  return vendor::match_region(primitive, given, options_.track);
}

// What the model calls each region's operators and its output: of equal ones, the first.
void GraphSearch::name_regions(Outcome& out, const graph::Graph& given,
                               const graph::Graph& whole) const {
  for (const plan::Region& region : partition_.regions) {
    if (region.alias) continue;
    Outcome& named = out.regions[search_of_.at(region.identity)];
    if (!named.output.empty()) continue;
    named.label = label_of(given, whole, region);
    named.output = listed(region.stored());
  }
  for (const Outcome& region : out.regions)
    if (region.reference.empty() || region.verdict.reference_us <= 0)
      out.without_reference.push_back(region.label);
}

// As one list its kernels are compiled in other company than as regions', and some renamed: into
// the cache, where the evaluator finds them.
void GraphSearch::compile_as_one(const LaunchList& list) const {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  runtime::Turns turns((options_.jobs > 0 ? options_.jobs : cores) - 1);  // one is ours
  (void)runtime::compile(list, {.turns = &turns, .ended = options_.interrupted});
}

// The plan as a whole, in a fresh process, on inputs that no region was judged on.
Status GraphSearch::judge(Outcome& out) {
  say("judging the joined plan whole");
  compile_as_one(out.list);
  verify::Setup setup = whole_.setup;
  setup.seed ^= kFreshSeed;
  verify::Ready ready;
  const double seconds = std::max(0.5, budget_.left());
  const auto verdict = judge_plan(setup, out.list, seconds, options_.interrupted, &ready);
  out.interrupted = !verdict && verdict.error().code == ErrorCode::kInterrupted;
  if (out.interrupted) return ok();
  if (!verdict) return fail(verdict.error());
  const verify::Verdict regions = std::exchange(out.verdict, *verdict);
  out.proven = true;
  // Libraries may do the whole model in fewer calls, or between regions in layouts of their own:
  // then the sum of the regions' references would flatter.
  const double whole_us = out.verdict.reference_us;
  const bool is_best = regions.reference_us <= 0 || whole_us < regions.reference_us;
  const bool whole_is_faster = whole_us > 0 && is_best;
  if (whole_is_faster) {
    out.reference = ready.reference;
    out.reference_covers_model = true;
    return ok();
  }
  // The references took turns with the regions, each in its own run: they stay theirs.
  out.verdict.reference_us = regions.reference_us;
  out.verdict.reference_low_us = regions.reference_low_us;
  out.verdict.reference_high_us = regions.reference_high_us;
  out.verdict.reference_error = regions.reference_error;
  out.verdict.reference_dropped = regions.reference_dropped;
  out.verdict.speedup = regions.speedup;
  out.verdict.noise = runtime::worse_of(out.verdict.noise, regions.noise);
  return ok();
}
}  // namespace

Result<Outcome> optimize(const graph::Graph& graph, const Options& options) {
  return GraphSearch(options).run(graph);
}
}  // namespace warploom::search
