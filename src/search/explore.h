// The search itself, for any catalogue of schedules. optimize() calls it with the families of
// kernels/, tests with their own.
#pragma once
#include <set>
#include "base/random.h"
#include "search/optimize.h"

namespace warploom::search {
// The schedules a search may try for one region on one target, and how to build one, and how long
// it may take.
struct SearchSpace {
  kernels::Region region;
  target::Capabilities capabilities;
  std::vector<kernels::FamilyPtr> families;
  std::function<Result<LaunchList>(const kernels::KernelConfig&)> build;
  std::function<Result<double>(const kernels::KernelConfig&)> predict =
      {};  // microseconds, or 0; none where nothing is known
};

// All that the families of kernels/ have for a region.
SearchSpace catalogue_of(const kernels::Region& region, const target::Capabilities& capabilities);

// Which schedule to try next. The same seed and the same times give the same proposals.
//
//   enumerate   every legal schedule, families in turn, best guess first
//   random      the same in random order
//   beam        the best of each family by guess, and some at random; then single-field changes of
//   the best few so far, with a
//               random one now and then, until nothing new is left
//
// Where the target has a cost model, nobody guesses: beam starts from what the model finds best
// when it climbs from random schedules, and takes the changes that it expects most of first.
// Predictions only order: what is timed decides. Once its limits end them, or are late, no more are
// made, and what is not predicted comes last.
class SearchStrategy {
 public:
  SearchStrategy(const SearchSpace& catalogue, Strategy strategy, uint64_t seed,
                 Limits limits = {});
  // A schedule not proposed before; nothing when none is left.
  std::optional<kernels::KernelConfig> next();
  // Puts a schedule first, if it is new.
  void suggest(const kernels::KernelConfig& schedule);

  // Never to be proposed: the archive knows it already.
  void skip(const kernels::KernelConfig& schedule) { proposed_.insert(schedule.text()); }

  // What a schedule's time turned out to be, the ground of later proposals.
  void learn(const kernels::KernelConfig& schedule, double us) {
    remember(schedule, true);
    best_.emplace(us, schedule);
    if (best_.size() > 100) best_.erase(std::prev(best_.end()));  // only the first few matter
  }

  // That it was refused: a prediction knows nothing of registers that spill, and all that it likes
  // best may be alike in that. What shares with refused ones what right ones lack comes later.
  void refuse(const kernels::KernelConfig& schedule) { remember(schedule, false); }

  // The schedules that `schedule` was made from.
  const std::vector<std::string>& parents_of(const std::string& schedule) {
    return parents_[schedule];
  }

 private:
  bool offer(const kernels::KernelConfig& schedule, const std::string& parent);
  void climb(std::vector<kernels::KernelConfig> from);
  // Sorts by predicted time, the unknown last; false where nothing is known.
  bool by_prediction(std::vector<kernels::KernelConfig>& schedules);
  void mutate();
  void remember(const kernels::KernelConfig& schedule, bool right);
  double doubt(const kernels::KernelConfig& schedule) const;

  const SearchSpace* catalogue_;
  Strategy strategy_;
  Limits limits_;  // of ranking; the time of later rounds is the search's to keep
  Random random_;
  std::vector<kernels::KernelConfig> order_;  // of first proposals; beam: the rest, to fall back on
  size_t used_ = 0;
  std::vector<kernels::KernelConfig> queue_;
  std::set<std::string> proposed_;
  std::map<std::string, std::vector<std::string>> parents_;
  std::map<std::string, double> predicted_;            // microseconds, by schedule
  std::multimap<double, kernels::KernelConfig> best_;  // by time
  // How many were refused and how many right, of those with a value in a family's field, by its
  // number
  std::map<std::tuple<std::string, size_t, int64_t>, std::array<int, 2>> fates_;
  int rounds_ = 0;
};

struct Problem {
  SearchSpace catalogue;
  verify::Setup setup;
  verify::Bound bound = {};
  // In the evaluator's place, where verdicts were recorded before: then the seed and they alone
  // decide what is tried, and no clock ends the search, but `max_candidates`. For tests: no command
  // sets it.
  std::function<Result<verify::Verdict>(const kernels::KernelConfig&, const verify::Request&)>
      recorded = {};
};

inline constexpr uint64_t kFreshSeed =
    0x5eed5eed5eed5eedull;  // promotion judges on other inputs than the search

// What asks for a judgement of the whole in about so many seconds, of which no launch may take more
// than its limit.
verify::Request whole_request(const LaunchList& list, double seconds, double limit_ms);

// A problem but for how to search it, which takes time for a whole network, and its reference.
Problem outline_of(const kernels::Region& region, const target::Capabilities& capabilities,
                   uint64_t seed);

// An error that no other candidate would escape.
bool is_fatal(ErrorCode code);

// Where a search of at least this budget has come to its end, by this program on this machine with
// the same seed, the archive gives the answer: a kernel of the same text was judged whole there, by
// the same compiler and driver. Searches that a strategy or a number of candidates limits always
// search, and so do those that are told to go onward.
//
// The outcome lacks what optimize() works out of it: part of the roofline, labels, seconds.
Result<Outcome> explore(const Problem& problem, const Options& options);

// A plan of several regions judged whole, in a fresh process, in about so many seconds: the verdict
// that accepts it, or kPlanWrong. `ready`: what the process said of itself and its reference.
Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list,
                                   double seconds, const std::atomic<bool>* interrupted = nullptr,
                                   verify::Ready* ready = nullptr);
}  // namespace warploom::search
