// Proposer: which schedule to try next. The same seed and the same times give the same proposals.
//
//   enumerate   every legal schedule, families in turn, best guess first
//   random      the same in random order
//   beam        the best of each family by guess, and some at random; then single-field changes of the best few so far, with a
//               random one now and then, until nothing new is left
//
// Where the target has a cost model, nobody guesses: beam starts from what the model finds best when it climbs from random schedules,
// and takes the changes that it expects most of first. Predictions only order: what is timed decides.
#pragma once
#include <set>
#include "base/random.h"
#include "search/optimize.h"
namespace warploom::search {
// The schedules a search may try for one region on one target, and how to build one.
struct Catalogue {
  kernels::Region region;
  target::Capabilities capabilities;
  std::vector<kernels::FamilyPtr> families;
  std::function<Result<LaunchList>(const kernels::Schedule&)> build;
};

// All that the families of kernels/ have for a region.
Catalogue catalogue_of(const kernels::Region& region, const target::Capabilities& capabilities);

class Proposer {
 public:
  Proposer(const Catalogue& catalogue, Strategy strategy, std::uint64_t seed);
  // A schedule not proposed before; nothing when none is left.
  std::optional<kernels::Schedule> next();
  // Puts a schedule first, if it is new.
  void suggest(const kernels::Schedule& schedule);
  // Never to be proposed: the archive knows it already.
  void skip(const kernels::Schedule& schedule) { proposed_.insert(schedule.text()); }
  // What a schedule's time turned out to be, the ground of later proposals.
  void learn(const kernels::Schedule& schedule, double us) {
    best_.emplace(us, schedule);
    if (best_.size() > 100) best_.erase(std::prev(best_.end()));  // only the first few matter
  }
  // The schedules that `schedule` was made from.
  std::vector<std::string> parents_of(const std::string& schedule) const;

 private:
  bool offer(const kernels::Schedule& schedule, const std::string& parent);
  void refill();
  void climb(std::vector<kernels::Schedule> from);
  // Sorts by predicted time, the unknown last; false where nothing is known.
  bool by_prediction(std::vector<kernels::Schedule>& schedules);
  void mutate();

  const Catalogue* catalogue_;
  Strategy strategy_;
  Random random_;
  std::vector<kernels::Schedule> order_;  // of first proposals; beam: the rest, to fall back on
  std::size_t used_ = 0;
  std::vector<kernels::Schedule> queue_;
  std::set<std::string> proposed_;
  std::map<std::string, std::string> parents_;
  std::map<std::string, double> predicted_;        // microseconds, by schedule
  std::multimap<double, kernels::Schedule> best_;  // by time
  int rounds_ = 0;
};
}  // namespace warploom::search
