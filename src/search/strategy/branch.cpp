#include "search/strategy/branch.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/rows.h"
#include "kernels/config/kernel_config.h"
#include "search/coder/coder.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr size_t kBest = 2;         // seeds of a round that are the fastest
constexpr size_t kBanked = 2;       // and of the bank
constexpr size_t kIdeas = 3;        // of each seed
constexpr int kVariants = 2;        // of each idea
constexpr double kGood = 1.5;       // times the best: what is in the bank
constexpr size_t kMostBanked = 64;  // the fastest of these
constexpr size_t kRandom = 4;       // configs of a round whose seeds have nothing new

// Fields in which two configs differ; all of them where the families do.
size_t difference(const KernelConfig& one, const KernelConfig& other) {
  if (one.type() != other.type()) return one.size() + other.size();
  size_t count = 0;
  for (size_t i = 0; i < one.size(); ++i)
    if (one.get(i) != other.get(i)) ++count;
  return count;
}

size_t least_difference(const Node* node, const std::vector<const Node*>& chosen) {
  size_t least = SIZE_MAX;
  for (const Node* one : chosen)
    least = std::min(least, difference(node->config, one->config));
  return least;
}
}  // namespace

BranchStrategy::BranchStrategy(const StrategySetup& setup)
    : seen_(setup), random_(setup.seed, "branch") {
  seen_.queue_starts();
}

// Of the bank the one that differs most from those that are chosen, again and again.
std::vector<const Node*> BranchStrategy::seeds() const {
  std::vector<const Node*> bank = seen_.by_time();
  if (bank.empty()) return {};
  const double most_us = kGood * bank[0]->us;
  std::vector<const Node*> out(bank.begin(), bank.begin() + as_int64(std::min(kBest, bank.size())));
  std::erase_if(bank, [&](const Node* one) { return one->us > most_us || contains(out, one); });
  if (bank.size() > kMostBanked) bank.erase(bank.begin() + as_int64(kMostBanked), bank.end());
  for (size_t i = 0; i < kBanked && !bank.empty(); ++i) {
    const auto far = std::ranges::max_element(
        bank, {}, [&](const Node* one) { return least_difference(one, out); });
    out.push_back(*far);
    bank.erase(far);
  }
  return out;
}

// The idea itself; or, where the coder has no other way to carry it out, the idea and then another
// action, which is one step of the lineage: the idea's change comes first in it.
bool BranchStrategy::implement(const Node& seed, const Choice& idea, int variant) {
  std::optional<Proposal> made;
  if (variant < seen_.coder().variants()) {
    made = seen_.step(seed, idea, variant);
  } else {
    const Node after{.config = idea.config, .parent = &seed, .action = idea.action};
    const std::vector<Choice> choices = seen_.choices(after);
    if (choices.empty()) return false;
    const Choice& also = choices[Explored::draw(choices, random_)];
    made = seen_.jump(seed, also.config, {}, idea.weight);
  }
  if (!made) return false;
  round_.push_back(*std::move(made));
  return true;
}

void BranchStrategy::branch(const Node& seed) {
  std::vector<Choice> choices = seen_.choices(seed);
  for (size_t i = 0; i < kIdeas && !choices.empty(); ++i) {
    const size_t drawn = Explored::draw(choices, random_);
    for (int variant = 0; variant < kVariants; ++variant)
      implement(seed, choices[drawn], variant);
    choices.erase(choices.begin() + as_int64(drawn));
  }
}

void BranchStrategy::begin_round() {
  seen_.begin_round();
  for (const Node* seed : seeds())
    branch(*seed);
  for (size_t i = 0; round_.empty() && i < kRandom; ++i) {
    const std::optional<KernelConfig> config = seen_.unseen(random_);
    if (!config) break;
    round_.push_back(*seen_.start(*config));
  }
}

std::optional<Proposal> BranchStrategy::ask() {
  if (auto next = seen_.next_start()) return next;
  // A round begins when all of the one before it is known.
  if (round_.empty() && seen_.out() == 0) begin_round();
  if (round_.empty()) return std::nullopt;
  Proposal next = std::move(round_.front());
  round_.pop_front();
  return next;
}
}  // namespace warploom::search
