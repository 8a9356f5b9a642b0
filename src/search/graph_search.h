// GraphSearch: the search of a whole graph. Its different regions are sessions that take turns, and
// their results are one plan.
//
//   plan      regions, a task each
//   first     something right for every region; then, on a GPU, the plan of these is judged whole,
//             so that there is an answer. Where the former would take too long, fallbacks stand in
//   rounds    slices of time for the region that can gain most (shares.h), until the time is needed
//             for what comes last, or nothing is left to gain anywhere
//   bounds    half way through the rounds of a network, other partitions are tried that may gain
//             by their bound (boundary_search.h); their new regions are searched like the others
//   finish    each region's best is measured beside its reference; one that is the whole model is
//             judged whole as well
//   whole     the plan is judged as a whole. Where it is wrong, the region whose error is nearest
//             to its bound takes a more exact candidate, and the next plan is judged, until one is
//             right; at last the fallbacks everywhere. While there is time left, rounds go on from
//             there. Where it has other boundaries than fusion made, the plan with those is judged
//             whole, too, and the faster one stays. Then regions are judged whole alone, as far as
//             the time allows: the archive answers with what was
#pragma once
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/plan.h"
#include "plan/region.h"
#include "search/boundary_search.h"
#include "search/budget.h"
#include "search/compile_pool.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_archive.h"
#include "search/plan_judge.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "vendor/problem.h"
#include "verify/evaluator_pool.h"

namespace warploom::search {
// One of the graph's different regions: what is searched, and what was found.
struct RegionSearch {
  Task task;
  int times = 0;  // how often the region occurs
  std::unique_ptr<TuningSession> session;
  double seconds = 0;  // that it was searched
  Outcome outcome;

  // Of the time that all take at best.
  double weight() const { return times * task.bound.us + 1e-3; }
};

class GraphSearch {
 public:
  explicit GraphSearch(const Options& options);

  Result<Outcome> run(const graph::Graph& given);

 private:
  void say(const char* phase) const;
  void compile_truth(const target::Capabilities& capabilities);

  verify::EvaluatorPool* evaluators() { return evaluators_ ? &*evaluators_ : nullptr; }

  Options options_for(size_t number);
  Error with_place(Error error, const RegionSearch& one) const;

  Status search();
  Status begin_early();
  void wake_evaluators();
  Status search_first();
  Budget for_first() const;
  bool is_first_too_long(size_t others) const;
  Status prove_first_plan();
  Status take_winners();
  Status slice(RegionSearch& one, const Slice& slice);
  // Rounds, in a share of the time that is not kept back.
  Status search_on(double share = 1);
  RegionSearch* most_worth(double seconds);
  Status finish();
  void prove_regions();
  void rest_all();

  // Seconds to keep back: for delivering, for judging the plan, and for these and the regions' last
  // rounds.
  double delivery_seconds() const;
  double delivery_reserve() const;
  double whole_reserve() const;
  double reserve() const;

  // graph_boundaries.cpp
  Status plan_regions(const plan::Limits& limits);
  Status use(plan::Partition partition, const plan::Limits& limits = {});
  Status add_search(const plan::Region& region);
  Status make_sessions();
  bool may_change_boundaries() const;
  Status search_boundaries();
  Result<double> judge_trial(const BoundarySearch::Trial& trial, const Budget& budget);
  double trial_seconds(const plan::Partition& partition) const;
  bool can_be_cut(const plan::Limits& limits);
  Status record_boundaries();
  double best_us_of(const plan::Region& region) const;
  double reference_us_of(const plan::Region& region) const;
  // The whole is several regions from now on, whose plan is judged.
  Status judge_as_network();
  Status take_faster_partition(Outcome& out);
  void note_boundaries(Outcome& out);

  // graph_whole.cpp
  std::optional<vendor::VendorProblem> whole_reference(const graph::Graph& given,
                                                       const graph::Graph& primitive) const;
  Status join(Outcome& out);
  Outcome summed() const;
  LaunchList linked(plan::Plan& plan) const;
  void name_regions(Outcome& out, const graph::Graph& given) const;
  void compile_as_one(const LaunchList& list) const;
  Result<verify::Verdict> judge_list(const LaunchList& list, const Budget& soft);
  Result<Outcome> whole(const graph::Graph& given);
  Result<Outcome> judged_whole();
  double expected_us() const;
  bool has_time_for_more() const;
  bool is_proven(const Outcome& out) const;
  Status judge_whole(Outcome& out);
  Status without_whole(const Outcome& out) const;
  double needed_seconds() const;
  bool take_more_exact();
  bool take_fallbacks_everywhere();
  void take_whole(Outcome& out, const verify::Verdict& verdict) const;

  const Options& options_;
  Budget budget_;
  std::optional<verify::EvaluatorPool> evaluators_;  // where the target may be a GPU
  std::future<void> truth_kernels_;                  // once they are compiled, as far as they are
  CompilePool::Turns turns_;
  target::Capabilities capabilities_;
  const graph::Graph* given_ = nullptr;
  graph::Graph graph_;  // as it is cut into regions
  std::optional<plan::Boundaries> boundaries_;
  std::optional<PlanArchive> plan_archive_;  // where they are a choice
  bool has_boundary_record_ = false;         // there
  std::string boundary_note_;                // what became of that, in words
  int boundaries_tried_ = 0;
  plan::Partition partition_;  // that the search goes by
  Task whole_;
  bool is_trivial_ = false;  // one region is the whole
  // One a different region, of all partitions that were looked at.
  std::vector<std::unique_ptr<RegionSearch>> searches_;
  std::map<std::string, size_t> search_of_;  // by the region's identity
  // Those of the partition: in the order of their first kernels, and the heaviest first.
  std::vector<RegionSearch*> regions_;
  std::vector<RegionSearch*> order_;
  bool has_sessions_ = false;
  std::vector<RegionSearch*> awake_;  // with an evaluator, the latest last
  std::optional<PlanJudge> judge_;    // of several regions
  std::optional<Outcome> proven_;     // a plan that is right
  bool has_tried_first_plan_ = false;
  bool has_room_for_all_ = false;  // evaluators of the heaviest regions and of the whole at once
};
}  // namespace warploom::search
