// CandidateQueue: what enumeration, random search and the beam propose from.
//
// Those for breadth come first, then what was offered, and where that is nothing the ranked order.
// A family whose configs turn out to be wrong steps back: its others come after those of other
// families, until more of its configs were right than wrong. It is never off. And what shares with
// refused configs what right ones lack comes later: a prediction knows nothing of registers that
// spill, and all that it likes best may be alike in that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
// How far down the queue another is looked for.
inline constexpr size_t kAhead = 24;

class CandidateQueue {
 public:
  // The order to fall back on.
  void set_order(std::vector<kernels::KernelConfig> order) { order_ = std::move(order); }

  const std::vector<kernels::KernelConfig>& order() const { return order_; }

  // At its end, if it is new; as a child of its parent, where it has one.
  bool offer(const kernels::KernelConfig& config, const kernels::KernelConfig* parent = nullptr);

  // All that was offered so far is for breadth.
  void make_leads();

  // Those for breadth come behind it then, as the queue's first.
  void suggest(const kernels::KernelConfig& config);

  void skip(const kernels::KernelConfig& config) { proposed_.insert(config.text()); }

  // The next one, with its parent; nothing where none is left.
  std::optional<Proposal> take();

  // Whether nothing but the order is left.
  bool is_empty() const { return leads_.empty() && queue_.empty(); }

  void tell(const Judged& judged);

 private:
  struct Counts {
    int refused = 0;
    int accepted = 0;
  };

  bool is_back(const kernels::KernelConfig& config) const;
  void offer_others();
  void count(const kernels::KernelConfig& config, bool accepted);
  double failure_penalty(const kernels::KernelConfig& config) const;
  size_t most_promising() const;   // of the queue
  size_t first_of_others() const;  // in the queue, of a family that has not stepped back
  Proposal proposal_of(kernels::KernelConfig config) const;

  std::vector<kernels::KernelConfig> order_;
  size_t used_ = 0;
  std::deque<kernels::KernelConfig> leads_;  // for breadth, before the queue
  std::vector<kernels::KernelConfig> queue_;
  std::set<std::string> proposed_;
  std::map<std::string, kernels::KernelConfig> parents_;
  // Of those with a value in a family's field, which its number names.
  std::map<std::tuple<std::string, size_t, int64_t>, Counts> failure_counts_;
  std::map<std::string, Counts> families_;  // refused: since they were wrong
};
}  // namespace warploom::search
