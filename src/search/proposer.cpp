#include "graph/parallel.h"
#include "kernels/bound_task.h"
#include "kernels/space_walk.h"
#include "search/explore.h"

namespace warploom::search {
namespace {
constexpr size_t kWalk = 100'000;   // spaces up to this size are walked whole
constexpr size_t kSamples = 4'000;  // at random from larger ones

// Every legal config of a family, or as many as a bounded number of samples finds where the space
// is too large to go through, best guess first; in random order on targets with a cost model.
std::vector<kernels::KernelConfig> ranked(const SearchSpace& catalogue,
                                          const kernels::Family& family, Random& random,
                                          const Limits& limits) {
  const kernels::SpaceWalk walk(family);
  std::vector<std::pair<double, kernels::KernelConfig>> found;
  const auto add = [&](const kernels::KernelConfig& config) {
    found.emplace_back(family.guess(config), config);
  };
  if (static_cast<size_t>(walk.space().size()) <= kWalk) {
    walk.all([&](const kernels::KernelConfig& config) {
      add(config);
      return !limits.ended();
    });
  } else {
    std::set<std::string> seen;
    for (size_t i = 0; i < kSamples && !limits.ended(); ++i) {
      const auto config = walk.sample(random);
      if (config && seen.insert(config->text()).second) add(*config);
    }
  }
  if (catalogue.capabilities.gpu)
    random.shuffle(found);  // the cost model orders them, a few at a time
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<kernels::KernelConfig> out;
  for (auto& [guess, config] : found) out.push_back(std::move(config));
  return out;
}

// The legal configs that differ from `config` in one field, in the order of fields and values.
std::vector<kernels::KernelConfig> neighbours(const SearchSpace& catalogue,
                                              const kernels::KernelConfig& config) {
  const auto family =
      std::ranges::find(catalogue.families, config.family(), &kernels::Family::name);
  std::vector<kernels::KernelConfig> out;
  if (family == catalogue.families.end()) return out;
  for (const auto& field : (*family)->space().fields) {
    const auto now = config.get(field.name);
    for (const int64_t value : field.values) {
      if (now == value) continue;
      kernels::KernelConfig changed = config;
      changed.set(field.name, value);
      if ((*family)->legal(changed)) out.push_back(std::move(changed));
    }
  }
  return out;
}

constexpr size_t kSmallSpace = 96;  // automatic: spaces up to this size are enumerated
// beam, each family
constexpr size_t kFirstGuesses = 6;
constexpr size_t kFirstRandom = 2;
constexpr size_t kWidth = 5;      // the best few that are changed
constexpr size_t kChanges = 3;    // of each, a round
constexpr size_t kModelled = 64;  // guesses, and random looks, that the model is asked about
constexpr size_t kAhead = 24;     // how far down the queue another is looked for than the first
constexpr double kPlaces =
    8;  // of the queue, that a field's value is worth which was always refused
constexpr size_t kClimbers = 8;
constexpr size_t kClimbs = 6;  // the best few whose neighbours it sees, and how often
}  // namespace

SearchSpace catalogue_of(const kernels::Region& region, const target::Capabilities& capabilities) {
  const auto task = std::make_shared<const kernels::BoundTask>(region, capabilities);
  return {region, capabilities, task->families(),
          [task](const kernels::KernelConfig& config) { return task->build(config); },
          [task](const kernels::KernelConfig& config) { return task->predicted_us(config); }};
}

SearchStrategy::SearchStrategy(const SearchSpace& catalogue, Strategy strategy, uint64_t seed,
                               Limits limits)
    : catalogue_(&catalogue), strategy_(strategy), limits_(limits), random_(seed, "proposer") {
  std::vector<std::vector<kernels::KernelConfig>> families;
  size_t total = 0;
  size_t longest = 0;
  for (const kernels::FamilyPtr& family : catalogue.families) {
    families.push_back(ranked(catalogue, *family, random_, limits_));
    total += families.back().size();
    longest = std::max(longest, families.back().size());
  }
  if (strategy_ == Strategy::automatic)
    strategy_ = total <= kSmallSpace ? Strategy::enumerate : Strategy::beam;
  for (size_t rank = 0; rank < longest; ++rank)  // families in turn: their guesses need not compare
    for (const auto& family : families)
      if (rank < family.size()) order_.push_back(family[rank]);
  if (strategy_ == Strategy::random) random_.shuffle(order_);
  if (strategy_ != Strategy::beam) return;
  std::vector<kernels::KernelConfig> starts;
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

bool SearchStrategy::offer(const kernels::KernelConfig& schedule, const std::string& parent) {
  const std::string text = schedule.text();
  if (!proposed_.insert(text).second) return false;
  if (!parent.empty()) parents_[text] = {parent};
  queue_.push_back(schedule);
  return true;
}

void SearchStrategy::suggest(const kernels::KernelConfig& schedule) {
  std::erase(queue_, schedule);
  proposed_.insert(schedule.text());
  queue_.insert(queue_.begin(), schedule);
}

void SearchStrategy::mutate() {
  ++rounds_;
  size_t width = 0;
  for (const auto& [us, good] : best_) {
    if (++width > kWidth) break;
    std::vector<kernels::KernelConfig> changed = neighbours(*catalogue_, good);
    random_.shuffle(changed);
    if (random_.below(3)) by_prediction(changed);
    size_t taken = 0;
    for (const auto& schedule : changed)
      if (taken < kChanges && offer(schedule, good.text())) ++taken;
  }
  if (rounds_ % 2 == 0 && !order_.empty()) offer(order_[random_.below(order_.size())], "");
}

bool SearchStrategy::by_prediction(std::vector<kernels::KernelConfig>& schedules) {
  if (!catalogue_->capabilities.gpu || !catalogue_->predict)
    return false;  // nothing is known of CPUs
  std::vector<const kernels::KernelConfig*> fresh;
  for (const auto& schedule : schedules)
    if (predicted_.emplace(schedule.text(), HUGE_VAL).second) fresh.push_back(&schedule);
  std::vector<double> us(fresh.size());
  graph::parallel_for(static_cast<int64_t>(fresh.size()), 0, [&](int64_t i) {
    const bool over = limits_.ended() || limits_.late();
    const double predicted = over ? 0 : catalogue_->predict(*fresh[i]).value_or(0);
    us[i] = predicted > 0 ? predicted : HUGE_VAL;
  });
  for (size_t i = 0; i < fresh.size(); ++i) predicted_[fresh[i]->text()] = us[i];
  std::ranges::stable_sort(schedules, [&](const auto& a, const auto& b) {
    return predicted_[a.text()] < predicted_[b.text()];
  });
  return !schedules.empty() && predicted_[schedules[0].text()] < HUGE_VAL;
}

void SearchStrategy::climb(std::vector<kernels::KernelConfig> from) {
  if (!by_prediction(from)) return;
  std::set<std::string> seen;
  for (size_t round = 0; round < kClimbs && !limits_.ended() && !limits_.late(); ++round) {
    std::vector<kernels::KernelConfig> next;
    for (size_t i = 0; i < from.size() && seen.size() < kClimbers * (round + 1); ++i)
      if (seen.insert(from[i].text()).second)
        for (auto& near : neighbours(*catalogue_, from[i])) next.push_back(std::move(near));
    for (auto& schedule : next)
      if (!contains(from, schedule)) from.push_back(std::move(schedule));
    by_prediction(from);
  }
  for (size_t i = 0; i < std::min<size_t>(from.size(), 3 * kFirstGuesses); ++i) offer(from[i], "");
}

void SearchStrategy::remember(const kernels::KernelConfig& schedule, bool right) {
  for (size_t i = 0; i < schedule.size(); ++i)
    ++fates_[{schedule.family(), i, schedule.get(i)}][right];
}

// The parts refused of those that had the same values, added up.
double SearchStrategy::doubt(const kernels::KernelConfig& schedule) const {
  double sum = 0;
  for (size_t i = 0; i < schedule.size(); ++i)
    if (const auto fate = fates_.find({schedule.family(), i, schedule.get(i)});
        fate != fates_.end())
      sum += fate->second[0] / (fate->second[0] + fate->second[1] + 1.0);
  return sum;
}

std::optional<kernels::KernelConfig> SearchStrategy::next() {
  if (queue_.empty() && strategy_ == Strategy::beam && !best_.empty()) mutate();
  // Nothing to start from, or no neighbour left: the next in the ranked order.
  while (queue_.empty() && used_ < order_.size()) offer(order_[used_++], "");
  if (queue_.empty()) return std::nullopt;
  size_t best = 0;
  for (size_t i = 1; i < queue_.size() && i < kAhead; ++i)
    if (kPlaces * (doubt(queue_[i]) - doubt(queue_[best])) <
        static_cast<double>(best) - static_cast<double>(i))
      best = i;
  kernels::KernelConfig out = std::move(queue_[best]);
  queue_.erase(queue_.begin() + static_cast<ptrdiff_t>(best));
  return out;
}
}  // namespace warploom::search
