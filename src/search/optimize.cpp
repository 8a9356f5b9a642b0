#include "search/optimize.h"
#include <thread>
#include "graph/common_subexpressions.h"
#include "runtime/driver.h"
#include "search/explore.h"
#include "search/label.h"
#include "vendor/match.h"

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
  return types.contains(Dtype::bf16)  ? Track::bf16
         : types.contains(Dtype::f16) ? Track::fp16
                                      : Track::fp8;
}

Result<graph::Graph> planned(graph::Graph given, const target::Capabilities& capabilities) {
  WARPLOOM_TRY(graph::Graph graph, graph::merge_common(std::move(given)));
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
  if (capabilities.gpu && std::ranges::none_of(graph.tensors, is_long)) return graph;
  return graph::split_scans(std::move(graph), capabilities.num_sms);
}

Result<Partition> regions_of(const graph::Graph& graph, Track track,
                             const target::Capabilities& capabilities, const Limits& limits) {
  const auto rank = [&](const graph::Graph& region) -> std::optional<int> {
    std::optional<int> best;
    for (const auto& family : kernels::families_for({region, track}, capabilities))
      best = std::min(best.value_or(kLastRank), static_cast<int>(family->suit()));
    return best;
  };
  return partition(graph, rank, limits);
}

Problem outline_of(const kernels::Region& region, const target::Capabilities& capabilities,
                   uint64_t seed) {
  const kernels::Work work = kernels::work_of(region);
  return {
      .setup = {.graph = region.graph,
                .track = region.track,
                .engine = capabilities.gpu ? Engine::cuda : Engine::cpu,
                .floor_us = verify::floor_us(capabilities, region.track, work.flops, work.bytes),
                .flops = work.flops > 0 ? work.flops : work.bytes,
                .seed = seed},
      .bound = verify::bound_of(capabilities, region.track, work.flops, work.bytes)};
}

namespace {
class Planner {
 public:
  explicit Planner(const Options& options) : options_(options) {}

  Result<Outcome> run(const graph::Graph& given) {
    say("planning");
    WARPLOOM_TRY(const auto capabilities, resolve_target(options_.target));
    WARPLOOM_TRY(const graph::Graph primitive, graph::decompose(given));
    WARPLOOM_TRY(const graph::Graph graph, planned(given, capabilities));
    const Limits limits = Limits::of_budget(options_.budget_seconds, start_, options_.interrupted);
    WARPLOOM_TRY(partition_, regions_of(graph, options_.track, capabilities, limits));
    whole_ = outline_of({primitive, options_.track}, capabilities, options_.seed);
    for (const Region& region : partition_.regions) {
      if (region.alias) continue;
      WARPLOOM_CHECK(limits.check());
      const auto [known, fresh] = task_of_.try_emplace(region.identity, tasks_.size());
      if (fresh) {
        Task& task = tasks_.emplace_back();
        task.problem = outline_of({region.graph, options_.track}, capabilities, options_.seed);
        task.problem.setup.ranges = region.ranges;
        task.problem.catalogue = catalogue_of({region.graph, options_.track}, capabilities);
        task.problem.setup.reference = vendor::match_region(
            region.graph, vendor::operators_of(given, region.graph, region.tensors),
            options_.track);
      }
      ++tasks_[known->second].times;
    }
    const bool trivial = partition_.trivial(graph);
    if (!trivial) whole_.setup.reference = whole_reference(given, primitive);
    WARPLOOM_CHECK(search(trivial ? 0 : std::min(0.2 * options_.budget_seconds, 60.0)));
    Outcome outcome = summed(graph);
    name_regions(outcome, given, graph);
    if (!trivial && !outcome.interrupted) WARPLOOM_CHECK(judge(outcome));
    outcome.speedup = outcome.verdict.speedup.median;
    outcome.bound = whole_.bound;
    const double us = outcome.verdict.median_us;
    outcome.roofline_fraction = us > 0 ? whole_.bound.us / us : 0;
    outcome.seconds = now();
    return outcome;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Verdict = verify::Verdict;

  struct Task {
    Problem problem;
    int times = 0;  // how often the region occurs
    Outcome outcome;

    double weight() const { return times * problem.bound.us + 1e-3; }
  };

  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void say(const char* phase) const {
    if (options_.on_progress)
      options_.on_progress({.budget_seconds = options_.budget_seconds, .phase = phase});
  }

  // Every different region in turn, the lightest first: what those do not use of their shares is
  // left for the others.
  Status search(double kept_back) {
    std::vector<Task*> order;
    for (Task& task : tasks_) order.push_back(&task);
    std::ranges::stable_sort(order, {}, [](const Task* task) { return task->weight(); });
    // Half in equal parts, half by the time that each takes at best: a region's among those from
    // number `first` on.
    const auto share_of = [&](size_t i, size_t first) {
      double weights = 0;
      for (size_t j = first; j < order.size(); ++j) weights += order[j]->weight();
      return 0.5 / static_cast<double>(order.size() - first) + 0.5 * order[i]->weight() / weights;
    };
    for (size_t i = 0; i < order.size(); ++i) {
      const double share = share_of(i, i);
      Options options = options_;
      options.asked_seconds = share_of(i, 0) * options_.budget_seconds;
      options.budget_seconds = std::max(share * (options_.budget_seconds - kept_back - now()),
                                        0.02 * options_.budget_seconds);
      options.patience_seconds = std::max(10.0, options_.budget_seconds);
      const std::string& name = order[i]->problem.setup.graph.name;
      options.on_progress = [&, before = now()](Progress progress) {
        progress.seconds += before;
        progress.budget_seconds = options_.budget_seconds;
        progress.region = static_cast<int>(i) + 1;
        progress.regions = static_cast<int>(order.size());
        progress.region_name = name;
        if (options_.on_progress) options_.on_progress(progress);
      };
      auto found = explore(order[i]->problem, options);
      if (!found && order.size() > 1)
        found.error().place =
            fmt::format("region {} of {}, {}", i + 1, order.size(), found.error().place);
      WARPLOOM_TRY(order[i]->outcome, std::move(found));
    }
    return ok();
  }

  // The regions' figures added up, and their lists joined.
  Outcome summed(const graph::Graph& graph) const {
    Outcome out = tasks_.empty() ? Outcome{} : tasks_[0].outcome;
    out.problem = whole_.setup.graph.name;
    std::vector<Outcome> regions;
    for (const Task& task : tasks_) {
      regions.push_back(task.outcome);
      regions.back().times = task.times;
      regions.back().speedup = task.outcome.verdict.speedup.median;
      regions.back().bound = task.problem.bound;
    }
    sum_up(out, regions);
    std::vector<const LaunchList*> lists;
    for (const Region& region : partition_.regions)
      lists.push_back(region.alias ? nullptr : &tasks_[task_of_.at(region.identity)].outcome.list);
    out.list = join(graph, partition_, lists);
    return out;
  }

  // What libraries make of the whole model at once, where what they pass on has room.
  std::optional<vendor::VendorProblem> whole_reference(const graph::Graph& given,
                                                       const graph::Graph& primitive) const {
    constexpr int64_t kMostPassedOn = int64_t{4} << 30;
    int64_t bytes = 0;
    for (const graph::Tensor& tensor : given.tensors) bytes += graph::byte_count(tensor);
    if (bytes > kMostPassedOn) return std::nullopt;
    return vendor::match_region(primitive, given, options_.track);
  }

  // What the model calls each region's operators and its output: of equal ones, the first.
  void name_regions(Outcome& out, const graph::Graph& given, const graph::Graph& whole) const {
    for (const Region& region : partition_.regions) {
      if (region.alias) continue;
      Outcome& named = out.regions[task_of_.at(region.identity)];
      if (!named.output.empty()) continue;
      named.label = label_of(given, whole, region);
      named.output = region.tensors[static_cast<size_t>(region.graph.outputs[0])];
    }
    for (const Outcome& region : out.regions)
      if (region.reference.empty() || region.verdict.reference_us <= 0)
        out.without_reference.push_back(region.label);
  }

  // The plan as a whole, in a fresh process, on inputs that no region was judged on.
  Status judge(Outcome& out) {
    say("judging the joined plan whole");
    // As one list its kernels are compiled in other company than as regions', and some renamed:
    // into the cache, where the evaluator finds them.
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    runtime::Turns turns((options_.jobs > 0 ? options_.jobs : cores) - 1);  // one is ours
    (void)runtime::compile(out.list, {.turns = &turns, .ended = options_.interrupted});
    verify::Setup setup = whole_.setup;
    setup.seed ^= kFreshSeed;
    verify::Ready ready;
    const auto verdict = judge_plan(setup, out.list, std::max(0.5, options_.budget_seconds - now()),
                                    options_.interrupted, &ready);
    out.interrupted = !verdict && verdict.error().code == ErrorCode::kInterrupted;
    if (out.interrupted) return ok();
    if (!verdict) return fail(verdict.error());
    const verify::Verdict regions = std::exchange(out.verdict, *verdict);
    out.proven = true;
    // Libraries may do the whole model in fewer calls, or between regions in layouts of their own:
    // then the sum of the regions' references would flatter.
    const bool whole_is_faster =
        out.verdict.reference_us > 0 &&
        (regions.reference_us <= 0 || out.verdict.reference_us < regions.reference_us);
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

  const Options& options_;
  const Clock::time_point start_ = Clock::now();
  Partition partition_;
  Problem whole_;
  std::vector<Task> tasks_;                // one a different region
  std::map<std::string, size_t> task_of_;  // by the region's identity
};
}  // namespace

Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list,
                                   double seconds, const std::atomic<bool>* interrupted,
                                   verify::Ready* ready) {
  WARPLOOM_TRY(auto evaluator, verify::Evaluator::start(setup, {.interrupted = interrupted}));
  if (ready) *ready = evaluator.ready();
  WARPLOOM_TRY(verify::Verdict verdict, evaluator.judge(whole_request(list, seconds, 60'000)));
  const Error& why = verdict.error_found;
  if (verdict.accepted) return verdict;
  if (is_fatal(why.code)) return fail(why);
  return fail({ErrorCode::kPlanWrong, "every region is right alone, the plan of them all is not",
               setup.graph.name, why.expected,
               fmt::format("{}: {} {}", code_text(why.code), why.message, why.found),
               "take track tolerance, or report it"});
}

Result<Outcome> optimize(const graph::Graph& graph, const Options& options) {
  return Planner(options).run(graph);
}
}  // namespace warploom::search
