// PlanArchive: what the archive knows of whole plans of a graph, and what a search adds to it.
//
// A graph of which the whole plan leaves a choice (plan_choice.h) is a problem of the archive like
// its regions, "plans of NAME", under a key of the graph that was given. Its candidates are
// choices:
//
//   schedule     "as given", "sum_before y", "sum_before y; cut_region t3"
//   parents      the choice that the step started from; action: the step (action/plan_actions.h)
//   median_us    what the plan's regions take together (screened), or the plan judged whole
//                (promoted)
//
// A search of boundaries begins where the last one under the same rewrites ended. One that was
// killed begins where it had begun, so that it tries the same again. One that came to its end, with
// as large a budget and by this program, has tried all that there was time for.
//
// Programs before this one kept partitions apart, under a problem of the graph that is cut into
// regions: "boundaries: as fused", "boundaries: cut_region t3". They are read as choices.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "search/action/action.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_choice.h"
#include "target/capabilities.h"

namespace warploom::search {
// Whether a problem of the archive is one of plans, whose candidates are choices and no configs.
bool is_of_plans(const archive::Problem& problem);

// The key of "plans of NAME" for a graph on a target and a device.
std::string plans_key(const graph::Graph& given, const Options& options,
                      const target::Capabilities& capabilities, const std::string& device);

// What the last search that came to its end chose of a whole plan.
struct KnownPlan {
  archive::Problem problem;
  std::string schedule;  // as the archive has it
  PlanChoice choice;
  bool is_of_run = false;  // a run says so; else it is the fastest that is known
};

// Of a graph, by what the problems of an archive are; nothing where none is of its plans.
Result<std::optional<KnownPlan>> known_plan(archive::Archive& from, const graph::Graph& given,
                                            Track track, const std::string& target);

// The partition of a graph that is cut, as programs before this one kept it.
Result<std::optional<KnownPlan>> older_partition(archive::Archive& from, const graph::Graph& cut,
                                                 Track track, const std::string& target);

class PlanArchive {
 public:
  // Opens the archive, which need not know the plans of the graph yet. The options must outlive it.
  static Result<PlanArchive> open(const graph::Graph& given, const Options& options,
                                  const target::Capabilities& capabilities);

  const std::string& key() const { return run_.problem; }

  // Adds the plans to it, as begin() does, and the record of a choice.
  Status add();

  // A choice that a search was made for, with the action that leads there from what was given; its
  // outcome.
  Status record(const PlanChoice& choice, const std::optional<Action>& action, double predicted_us,
                const Result<Outcome>& found);

  // What was chosen of them at last.
  Status conclude(const PlanChoice& best, double seconds);

  // Looks up where a search of boundaries begins under the rewrites of the options' choice. `cut`:
  // the graph that these leave.
  Status find_start(const graph::Graph& cut);

  const PlanChoice& start() const { return start_; }

  // Whether nothing is left to be tried within the options' budget.
  bool is_finished() const { return is_finished_; }

  Status begin();
  // The time of a partition: of its regions together, or of the plan judged whole.
  Status record(const plan::BoundaryChanges& boundaries, double us, bool whole);
  // The same of a trial, with the partition that its action started from.
  Status record_trial(const plan::BoundaryChanges& boundaries, const Action& action,
                      const plan::BoundaryChanges& parent, double us);
  void finish(const char* status, int tried, const plan::BoundaryChanges& best, double seconds);

 private:
  PlanArchive(archive::Archive archive, const Options& options);

  // Under the rewrites of the options' choice.
  PlanChoice with(const plan::BoundaryChanges& boundaries) const;
  Result<archive::Candidate> row_of(const PlanChoice& choice);

  archive::Archive archive_;
  const Options* options_;  // the search's
  archive::Problem problem_;
  archive::Run run_;
  int64_t run_id_ = 0;
  PlanChoice start_;
  bool is_finished_ = false;
};
}  // namespace warploom::search
