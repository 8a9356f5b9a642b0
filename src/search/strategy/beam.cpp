#include "search/strategy/beam.h"
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/random.h"
#include "base/rows.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "search/strategy/predictions.h"
#include "search/strategy/queue.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

// Of each family.
constexpr size_t kFirstGuesses = 6;
constexpr size_t kFirstRandom = 2;

constexpr size_t kWidth = 5;             // the best few that are changed
constexpr size_t kChanges = 3;           // of each, a round
constexpr size_t kModelled = 64;         // guesses, and random ones, that the model is asked about
constexpr size_t kClimbers = 8;          // the best few whose neighbours a climb sees
constexpr size_t kClimbs = 6;            // and how often
constexpr size_t kMostRemembered = 100;  // of the best; only the first few matter
}  // namespace

BeamStrategy::BeamStrategy(const SearchSpace& space, const Ranked& families, CandidateQueue queue,
                           Predictions predictions, Random random)
    : space_(&space),
      queue_(std::move(queue)),
      predictions_(std::move(predictions)),
      random_(random) {
  std::vector<KernelConfig> starts;
  for (const auto& family : families)
    for (size_t i = 0; i < std::min(kModelled, family.size()); ++i) {
      starts.push_back(family[i]);
      starts.push_back(family[random_.below(family.size())]);
    }
  climb(std::move(starts));
  const auto& order = queue_.order();
  for (size_t i = 0; i < std::min(order.size(), kFirstGuesses * families.size()); ++i)
    queue_.offer(order[i]);
  for (const auto& family : families)
    for (size_t i = 0; i < kFirstRandom && !family.empty(); ++i)
      queue_.offer(family[random_.below(family.size())]);
  predictions_.begin_rounds();
}

void BeamStrategy::tell(const Judged& judged) {
  queue_.tell(judged);
  if (!judged.accepted) return;
  best_.emplace(judged.us, judged.config);
  if (best_.size() > kMostRemembered) best_.erase(std::prev(best_.end()));
}

void BeamStrategy::mutate() {
  ++rounds_;
  size_t width = 0;
  for (const auto& [us, good] : best_) {
    if (++width > kWidth) break;
    auto changed = neighbours(*space_, good);
    random_.shuffle(changed);
    if (random_.below(3)) predictions_.sort(changed);
    size_t taken = 0;
    for (const auto& config : changed)
      if (taken < kChanges && queue_.offer(config, &good)) ++taken;
  }
  const auto& order = queue_.order();
  if (rounds_ % 2 == 0 && !order.empty()) queue_.offer(order[random_.below(order.size())]);
}

void BeamStrategy::climb(std::vector<KernelConfig> from) {
  if (!predictions_.sort(from)) return;
  std::set<std::string> seen;
  for (size_t round = 0; round < kClimbs && !predictions_.is_over(); ++round) {
    std::vector<KernelConfig> next;
    for (size_t i = 0; i < from.size() && seen.size() < kClimbers * (round + 1); ++i)
      if (seen.insert(from[i].text()).second)
        for (auto& near : neighbours(*space_, from[i]))
          next.push_back(std::move(near));
    for (auto& config : next)
      if (!contains(from, config)) from.push_back(std::move(config));
    predictions_.sort(from);
  }
  for (size_t i = 0; i < std::min<size_t>(from.size(), 3 * kFirstGuesses); ++i)
    queue_.offer(from[i]);
}

std::optional<Proposal> BeamStrategy::ask() {
  if (queue_.is_empty() && !best_.empty()) mutate();
  return queue_.take();
}
}  // namespace warploom::search
