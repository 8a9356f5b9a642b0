// The partition of a network's graph, and the search for a better one (boundary_search.h).
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "search/boundary_search.h"
#include "search/budget.h"
#include "search/costs.h"
#include "search/graph_search.h"
#include "search/outcome.h"
#include "search/plan_archive.h"
#include "search/search_space.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "vendor/match.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
// Of the time for rounds that is left, for trials; the rest is for what they leave.
constexpr double kTrialsShare = 0.7;
// Judgements that a region of a trial has room for at the least.
constexpr double kLeastJudgements = 2;
// A trial whose regions take so much longer than those in whose place they stand is given up.
constexpr double kHopeless = 1.5;
// Of the time under fusion's own boundaries: what a plan with others must take as a whole to stay.
constexpr double kWholeGain = 0.98;

}  // namespace

// The partition that was asked for; else fusion's, or the one that an earlier search ended with.
Status GraphSearch::plan_regions(const plan::Limits& limits) {
  WARPLOOM_TRY(boundaries_, plan::boundaries_of(graph_, options_.track, capabilities_, limits,
                                                options_.constants));
  if (options_.boundaries) {
    WARPLOOM_TRY(plan::Partition asked, boundaries_->under(*options_.boundaries));
    return use(std::move(asked), limits);
  }
  WARPLOOM_TRY(plan::Partition fused, boundaries_->under({}));
  const auto is_computed = [](const plan::Region& region) { return !region.alias; };
  const bool are_several = std::ranges::count_if(fused.regions, is_computed) > 1;
  if (!are_several && !can_be_cut(limits)) return use(std::move(fused), limits);
  WARPLOOM_TRY(plan_archive_, PlanArchive::open(*given_, options_, capabilities_));
  WARPLOOM_CHECK(plan_archive_->find_start(graph_));
  const plan::BoundaryChanges& start = plan_archive_->start().boundaries;
  if (are_several || !start.empty()) WARPLOOM_CHECK(record_boundaries());
  if (start.empty()) return use(std::move(fused), limits);
  auto known = boundaries_->under(start);
  return use(known ? *std::move(known) : std::move(fused), limits);
}

// From now on the archive has the network.
Status GraphSearch::record_boundaries() {
  has_boundary_record_ = true;
  return plan_archive_->add();
}

// Whether the only region can be two.
bool GraphSearch::can_be_cut(const plan::Limits& limits) {
  const auto options = boundaries_->options({}, limits);
  return std::ranges::any_of(
      options, [](const plan::BoundaryOption& one) { return !one.refusal.has_value(); });
}

// From now on the search goes by this partition. Regions that no other one had get a search, and a
// session where the others have theirs.
Status GraphSearch::use(plan::Partition partition, const plan::Limits& limits) {
  partition_ = std::move(partition);
  for (const auto& one : searches_)
    one->times = 0;
  regions_.clear();
  for (const plan::Region& region : partition_.regions) {
    if (region.alias) continue;
    WARPLOOM_CHECK(limits.check());
    const auto [known, fresh] = search_of_.try_emplace(region.identity, searches_.size());
    if (fresh) WARPLOOM_CHECK(add_search(region));
    RegionSearch* const one = searches_[known->second].get();
    if (++one->times == 1) regions_.push_back(one);
  }
  order_ = regions_;
  std::ranges::stable_sort(order_, {}, [](const RegionSearch* one) { return -one->weight(); });
  return has_sessions_ ? make_sessions() : ok();
}

Status GraphSearch::add_search(const plan::Region& region) {
  searches_.push_back(std::make_unique<RegionSearch>());
  Task& task = searches_.back()->task;
  const kernels::Region alone(region.graph, options_.track);
  task = make_task(alone, capabilities_, options_.seed, region.constants);
  task.setup.ranges = region.ranges;
  task.setup.operations = whole_.setup.operations;
  task.space = search_space_of(alone, capabilities_, region.constants, options_.exact);
  task.space.own_actions = options_.own_actions;
  const auto operators = vendor::operators_of(*given_, region.graph, region.tensors);
  task.setup.reference = vendor::match_region(region.graph, operators, options_.track);
  if (options_.has_model()) take_texts(task);
  return ok();
}

// Of the partition's regions that have none.
Status GraphSearch::make_sessions() {
  has_sessions_ = true;
  for (size_t i = 0; i < order_.size(); ++i) {
    RegionSearch& one = *order_[i];
    if (one.session) continue;
    one.session = std::make_unique<TuningSession>(one.task, options_for(i), budget_, turns_);
    if (Status opened = one.session->open(); !opened) return fail(with_place(opened.error(), one));
  }
  return ok();
}

// Where nothing is searched, or an earlier search tried what there is, they stay as they are.
bool GraphSearch::may_change_boundaries() const {
  constexpr size_t kMostRegions = 1000;  // of more each partition takes seconds to plan
  if (!plan_archive_ || options_.is_interrupted()) return false;
  if (partition_.regions.size() > kMostRegions) return false;
  const auto is_recalled = [](const RegionSearch* one) { return one->session->is_recalled(); };
  return !plan_archive_->is_finished() && !std::ranges::all_of(order_, is_recalled);
}

double GraphSearch::best_us_of(const plan::Region& region) const {
  const auto found = search_of_.find(region.identity);
  if (found == search_of_.end()) return 0;
  const auto& session = searches_[found->second]->session;
  return session ? session->best_us() : 0;
}

double GraphSearch::reference_us_of(const plan::Region& region) const {
  const auto found = search_of_.find(region.identity);
  if (found == search_of_.end()) return 0;
  const auto& session = searches_[found->second]->session;
  return session ? session->reference_us() : 0;
}

// A set-up, a compilation and a few judgements of each region that nothing is known of, as long as
// those of the others took on average: what is cut is less than they are.
double GraphSearch::trial_seconds(const plan::Partition& partition) const {
  double all = 0;
  for (const RegionSearch* one : order_) {
    const Costs& costs = one->session->costs();
    all += costs.set_up() + costs.usual_compile() + kLeastJudgements * costs.judgement();
  }
  const double each = all / as_double(order_.size());
  double count = 0;
  std::vector<std::string> fresh;
  for (const plan::Region& region : partition.regions) {
    if (region.alias || best_us_of(region) > 0 || contains(fresh, region.identity)) continue;
    fresh.push_back(region.identity);
    ++count;
  }
  return count * each;
}

// Other partitions while there is time, each change by itself; the search goes on with the best.
Status GraphSearch::search_boundaries() {
  const Budget kept = budget_.less(reserve());
  const Budget budget = kept.part(kTrialsShare * kept.left());
  BoundarySearch boundaries(
      *boundaries_, partition_,
      {.best_us = [this](const plan::Region& region) { return best_us_of(region); },
       .bound_us =
           [this](const graph::Graph& graph) {
             const kernels::Region region(graph, options_.track);
             const kernels::Work work = kernels::work_of(region);
             return verify::bound_of(capabilities_, options_.track, work.flops, work.bytes).us;
           },
       .reference_us = [this](const plan::Region& region) { return reference_us_of(region); }},
      {options_.interrupted, budget.until()});
  // Of a model that is one region nothing is said where nothing speaks for cutting it.
  if (is_trivial_ && !boundaries.may_gain()) return ok();
  say("trying other boundaries between regions");
  if (!has_boundary_record_) WARPLOOM_CHECK(record_boundaries());
  WARPLOOM_CHECK(plan_archive_->begin());
  const double start_us = boundaries.best_us();
  if (start_us > 0) WARPLOOM_CHECK(plan_archive_->record(partition_.changes, start_us, false));
  plan::BoundaryChanges parent = partition_.changes;
  const auto note = [&](const BoundarySearch::Trial& trial, double us, bool is_best) {
    Status recorded = ok();
    if (us > 0)
      recorded = plan_archive_->record_trial(trial.partition.changes, trial.action, parent, us);
    if (is_best) parent = trial.partition.changes;
    return recorded;
  };
  const auto end = try_boundaries(
      boundaries, budget,
      {.least_seconds = [this](const plan::Partition& one) { return trial_seconds(one); },
       .judge = [this](const BoundarySearch::Trial& trial,
                       const Budget& part) { return judge_trial(trial, part); },
       .note = note,
       .is_ended = [this] { return options_.is_interrupted(); }});
  WARPLOOM_CHECK(use(boundaries.best()));
  if (!end) return fail(end.error());
  if (is_trivial_ && !partition_.trivial(graph_)) WARPLOOM_CHECK(judge_as_network());
  boundaries_tried_ = boundaries.tried();
  const bool is_late = *end == TrialsEnd::time_up;
  const double us = boundaries.best_us();
  if (!boundaries.best().changes.empty() && us > 0 && us < start_us)
    boundary_note_ = fmt::format(
        "regions have other boundaries than fusion gave them: {}; together "
        "they take {} instead of {}",
        to_text(boundaries.best().changes), time_text(us), time_text(start_us));
  else if (is_late && boundaries.tried() == 0)
    boundary_note_ =
        "the budget was too small to try other boundaries between regions than those "
        "of fusion: a larger one would";
  return ok();
}

// The new regions' searches, something right first, then as long as those in whose place they stand
// were searched; what they and the others take together.
Result<double> GraphSearch::judge_trial(const BoundarySearch::Trial& trial, const Budget& budget) {
  const std::vector<RegionSearch*> before = regions_;
  const double before_us = expected_us();
  WARPLOOM_CHECK(use(trial.partition));
  std::vector<RegionSearch*> fresh;
  for (RegionSearch* one : order_)
    if (!contains(before, one)) fresh.push_back(one);
  double seconds = 0;  // that the regions which go were searched
  for (const RegionSearch* one : before)
    if (!contains(regions_, one)) seconds += one->seconds;
  const auto search_each = [&](bool until_right, double most) -> Status {
    for (size_t i = 0; i < fresh.size() && !options_.is_interrupted(); ++i) {
      TuningSession& session = *fresh[i]->session;
      if (!session.has_more() || (until_right && session.is_right())) continue;
      const double share = budget.left() / as_double(fresh.size() - i);
      const Budget part = budget.part(std::min(share, most / as_double(fresh.size())));
      WARPLOOM_CHECK(session.begin());
      WARPLOOM_CHECK(slice(*fresh[i], {.soft = part, .hard = budget, .until_right = until_right}));
    }
    return ok();
  };
  const auto is_right = [](const RegionSearch* one) { return one->session->is_right(); };
  WARPLOOM_CHECK(search_each(true, as_double(fresh.size()) * budget.left()));
  const bool may_gain =
      std::ranges::all_of(fresh, is_right) && expected_us() < kHopeless * before_us;
  if (may_gain) WARPLOOM_CHECK(search_each(false, seconds));
  for (RegionSearch* one : fresh) {
    one->session->rest();
    std::erase(awake_, one);
  }
  const double us = std::ranges::all_of(regions_, is_right) ? expected_us() : 0;
  return us;
}

// Where boundaries are elsewhere than fusion had them, the plan with fusion's is judged whole as
// well, while there is time: what regions take alone is not what they take one behind another.
Status GraphSearch::take_faster_partition(Outcome& out) {
  if (!has_boundary_record_) return ok();
  if (out.proven)
    WARPLOOM_CHECK(plan_archive_->record(partition_.changes, out.verdict.median_us, true));
  const double wanted = 2 * judge_->seconds();
  const bool has_time = budget_.less(delivery_reserve()).left() > wanted;
  const bool is_other = boundaries_tried_ > 0 && !partition_.changes.empty();
  if (!is_other || !out.proven || !has_time || options_.is_interrupted()) return ok();
  const plan::Partition chosen = partition_;
  WARPLOOM_TRY(plan::Partition fused, boundaries_->under({}));
  WARPLOOM_CHECK(use(std::move(fused)));
  Outcome other;
  if (join(other)) {
    say("judging the plan with fusion's own boundaries whole");
    const auto verdict = judge_list(other.list, budget_.less(delivery_reserve()));
    if (verdict) {
      WARPLOOM_CHECK(plan_archive_->record({}, verdict->median_us, true));
      if (kWholeGain * verdict->median_us < out.verdict.median_us) {
        boundary_note_ =
            "other boundaries between regions gained in their times alone, and "
            "nothing in the whole: fusion's stay";
        take_whole(other, *verdict);
        out = std::move(other);
        return ok();
      }
    }
  }
  return use(chosen);
}

// What is told of it, in the outcome and in the archive. Searches of regions that no plan has come
// to their end there.
void GraphSearch::note_boundaries(Outcome& out) {
  for (const auto& one : searches_)
    if (one->times == 0 && one->session) (void)one->session->conclude();
  if (!has_boundary_record_) return;
  out.boundaries.note = boundary_note_;
  out.boundaries.tried = boundaries_tried_;
  out.boundaries.were_choice = true;
  out.plans_key = plan_archive_->key();
  const char* const status = options_.is_interrupted() ? "interrupted" : "done";
  plan_archive_->finish(status, boundaries_tried_, partition_.changes, budget_.spent());
}
}  // namespace warploom::search
