// The regions' results as one plan, and its judgement as a whole.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "plan/link.h"
#include "plan/region.h"
#include "runtime/compile.h"
#include "runtime/noise.h"
#include "search/budget.h"
#include "search/graph_search.h"
#include "search/label.h"
#include "search/outcome.h"
#include "search/plan_judge.h"
#include "search/plan_repair.h"
#include "search/tuning_session.h"
#include "vendor/match.h"
#include "vendor/problem.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// What judging the plan takes beside judging its regions, where it is not known.
constexpr double kWholeOfRegions = 0.5;
}  // namespace

// What libraries make of the whole model at once, where what they pass on has room.
std::optional<vendor::VendorProblem> GraphSearch::whole_reference(
    const graph::Graph& given, const graph::Graph& primitive) const {
  constexpr int64_t kMostPassedOn = int64_t{4} << 30;
  int64_t bytes = 0;
  for (const graph::Tensor& tensor : given.tensors)
    bytes += graph::byte_count(tensor);
  if (bytes > kMostPassedOn) return std::nullopt;
  return vendor::match_region(primitive, given, options_.track);
}

// Every region's outcome, and the plan of them. One that the time was too short for takes its
// fallback, which the judgement of the whole decides on.
Status GraphSearch::join(Outcome& out) {
  for (RegionSearch* one : order_) {
    TuningSession& session = *one->session;
    const bool may_stand_in = !is_trivial_ && !session.is_right() && !session.has_tried();
    if (may_stand_in && !options_.is_interrupted() && !budget_.is_over()) session.take_fallback();
    Result<Outcome> found = session.conclude();
    if (!found) return fail(with_place(found.error(), *one));
    one->outcome = *std::move(found);
  }
  out = summed();
  out.list = linked(out.plan);
  return ok();
}

// The regions' figures added up.
Outcome GraphSearch::summed() const {
  Outcome out = regions_.empty() ? Outcome{} : regions_[0]->outcome;
  out.problem = whole_.setup.graph.name;
  std::vector<Outcome> regions;
  for (const RegionSearch* one : regions_) {
    regions.push_back(one->outcome);
    regions.back().times = one->times;
    regions.back().speedup = one->outcome.verdict.speedup.median;
    regions.back().bound = one->task.bound;
  }
  sum_up(out, regions);
  out.plan = {{}, options_.track, out.target, options_.constants, partition_, {}};
  return out;
}

// The regions' launch lists as one. Adds their configs to the plan.
LaunchList GraphSearch::linked(plan::Plan& plan) const {
  std::vector<const LaunchList*> lists;
  for (const plan::Region& region : partition_.regions) {
    lists.push_back(nullptr);
    plan.configs.emplace_back();
    if (region.alias) continue;
    const Outcome& found = searches_[search_of_.at(region.identity)]->outcome;
    lists.back() = &found.list;
    plan.configs.back() = found.schedule;
  }
  return plan::link(graph_, partition_, lists, options_.constants);
}

// What the model calls each region's operators and its output: of equal ones, the first.
void GraphSearch::name_regions(Outcome& out, const graph::Graph& given) const {
  for (const plan::Region& region : partition_.regions) {
    if (region.alias) continue;
    const RegionSearch* const one = searches_[search_of_.at(region.identity)].get();
    Outcome& named = out.regions[as_size(std::ranges::find(regions_, one) - regions_.begin())];
    if (!named.output.empty()) continue;
    named.label = label_of(given, graph_, region);
    named.output = listed(region.stored());
  }
  for (const Outcome& region : out.regions)
    if (region.reference.empty() || region.verdict.reference_us <= 0)
      out.without_reference.push_back(region.label);
}

// As one list its kernels are compiled in other company than as regions', and some renamed: into
// the cache, where the evaluator finds them.
void GraphSearch::compile_as_one(const LaunchList& list) const {
  constexpr double kLongest = 60;  // seconds, of one text; of several four times as long
  using std::chrono::milliseconds;
  const double left = std::clamp(budget_.left(), 0.0, 4 * kLongest);
  const Budget::Clock::time_point before = Budget::Clock::now();
  // One turn is for the compiler that needs none beside it.
  if (!turns_->try_acquire_for(milliseconds(static_cast<int>(1e3 * left)))) return;
  const auto waited = std::chrono::duration_cast<milliseconds>(Budget::Clock::now() - before);
  const milliseconds limit = milliseconds(static_cast<int>(250 * left)) - waited / 4;
  if (limit.count() > 0)
    (void)runtime::compile(list, {.time = limit,
                                  .turns = turns_.get(),
                                  .ended = options_.interrupted,
                                  .foreign = list.foreign});
  turns_->release();
}

Result<verify::Verdict> GraphSearch::judge_list(const LaunchList& list, const Budget& soft) {
  // Without an answer there is nothing to deliver: it has the whole of the time.
  const Budget kept = budget_.less(delivery_reserve());
  compile_as_one(list);
  return judge_->judge(list, {.soft = soft, .hard = proven_ ? kept : budget_});
}

// What is right as a whole; where that cannot be shown in time, what is right in parts, which the
// outcome says.
Result<Outcome> GraphSearch::whole(const graph::Graph& given) {
  constexpr double kGain = 0.995;  // of the time: what a plan must gain to be judged again
  WARPLOOM_TRY(Outcome out, judged_whole());
  while (out.proven && has_time_for_more()) {
    proven_ = out;
    const double before = expected_us();
    WARPLOOM_CHECK(search_on());
    if (expected_us() > kGain * before || options_.is_interrupted()) break;
    WARPLOOM_CHECK(finish());
    WARPLOOM_TRY(out, judged_whole());
  }
  WARPLOOM_CHECK(take_faster_partition(out));
  prove_regions();
  name_regions(out, given);
  return out;
}

// What the regions' best take together.
double GraphSearch::expected_us() const {
  double us = 0;
  for (const RegionSearch* one : order_)
    us += one->times * one->session->best_us();
  return us;
}

// What was kept back for the last rounds may be more than these took.
bool GraphSearch::has_time_for_more() const {
  constexpr double kLeast = 1;  // seconds
  const bool goes_on = !is_trivial_ && has_room_for_all_ && !options_.is_interrupted();
  return goes_on && budget_.less(reserve()).left() > kLeast;
}

Result<Outcome> GraphSearch::judged_whole() {
  Outcome out;
  Status joined = join(out);
  const bool is_new = joined && !is_trivial_ && !is_proven(out);
  if (is_new && !options_.is_interrupted()) joined = judge_whole(out);
  const bool is_better = joined && (is_trivial_ || (is_new && out.proven));
  if (proven_ && !is_better) {
    out = *std::move(proven_);
    out.interrupted = options_.is_interrupted();
    joined = ok();
  }
  WARPLOOM_CHECK(joined);
  return out;
}

// Whether it is the plan that was judged right.
bool GraphSearch::is_proven(const Outcome& out) const {
  return proven_ && proven_->plan.configs == out.plan.configs &&
         proven_->plan.partition.changes == out.plan.partition.changes;
}

// Regions may be right alone and wrong together: then the one whose error is nearest to its bound
// takes a more exact candidate, and so on.
Status GraphSearch::judge_whole(Outcome& out) {
  std::optional<Error> wrong;  // why the last plan was
  const auto judge = [&]() -> Result<verify::Verdict> {
    const bool is_first = !wrong;
    say(is_first ? "judging the joined plan whole" : "judging a more exact plan whole");
    if (!is_first) WARPLOOM_CHECK(join(out));
    out.proven = false;
    Result<verify::Verdict> verdict = judge_list(out.list, budget_.less(delivery_reserve()));
    if (!verdict && verdict.error().code == ErrorCode::kPlanWrong) wrong = verdict.error();
    return verdict;
  };
  const auto is_last = [this] {
    return budget_.less(delivery_reserve()).left() < 2 * judge_->seconds();
  };
  const Result<verify::Verdict> verdict =
      judge_until_right({.judge = judge,
                         .take_more_exact = [this] { return take_more_exact(); },
                         .take_fallbacks = [this] { return take_fallbacks_everywhere(); },
                         .is_last = is_last});
  if (verdict) {
    take_whole(out, *verdict);
    return ok();
  }
  if (verdict.error().code != ErrorCode::kInterrupted) return fail(verdict.error());
  out.interrupted = options_.is_interrupted();
  if (wrong) return fail(*wrong);  // what was not judged is no better than what was
  return without_whole(out);
}

// The plan was not judged as a whole: a region that was not judged alone is no result.
Status GraphSearch::without_whole(const Outcome& out) const {
  if (out.interrupted) return ok();
  const auto is_unjudged = [](const Outcome& region) { return region.verdict.median_us <= 0; };
  const auto unjudged = std::ranges::count_if(out.regions, is_unjudged);
  if (unjudged == 0) return ok();
  Error error{ErrorCode::kNoCorrectCandidate};
  error.message = "the budget ended before the plan was judged right";
  error.place = whole_.setup.graph.name;
  error.expected = "a larger budget";
  error.found = fmt::format("{} of {} regions judged in {:.1f} s", out.regions.size() - unjudged,
                            out.regions.size(), budget_.spent());
  const double needed = needed_seconds();
  error.remedy = fmt::format("give it at least {:.0f} s: --budget {:.0f}s", needed, needed);
  return fail(std::move(error));
}

// As long as the regions that were judged took, for all of them; and as long for the whole.
double GraphSearch::needed_seconds() const {
  double seconds = 0;
  double count = 0;
  for (const RegionSearch* one : order_) {
    seconds += one->seconds;
    count += one->session->is_right() ? 1 : 0;
  }
  const double each = seconds / std::max(1.0, count);
  const double regions = each * static_cast<double>(order_.size());
  const double whole = std::max(judge_->seconds(), kWholeOfRegions * regions);
  return std::ceil(std::max(1.5 * budget_.seconds(), 1.5 * (regions + whole)));
}

bool GraphSearch::take_more_exact() {
  std::vector<RegionSearch*> by_strain = order_;
  std::ranges::stable_sort(by_strain, {},
                           [](const RegionSearch* one) { return -one->session->strain(); });
  return std::ranges::any_of(by_strain,
                             [](RegionSearch* one) { return one->session->take_more_exact(); });
}

bool GraphSearch::take_fallbacks_everywhere() {
  bool is_new = false;
  for (RegionSearch* one : order_)
    is_new |= one->session->take_fallback();
  return is_new;
}

// The verdict of the whole in place of the regions' sum.
void GraphSearch::take_whole(Outcome& out, const verify::Verdict& verdict) const {
  const verify::Verdict regions = std::exchange(out.verdict, verdict);
  out.proven = true;
  // Libraries may do the whole model in fewer calls, or between regions in layouts of their own:
  // then the sum of the regions' references would flatter.
  // A sum that some regions have no part in compares with nothing.
  const double whole_us = out.verdict.reference_us;
  const auto has_none = [](const Outcome& one) { return one.verdict.reference_us <= 0; };
  const bool is_sum_part = std::ranges::any_of(out.regions, has_none);
  const bool is_best = is_sum_part || whole_us < regions.reference_us;
  const bool whole_is_faster = whole_us > 0 && is_best;
  if (whole_is_faster) {
    out.reference = judge_->ready()->reference;
    out.reference_covers_model = true;
    return;
  }
  // The references took turns with the regions, each in its own run: they stay theirs.
  out.verdict.reference_us = regions.reference_us;
  out.verdict.reference_low_us = regions.reference_low_us;
  out.verdict.reference_high_us = regions.reference_high_us;
  out.verdict.reference_error = regions.reference_error;
  out.verdict.reference_dropped = regions.reference_dropped;
  out.verdict.speedup = regions.speedup;
  out.verdict.noise = runtime::worse_of(out.verdict.noise, regions.noise);
}
}  // namespace warploom::search
