#include "search/search_strategy.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/parallel.h"
#include "kernels/bound_task.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "plan/limits.h"
#include "plan/prepare.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using kernels::FamilyPtr;
using kernels::KernelConfig;
using plan::Limits;

constexpr size_t kMostEnumerated = 100'000;  // spaces up to this size are gone through whole
constexpr size_t kSamples = 4'000;           // of larger ones

// Automatic: spaces of so many legal configs are enumerated.
constexpr size_t kSmallSpace = 96;

// beam, each family
constexpr size_t kFirstGuesses = 6;
constexpr size_t kFirstRandom = 2;

constexpr size_t kWidth = 5;             // the best few that are changed
constexpr size_t kChanges = 3;           // of each, a round
constexpr size_t kModelled = 64;         // guesses, and random ones, that the model is asked about
constexpr size_t kAhead = 24;            // how far down the queue another is looked for
constexpr double kPenaltyPlaces = 8;     // of the queue, for a field's value that always failed
constexpr size_t kClimbers = 8;          // the best few whose neighbours a climb sees
constexpr size_t kClimbs = 6;            // and how often
constexpr size_t kMostRemembered = 100;  // of the best; only the first few matter

// A fallback: how many legal configs are looked at where predictions order them (where guesses do:
// a whole space), and how many of them are predicted and built.
constexpr size_t kFallbacks = 4'000;
constexpr size_t kFallbacksTried = 8;

struct Guessed {
  double guess;
  KernelConfig config;
};

// Every legal config of a family, or as many as a bounded number of samples finds where the space
// is too large to go through.
std::vector<Guessed> legal_configs(const kernels::Family& family, Random& random,
                                   const Limits& limits) {
  const kernels::SpaceWalk walk(family);
  std::vector<Guessed> found;
  const auto add = [&](const KernelConfig& config) {
    found.push_back({family.guess(config), config});
    return !limits.ended();
  };
  if (as_size(walk.space().size()) <= kMostEnumerated) {
    walk.all(add);
    return found;
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < kSamples && !limits.ended(); ++i) {
    const auto config = walk.sample(random);
    if (config && seen.insert(config->text()).second) add(*config);
  }
  return found;
}

// Best guess first; in random order on targets with a cost model, which orders them a few at a
// time.
std::vector<KernelConfig> ranked(const SearchSpace& space, const kernels::Family& family,
                                 Random& random, const Limits& limits) {
  auto found = legal_configs(family, random, limits);
  if (space.capabilities.gpu) random.shuffle(found);
  std::ranges::stable_sort(found, {}, &Guessed::guess);
  std::vector<KernelConfig> out;
  for (Guessed& one : found)
    out.push_back(std::move(one.config));
  return out;
}

// The legal configs that differ from `config` in one field, in the order of fields and values.
std::vector<KernelConfig> neighbours(const SearchSpace& space, const KernelConfig& config) {
  const auto family = std::ranges::find(space.families, config.family(), &kernels::Family::name);
  std::vector<KernelConfig> out;
  if (family == space.families.end()) return out;
  for (const auto& field : (*family)->space().fields) {
    const int64_t now = config.get(field.number);
    for (const int64_t value : field.values) {
      if (now == value) continue;
      KernelConfig changed = config;
      changed.set(field.number, value);
      if ((*family)->legal(changed)) out.push_back(std::move(changed));
    }
  }
  return out;
}
}  // namespace

SearchSpace search_space_of(const kernels::Region& region, const target::Capabilities& capabilities,
                            const std::set<std::string>& constants, bool exact) {
  const auto task = std::make_shared<const kernels::BoundTask>(region, capabilities);
  const auto build = [=](const KernelConfig& config) -> Result<LaunchList> {
    WARPLOOM_TRY(LaunchList list, task->build(config));
    plan::add_prepare(list, region.graph, constants);
    if (exact && list.special == SpecialValues::finite)
      return fail({ErrorCode::kScheduleIllegal, "the kernels take finite inputs alone",
                   config.text(), "special values: exact", "finite", "leave --exact out"});
    return list;
  };
  const auto predict = [=](const KernelConfig& config) { return task->predicted_us(config); };
  auto families = task->families();
  const auto is_finite = [](const FamilyPtr& family) {
    return family->special_values(KernelConfig(family->type())) == SpecialValues::finite;
  };
  if (exact) std::erase_if(families, is_finite);
  return {region, capabilities, std::move(families), build, predict};
}

namespace {
// The surest family first.
int doubt_of(const kernels::Family& family) {
  const bool exact = family.special_values(KernelConfig(family.type())) == SpecialValues::exact;
  const bool fastest = family.suit() == kernels::Specialization::fastest;
  return (exact ? 0 : 100) + (fastest ? 10 : static_cast<int>(family.suit()));
}

double predicted(const SearchSpace& space, const KernelConfig& config) {
  const double us = space.predict ? space.predict(config).value_or(0) : 0;
  return us > 0 ? us : HUGE_VAL;
}

// Of those that a bounded walk finds the best few, by prediction or else by guess: the first that
// can be built.
std::optional<Fallback> best_built(const SearchSpace& space, const kernels::Family& family,
                                   const plan::Limits& limits) {
  std::vector<Guessed> found;
  const kernels::SpaceWalk walk(family);
  const size_t most = space.capabilities.gpu ? kFallbacks : kMostEnumerated;
  walk.all([&](const KernelConfig& config) {
    found.push_back({family.guess(config), config});
    return found.size() < most;
  });
  std::ranges::stable_sort(found, {}, &Guessed::guess);
  if (found.size() > kFallbacksTried) found.erase(found.begin() + kFallbacksTried, found.end());
  if (space.capabilities.gpu && !limits.ended() && !limits.late()) {
    const auto predict = [&](int64_t i) { found[i].guess = predicted(space, found[i].config); };
    graph::parallel_for(std::ssize(found), 0, predict);
    std::ranges::stable_sort(found, {}, &Guessed::guess);
  }
  for (const Guessed& one : found)
    if (Result<LaunchList> list = space.build(one.config))
      return Fallback{one.config, *std::move(list)};
  return std::nullopt;
}

std::optional<Fallback> fallback_within(const SearchSpace& space, const plan::Limits& limits) {
  std::vector<kernels::FamilyPtr> families = space.families;
  std::ranges::stable_sort(families, {}, [](const auto& family) { return doubt_of(*family); });
  for (const kernels::FamilyPtr& family : families)
    if (std::optional<Fallback> found = best_built(space, *family, limits)) return found;
  return std::nullopt;
}
}  // namespace

std::optional<Fallback> fallback_of(const SearchSpace& space) {
  return fallback_within(space, {});
}

SearchStrategy::SearchStrategy(const SearchSpace& space, Strategy strategy, uint64_t seed,
                               Limits limits)
    : space_(&space), strategy_(strategy), limits_(limits), random_(seed, "proposer") {
  Ranked families;
  size_t total = 0;
  for (const FamilyPtr& family : space.families) {
    families.push_back(ranked(space, *family, random_, limits_));
    total += families.back().size();
  }
  const bool is_broad = strategy_ == Strategy::automatic || strategy_ == Strategy::beam;
  if (strategy_ == Strategy::automatic)
    strategy_ = total <= kSmallSpace ? Strategy::enumerate : Strategy::beam;
  order(families);
  if (is_broad) lead(families);
  if (strategy_ == Strategy::random) random_.shuffle(order_);
  if (strategy_ == Strategy::beam) start_beam(families);
}

// Families in turn: their guesses need not compare.
void SearchStrategy::order(const Ranked& families) {
  size_t longest = 0;
  for (const auto& family : families)
    longest = std::max(longest, family.size());
  for (size_t rank = 0; rank < longest; ++rank)
    for (const auto& family : families)
      if (rank < family.size()) order_.push_back(family[rank]);
}

// Breadth first: the fallback, then the best of every other family.
void SearchStrategy::lead(const Ranked& families) {
  const std::optional<Fallback> fallback = fallback_within(*space_, limits_);
  if (fallback) offer(fallback->config, "");
  for (const auto& family : families) {
    if (family.empty() || (fallback && family[0].family() == fallback->config.family())) continue;
    std::vector<KernelConfig> best(family.begin(),
                                   family.begin() + std::min(family.size(), kAhead));
    sort_by_prediction(best);
    offer(best[0], "");
  }
  leads_.assign(queue_.begin(), queue_.end());
  queue_.clear();
}

void SearchStrategy::start_beam(const Ranked& families) {
  std::vector<KernelConfig> starts;
  for (const auto& family : families)
    for (size_t i = 0; i < std::min(kModelled, family.size()); ++i) {
      starts.push_back(family[i]);
      starts.push_back(family[random_.below(family.size())]);
    }
  climb(std::move(starts));
  for (size_t i = 0; i < std::min(order_.size(), kFirstGuesses * families.size()); ++i)
    offer(order_[i], "");
  for (const auto& family : families)
    for (size_t i = 0; i < kFirstRandom && !family.empty(); ++i)
      offer(family[random_.below(family.size())], "");
  limits_.until.reset();
}

bool SearchStrategy::offer(const KernelConfig& config, const std::string& parent) {
  const std::string text = config.text();
  if (!proposed_.insert(text).second) return false;
  if (!parent.empty()) parents_[text] = {parent};
  queue_.push_back(config);
  return true;
}

// Those for breadth come behind it then, as the queue's first.
void SearchStrategy::suggest(const KernelConfig& config) {
  queue_.insert(queue_.begin(), leads_.begin(), leads_.end());
  leads_.clear();
  std::erase(queue_, config);
  proposed_.insert(config.text());
  queue_.insert(queue_.begin(), config);
}

void SearchStrategy::learn(const KernelConfig& config, double us) {
  count(config, true);
  best_.emplace(us, config);
  if (best_.size() > kMostRemembered) best_.erase(std::prev(best_.end()));
}

void SearchStrategy::mutate() {
  ++rounds_;
  size_t width = 0;
  for (const auto& [us, good] : best_) {
    if (++width > kWidth) break;
    auto changed = neighbours(*space_, good);
    random_.shuffle(changed);
    if (random_.below(3)) sort_by_prediction(changed);
    size_t taken = 0;
    for (const auto& config : changed)
      if (taken < kChanges && offer(config, good.text())) ++taken;
  }
  if (rounds_ % 2 == 0 && !order_.empty()) offer(order_[random_.below(order_.size())], "");
}

// Asks the model about those that it was not asked about before.
void SearchStrategy::predict(const std::vector<KernelConfig>& configs) {
  std::vector<const KernelConfig*> fresh;
  for (const auto& config : configs)
    if (predicted_.emplace(config.text(), HUGE_VAL).second) fresh.push_back(&config);
  std::vector<double> us(fresh.size());
  const auto predict = [&](int64_t i) {
    const bool over = limits_.ended() || limits_.late();
    const double predicted = over ? 0 : space_->predict(*fresh[i]).value_or(0);
    us[i] = predicted > 0 ? predicted : HUGE_VAL;
  };
  graph::parallel_for(as_int64(fresh.size()), 0, predict);
  for (size_t i = 0; i < fresh.size(); ++i)
    predicted_[fresh[i]->text()] = us[i];
}

bool SearchStrategy::sort_by_prediction(std::vector<KernelConfig>& configs) {
  if (!space_->capabilities.gpu || !space_->predict) return false;  // nothing is known of CPUs
  predict(configs);
  std::ranges::stable_sort(configs, {},
                           [&](const KernelConfig& config) { return predicted_[config.text()]; });
  return !configs.empty() && predicted_[configs[0].text()] < HUGE_VAL;
}

void SearchStrategy::climb(std::vector<KernelConfig> from) {
  if (!sort_by_prediction(from)) return;
  std::set<std::string> seen;
  for (size_t round = 0; round < kClimbs && !limits_.ended() && !limits_.late(); ++round) {
    std::vector<KernelConfig> next;
    for (size_t i = 0; i < from.size() && seen.size() < kClimbers * (round + 1); ++i)
      if (seen.insert(from[i].text()).second)
        for (auto& near : neighbours(*space_, from[i]))
          next.push_back(std::move(near));
    for (auto& config : next)
      if (!contains(from, config)) from.push_back(std::move(config));
    sort_by_prediction(from);
  }
  for (size_t i = 0; i < std::min<size_t>(from.size(), 3 * kFirstGuesses); ++i)
    offer(from[i], "");
}

void SearchStrategy::refuse(const KernelConfig& config, bool is_wrong) {
  count(config, false);
  if (is_wrong) ++families_[config.family()].refused;
}

void SearchStrategy::count(const KernelConfig& config, bool accepted) {
  if (accepted) ++families_[config.family()].accepted;
  for (size_t i = 0; i < config.size(); ++i) {
    Counts& counts = failure_counts_[{config.family(), i, config.get(i)}];
    ++(accepted ? counts.accepted : counts.refused);
  }
}

// The shares that were refused of those that had the same values, added up.
double SearchStrategy::failure_penalty(const KernelConfig& config) const {
  double sum = 0;
  for (size_t i = 0; i < config.size(); ++i) {
    const auto known = failure_counts_.find({config.family(), i, config.get(i)});
    if (known == failure_counts_.end()) continue;
    const Counts& counts = known->second;
    sum += counts.refused / (counts.refused + counts.accepted + 1.0);
  }
  return sum;
}

bool SearchStrategy::is_back(const KernelConfig& config) const {
  const auto known = families_.find(config.family());
  return known != families_.end() && known->second.refused > known->second.accepted;
}

size_t SearchStrategy::first_of_others() const {
  const auto found = std::ranges::find_if(queue_, [&](const auto& one) { return !is_back(one); });
  return static_cast<size_t>(found - queue_.begin());
}

// Where every family in the queue has stepped back: the best ranked of another that is left.
void SearchStrategy::offer_others() {
  if (queue_.empty() || first_of_others() < queue_.size()) return;
  for (const KernelConfig& config : order_)
    if (!is_back(config) && offer(config, "")) return;
}

// The first of the queue whose family has not stepped back, but for another not far behind it that
// is less likely to be refused.
size_t SearchStrategy::most_promising() const {
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

std::optional<KernelConfig> SearchStrategy::next() {
  if (!leads_.empty()) {
    KernelConfig lead = std::move(leads_.front());
    leads_.pop_front();
    return lead;
  }
  if (queue_.empty() && strategy_ == Strategy::beam && !best_.empty()) mutate();
  // Nothing to start from, or no neighbour left: the next in the ranked order.
  while (queue_.empty() && used_ < order_.size())
    offer(order_[used_++], "");
  if (queue_.empty()) return std::nullopt;
  offer_others();
  const size_t best = most_promising();
  KernelConfig out = std::move(queue_[best]);
  queue_.erase(queue_.begin() + as_int64(best));
  return out;
}
}  // namespace warploom::search
