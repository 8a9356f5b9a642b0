#include "search/strategy/lfbo.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "search/strategy/explored.h"
#include "search/strategy/forest.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr size_t kFirst = 100;    // random configs at the start
constexpr size_t kRound = 20;     // configs of a round
constexpr size_t kPool = 400;     // random ones that a round chooses among
constexpr size_t kClimbed = 5;    // the best few whose changes it chooses among
constexpr double kGood = 1. / 3;  // of those told: the good ones
}  // namespace

LfboStrategy::LfboStrategy(const StrategySetup& setup) : seen_(setup), random_(setup.seed, "lfbo") {
  for (const kernels::FamilyPtr& family : seen_.space().families) {
    columns_[family->name()] = width_;
    width_ += 1 + family->type().fields.size();
  }
}

void LfboStrategy::tell(const Judged& judged) {
  seen_.tell(judged);
  told_.push_back(judged);
}

// A flag for its family, and of each of that family's fields the logarithm; 0 in those of others.
Row LfboStrategy::row_of(const KernelConfig& config) const {
  Row out(width_, 0);
  const auto first = columns_.find(config.family());
  if (first == columns_.end()) return out;
  out[first->second] = 1;
  for (size_t i = 0; i < config.size(); ++i)
    out[first->second + 1 + i] = std::log2(1 + as_double(std::max<int64_t>(0, config.get(i))));
  return out;
}

// How much faster than the threshold each is, in shares of it, of a mean of 1; 0: not faster, or
// refused.
std::vector<double> LfboStrategy::weights() const {
  std::vector<double> times;
  for (const Judged& one : told_)
    times.push_back(one.accepted ? one.us : HUGE_VAL);
  std::vector<double> sorted = times;
  std::ranges::sort(sorted);
  const double threshold = sorted[as_size(kGood * as_double(sorted.size() - 1))];
  std::vector<double> out;
  double sum = 0;
  double good = 0;
  for (const double us : times) {
    const bool is_good = us < threshold;
    const double gain = is_good && threshold < HUGE_VAL ? 1 - us / threshold : as_double(is_good);
    out.push_back(gain);
    sum += gain;
    good += is_good ? 1 : 0;
  }
  for (double& one : out)
    one *= sum > 0 ? good / sum : 0;
  return out;
}

std::vector<KernelConfig> LfboStrategy::pool() {
  std::vector<KernelConfig> out;
  std::set<std::string> texts;
  const auto add = [&](const KernelConfig& config) {
    if (!seen_.knows(config) && texts.insert(config.text()).second) out.push_back(config);
  };
  const auto& families = seen_.space().families;
  for (size_t i = 0; i < kPool && !families.empty(); ++i) {
    const kernels::Family& family = *families[random_.below(families.size())];
    if (const auto config = kernels::SpaceWalk(family).sample(random_)) add(*config);
  }
  const std::vector<const Node*> best = seen_.by_time();
  for (size_t i = 0; i < std::min(kClimbed, best.size()); ++i)
    for (const KernelConfig& config : neighbours(seen_.space(), best[i]->config))
      add(config);
  return out;
}

void LfboStrategy::begin_round() {
  if (told_.empty()) return;
  seen_.begin_round();
  std::vector<Row> rows;
  for (const Judged& one : told_)
    rows.push_back(row_of(one.config));
  const Forest forest(rows, weights(), random_);
  std::vector<std::pair<double, KernelConfig>> scored;
  for (KernelConfig& config : pool())
    scored.emplace_back(-forest.probability(row_of(config)), std::move(config));
  std::ranges::stable_sort(scored, {}, &std::pair<double, KernelConfig>::first);
  for (size_t i = 0; i < std::min(kRound, scored.size()); ++i)
    if (auto next = seen_.start(scored[i].second)) round_.push_back(*std::move(next));
}

std::optional<Proposal> LfboStrategy::ask() {
  if (auto next = seen_.next_start()) return next;
  if (begun_ < kFirst) {
    ++begun_;
    return seen_.at_random(random_);
  }
  if (round_.empty() && seen_.out() > 0) return std::nullopt;
  if (round_.empty()) begin_round();
  if (round_.empty()) return seen_.at_random(random_);
  Proposal next = std::move(round_.front());
  round_.pop_front();
  return next;
}
}  // namespace warploom::search
