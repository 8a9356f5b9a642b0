// BoundarySearch: which other partition of a network is worth trying next, by what its regions
// took so far.
//
//   BoundarySearch boundaries(all, start, known);
//   while (const auto trial = boundaries.ask())
//     boundaries.tell(*trial, judged(trial->partition));   // microseconds; 0: nothing right
//   boundaries.best()                                      // the partition that took least
//
// What a change may gain is what the regions that go take, less what those that come are expected
// to: their roofline bound at the share of it that was reached. Of a join that is the share that
// the two regions reached, so that it is worth what it saves of the bound. Of a cut it is what the
// best region of the network reached: one that lies further from its bound may be held back by
// being one. So may one that takes longer than a library, which computes the same in several calls:
// then a cut is hoped to take what the library takes, and what it adds to the bound. Where nothing
// is known of a time or a bound, nothing is tried.
//
// The same times give the same sequence. A partition is tried once.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "search/action/action.h"
#include "search/budget.h"

namespace warploom::search {
// What is known of regions: microseconds, 0 where nothing is.
struct RegionTimes {
  std::function<double(const plan::Region&)> best_us;  // of the fastest that was judged right
  std::function<double(const graph::Graph&)> bound_us;
  // That a library takes for the same; may be missing.
  std::function<double(const plan::Region&)> reference_us = {};
};

class BoundarySearch {
 public:
  struct Trial {
    Action action;
    plan::Partition partition;
    double hoped_us = 0;  // that it may save
  };

  // `boundaries` must outlive it; `start`: the partition that was searched; `limits`: of what is
  // asked of the plan.
  BoundarySearch(plan::Boundaries& boundaries, plan::Partition start, RegionTimes times,
                 plan::Limits limits = {});

  // Whether something that was not tried may gain.
  bool may_gain() const { return !hopes().empty(); }

  // What may gain most; nothing where nothing that was not tried may gain anything that counts.
  std::optional<Trial> ask();

  // What the regions of the trial's partition take together; whether it is the best now, from which
  // the next changes start.
  bool tell(const Trial& trial, double us);

  const plan::Partition& best() const { return best_; }

  // What its regions take together; 0: one of them is not known.
  double best_us() const { return us_of(best_); }

  int tried() const { return tried_; }

  double us_of(const plan::Partition& partition) const;

 private:
  struct Hope {
    plan::BoundaryOption option;
    double us = 0;
  };

  void look_again();
  std::vector<Hope> hopes() const;  // most first
  double hope_of(const plan::BoundaryOption& option, double share) const;
  double reference_us(const std::vector<const plan::Region*>& regions) const;
  double bound_of(const std::vector<const plan::Region*>& regions) const;
  double share_of(const std::vector<const plan::Region*>& regions) const;

  plan::Boundaries& boundaries_;
  plan::Partition best_;
  RegionTimes times_;
  plan::Limits limits_;
  std::vector<plan::BoundaryOption> options_;  // those that can be made from the best
  std::map<std::string, int> failed_;          // trials without a gain, by the regions that went
  std::set<std::string> asked_;                // changes, all from fusion's on
  std::set<std::string> seen_;                 // partitions, by their regions
  int tried_ = 0;
};

// How trials are carried out.
struct BoundaryTrials {
  // Seconds that the regions which nobody knows need at the least, until something right is judged.
  std::function<double(const plan::Partition&)> least_seconds;
  // What the trial's regions take, within a budget; 0: not all are right, or the time was up.
  std::function<Result<double>(const BoundarySearch::Trial&, const Budget&)> judge;
  // That it was tried, and whether its partition is the best now.
  std::function<Status(const BoundarySearch::Trial&, double us, bool is_best)> note;
  std::function<bool()> is_ended;  // somebody interrupts
};

enum class TrialsEnd : uint8_t { nothing_left, time_up, interrupted };

// One trial after another, each with a part of the time, until nothing is left that may gain or the
// next one has no time. None is begun that the budget has no room for.
Result<TrialsEnd> try_boundaries(BoundarySearch& search, const Budget& budget,
                                 const BoundaryTrials& trials);
}  // namespace warploom::search
