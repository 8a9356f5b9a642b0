// Search strategy: which config to try next. The same seed and the same times give the same
// proposals.
//
//   enumerate   every legal config, families in turn, best guess first
//   random      the same in random order
//   beam        breadth: the fallback, then one config of every other family that covers the
//               region; then depth: the best of each family by guess, and some at random; then
//               changes of one field of the best few so far, with a random one now and then, until
//               nothing new is left
//   automatic   small spaces are enumerated, breadth first; others are the beam's
//
// A family whose configs turn out to be wrong steps back: its others come after those of other
// families, until more of its configs were right than wrong. It is never off.
//
// Where the target has a cost model, nobody guesses: beam starts from what the model finds best
// when it climbs from random configs, and takes the changes that it expects most of first.
// Predictions only order: what is timed decides. Once its limits end them, or are late, no more are
// made, and what is not predicted comes last.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>
#include "base/random.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "plan/limits.h"
#include "search/search_space.h"

namespace warploom::search {
enum class Strategy : uint8_t { automatic, enumerate, random, beam };
inline constexpr const char* kStrategyNames[] = {"automatic", "enumerate", "random", "beam"};

// What covers the region and is the surest to be right: of a strict family, whose kernels compute
// with the operands themselves and hold infinities and NaN, one made for such regions before one
// that covers nearly everything; where there is none, of what there is. By guess or prediction the
// best that can be built of the configs that a bounded walk finds. Nothing where there is none.
struct Fallback {
  kernels::KernelConfig config;
  LaunchList list;
};

std::optional<Fallback> fallback_of(const SearchSpace& space);

class SearchStrategy {
 public:
  SearchStrategy(const SearchSpace& space, Strategy strategy, uint64_t seed,
                 plan::Limits limits = {});
  // A config not proposed before; nothing when none is left.
  std::optional<kernels::KernelConfig> next();
  // Puts a config first, if it is new.
  void suggest(const kernels::KernelConfig& config);

  // Never to be proposed: the archive knows it already.
  void skip(const kernels::KernelConfig& config) { proposed_.insert(config.text()); }

  // What a config's time turned out to be, the ground of later proposals.
  void learn(const kernels::KernelConfig& config, double us);

  // That it was refused: a prediction knows nothing of registers that spill, and all that it likes
  // best may be alike in that. What shares with refused ones what right ones lack comes later.
  // `is_wrong`: since it computes something else, which steps its family back.
  void refuse(const kernels::KernelConfig& config, bool is_wrong = false);

  // The configs that `config` was made from, by their texts.
  const std::vector<std::string>& parents_of(const std::string& config) { return parents_[config]; }

 private:
  using Ranked =
      std::vector<std::vector<kernels::KernelConfig>>;  // of each family, best guess first

  void order(const Ranked& families);
  void lead(const Ranked& families);
  bool is_back(const kernels::KernelConfig& config) const;
  void offer_others();
  void start_beam(const Ranked& families);
  bool offer(const kernels::KernelConfig& config, const std::string& parent);
  void climb(std::vector<kernels::KernelConfig> from);
  // Sorts by predicted time, the unknown last; false where nothing is known.
  bool sort_by_prediction(std::vector<kernels::KernelConfig>& configs);
  void predict(const std::vector<kernels::KernelConfig>& configs);
  void mutate();
  void count(const kernels::KernelConfig& config, bool accepted);
  double failure_penalty(const kernels::KernelConfig& config) const;
  size_t most_promising() const;   // of the queue
  size_t first_of_others() const;  // in the queue, of a family that has not stepped back

  struct Counts {
    int refused = 0;
    int accepted = 0;
  };

  const SearchSpace* space_;
  Strategy strategy_;
  plan::Limits limits_;  // of ranking; the time of later rounds is the search's to keep
  Random random_;
  std::vector<kernels::KernelConfig> order_;  // of first proposals; beam: the rest, to fall back on
  size_t used_ = 0;
  std::deque<kernels::KernelConfig> leads_;  // for breadth, before the queue
  std::vector<kernels::KernelConfig> queue_;
  std::set<std::string> proposed_;
  std::map<std::string, std::vector<std::string>> parents_;
  std::map<std::string, double> predicted_;            // microseconds, by config
  std::multimap<double, kernels::KernelConfig> best_;  // by time
  // Of those with a value in a family's field, which its number names.
  std::map<std::tuple<std::string, size_t, int64_t>, Counts> failure_counts_;
  std::map<std::string, Counts> families_;  // refused: since they were wrong
  int rounds_ = 0;
};
}  // namespace warploom::search
