// BoundaryArchive: what the archive knows of a network's boundaries, and what a search adds to it.
//
// A network whose boundaries are a choice is a problem of the archive like its regions. Its
// candidates are partitions:
//
//   schedule     "boundaries: as fused", "boundaries: cut_region t3"
//   parents      the partition that the step started from; action: the step (boundary_action.h)
//   median_us    what its regions take together (screened), or the plan judged whole (promoted)
//
// A search begins at the partition that the last one ended with. One that was killed begins where
// it had begun, so that it tries the same again. One that came to its end, with as large a budget
// and by this program, has tried all that there was time for.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include "archive/archive.h"
#include "base/error.h"
#include "graph/graph.h"
#include "plan/boundary_change.h"
#include "search/boundary_search.h"
#include "search/options.h"
#include "target/capabilities.h"

namespace warploom::search {
// "boundaries: as fused" where nothing is changed; and back, nothing where it is no such text.
std::string schedule_of(const plan::BoundaryChanges& changes);
std::optional<plan::BoundaryChanges> changes_of(const std::string& schedule);

// The problem's key: of a graph as it is cut into regions.
std::string boundary_key(const graph::Graph& graph, const Options& options,
                         const target::Capabilities& capabilities, const std::string& device);

class BoundaryArchive {
 public:
  // Opens the archive, which need not know the network yet. The options must outlive it.
  static Result<BoundaryArchive> open(const graph::Graph& graph, const Options& options,
                                      const target::Capabilities& capabilities);

  // Adds the network to it, as begin() does.
  Status add();

  // Where the search begins.
  plan::BoundaryChanges start() const;

  // Whether nothing is left to be tried within the options' budget.
  bool is_finished() const { return is_finished_; }

  const std::string& key() const { return run_.problem; }

  Status begin();
  // A partition's time: of its regions together, or of the plan judged whole.
  Status record(const plan::BoundaryChanges& changes, double us, bool whole);
  // The same of a trial, with the partition that it started from.
  Status record(const BoundarySearch::Trial& trial, const plan::BoundaryChanges& parent, double us);
  void finish(const char* status, int tried, const plan::BoundaryChanges& best, double seconds);

 private:
  BoundaryArchive(archive::Archive archive, const Options& options)
      : archive_(std::move(archive)), options_(&options) {}

  Status look_up();
  archive::Candidate& row_of(const plan::BoundaryChanges& changes);

  archive::Archive archive_;
  const Options* options_;  // the search's
  archive::Problem problem_;
  archive::Run run_;
  int64_t run_id_ = 0;
  std::map<std::string, archive::Candidate> rows_;  // by their schedules
  bool is_finished_ = false;
};
}  // namespace warploom::search
