#include "search/strategy/queue.h"
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/policy/state.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr double kPenaltyPlaces = 8;  // of the queue, for a field's value that always failed
}  // namespace

bool CandidateQueue::offer(const KernelConfig& config, const KernelConfig* parent) {
  const std::string text = config.text();
  if (!proposed_.insert(text).second) return false;
  if (parent != nullptr) parents_.emplace(text, *parent);
  queue_.push_back(config);
  return true;
}

void CandidateQueue::make_leads() {
  leads_.assign(queue_.begin(), queue_.end());
  queue_.clear();
}

void CandidateQueue::suggest(const KernelConfig& config) {
  queue_.insert(queue_.begin(), leads_.begin(), leads_.end());
  leads_.clear();
  std::erase(queue_, config);
  proposed_.insert(config.text());
  queue_.insert(queue_.begin(), config);
}

void CandidateQueue::tell(const Judged& judged) {
  count(judged.config, judged.accepted);
  if (!judged.accepted && judged.is_wrong) ++families_[judged.config.family()].refused;
}

void CandidateQueue::count(const KernelConfig& config, bool accepted) {
  if (accepted) ++families_[config.family()].accepted;
  for (size_t i = 0; i < config.size(); ++i) {
    Counts& counts = failure_counts_[{config.family(), i, config.get(i)}];
    ++(accepted ? counts.accepted : counts.refused);
  }
}

// The shares that were refused of those that had the same values, added up.
double CandidateQueue::failure_penalty(const KernelConfig& config) const {
  double sum = 0;
  for (size_t i = 0; i < config.size(); ++i) {
    const auto known = failure_counts_.find({config.family(), i, config.get(i)});
    if (known == failure_counts_.end()) continue;
    const Counts& counts = known->second;
    sum += counts.refused / (counts.refused + counts.accepted + 1.0);
  }
  return sum;
}

bool CandidateQueue::is_back(const KernelConfig& config) const {
  const auto known = families_.find(config.family());
  return known != families_.end() && known->second.refused > known->second.accepted;
}

size_t CandidateQueue::first_of_others() const {
  const auto found = std::ranges::find_if(queue_, [&](const auto& one) { return !is_back(one); });
  return static_cast<size_t>(found - queue_.begin());
}

// Where every family in the queue has stepped back: the best ranked of another that is left.
void CandidateQueue::offer_others() {
  if (queue_.empty() || first_of_others() < queue_.size()) return;
  for (const KernelConfig& config : order_)
    if (!is_back(config) && offer(config)) return;
}

// The first of the queue whose family has not stepped back, but for another not far behind it that
// is less likely to be refused.
size_t CandidateQueue::most_promising() const {
  const size_t first = first_of_others();
  const bool all_are_back = first == queue_.size();
  size_t best = all_are_back ? 0 : first;
  for (size_t i = best + 1; i < queue_.size() && i < kAhead; ++i) {
    if (!all_are_back && is_back(queue_[i])) continue;
    const double gained = failure_penalty(queue_[best]) - failure_penalty(queue_[i]);
    const double behind = as_double(i) - as_double(best);
    if (kPenaltyPlaces * gained > behind) best = i;
  }
  return best;
}

Proposal CandidateQueue::proposal_of(KernelConfig config) const {
  Proposal out;
  if (const auto parent = parents_.find(config.text()); parent != parents_.end()) {
    out.parents = {parent->second.text()};
    out.action = action_between(parent->second, config);
  }
  out.config = std::move(config);
  return out;
}

std::optional<Proposal> CandidateQueue::take() {
  if (!leads_.empty()) {
    KernelConfig lead = std::move(leads_.front());
    leads_.pop_front();
    return proposal_of(std::move(lead));
  }
  // Nothing to start from, or no neighbour left: the next in the ranked order.
  while (queue_.empty() && used_ < order_.size())
    offer(order_[used_++]);
  if (queue_.empty()) return std::nullopt;
  offer_others();
  const size_t best = most_promising();
  KernelConfig out = std::move(queue_[best]);
  queue_.erase(queue_.begin() + as_int64(best));
  return proposal_of(std::move(out));
}
}  // namespace warploom::search
