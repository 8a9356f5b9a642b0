#include "search/boundary_search.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "search/action/plan_actions.h"
#include "search/budget.h"

namespace warploom::search {
namespace {
using plan::BoundaryOption;
using plan::Partition;
using plan::Region;

// Of all that the network takes: less is not worth a trial.
constexpr double kLeastHope = 0.01;
// Of the best: what a partition must take to be better, since times of regions alone are noisy.
constexpr double kGain = 0.98;
// Of the time that is left, for one trial; more where it needs more.
constexpr double kTrialShare = 0.25;

// Equal for partitions into the same regions.
std::string key_of(const Partition& partition) {
  std::vector<std::string> each;
  for (const Region& region : partition.regions)
    each.push_back(fmt::format("{}", fmt::join(region.nodes, " ")) + "\n" +
                   fmt::format("{}", fmt::join(region.stored(), " ")));
  std::ranges::sort(each);
  return fmt::format("{}", fmt::join(each, "\n\n"));
}
}  // namespace

BoundarySearch::BoundarySearch(plan::Boundaries& boundaries, Partition start, RegionTimes times,
                               plan::Limits limits)
    : boundaries_(boundaries),
      best_(std::move(start)),
      times_(std::move(times)),
      limits_(std::move(limits)) {
  seen_.insert(key_of(best_));
  look_again();
}

double BoundarySearch::us_of(const Partition& partition) const {
  double sum = 0;
  for (const Region& region : partition.regions) {
    const double us = region.alias ? 0 : times_.best_us(region);
    if (!region.alias && us <= 0) return 0;
    sum += us;
  }
  return sum;
}

void BoundarySearch::look_again() {
  options_ = boundaries_.options(best_.changes, limits_);
  std::erase_if(options_, [](const BoundaryOption& one) { return one.refusal.has_value(); });
}

double BoundarySearch::bound_of(const std::vector<const Region*>& regions) const {
  double bound = 0;
  for (const Region* region : regions)
    bound += times_.bound_us(region->graph);
  return bound;
}

// Of their bound, that regions reach together; 0: not known.
double BoundarySearch::share_of(const std::vector<const Region*>& regions) const {
  double us = 0;
  for (const Region* region : regions)
    us += times_.best_us(*region);
  return us > 0 ? std::min(1.0, bound_of(regions) / us) : 0;
}

// What a library takes for the regions together; 0: not known.
double BoundarySearch::reference_us(const std::vector<const Region*>& regions) const {
  double all = 0;
  for (const Region* region : regions) {
    const double us = times_.reference_us ? times_.reference_us(*region) : 0;
    if (us <= 0) return 0;
    all += us;
  }
  return all;
}

double BoundarySearch::hope_of(const BoundaryOption& option, double share) const {
  std::vector<const Region*> gone;
  double before = 0;
  double failed = 0;
  for (const size_t number : option.gone) {
    const Region& region = best_.regions[number];
    gone.push_back(&region);
    before += times_.best_us(region);
    const auto found = failed_.find(region.identity);
    if (found != failed_.end()) failed += found->second;
  }
  const bool is_join = option.changes.front().kind == plan::BoundaryKind::join_regions;
  const double reached = is_join ? share_of(gone) : share;
  double bound = 0;
  for (const Region& region : option.made)
    bound += times_.bound_us(region.graph);
  if (reached <= 0 || bound <= 0) return 0;
  double gain = before - bound / reached;
  const double library = is_join ? 0 : reference_us(gone);
  if (library > 0) gain = std::max(gain, before - library - std::max(0.0, bound - bound_of(gone)));
  return std::max(0.0, gain) * static_cast<double>(option.changes.size()) / (1 + failed);
}

std::vector<BoundarySearch::Hope> BoundarySearch::hopes() const {
  const double total = best_us();
  if (total <= 0) return {};
  double share = 0;  // the best that a region reached
  for (const Region& region : best_.regions)
    if (!region.alias) share = std::max(share, share_of({&region}));
  std::vector<Hope> hopes;
  for (const BoundaryOption& option : options_) {
    const double us = hope_of(option, share);
    if (us > kLeastHope * total) hopes.push_back({option, us});
  }
  std::ranges::stable_sort(hopes, std::greater{}, &Hope::us);
  return hopes;
}

std::optional<BoundarySearch::Trial> BoundarySearch::ask() {
  for (const Hope& hope : hopes()) {
    plan::BoundaryChanges changes = best_.changes;
    changes.insert(changes.end(), hope.option.changes.begin(), hope.option.changes.end());
    if (!asked_.insert(to_text(changes)).second) continue;
    auto partition = boundaries_.under(changes);
    if (!partition || !seen_.insert(key_of(*partition)).second) continue;
    return Trial{action_of(hope.option), *std::move(partition), hope.us};
  }
  return std::nullopt;
}

bool BoundarySearch::tell(const Trial& trial, double us) {
  ++tried_;
  const double before = best_us();
  if (us > 0 && us < kGain * before) {
    best_ = trial.partition;
    look_again();
    return true;
  }
  std::set<std::string> left;
  for (const Region& region : trial.partition.regions)
    left.insert(region.identity);
  for (const Region& region : best_.regions)
    if (!left.contains(region.identity)) ++failed_[region.identity];
  return false;
}

Result<TrialsEnd> try_boundaries(BoundarySearch& search, const Budget& budget,
                                 const BoundaryTrials& trials) {
  while (!trials.is_ended()) {
    const auto trial = search.ask();
    if (!trial) return TrialsEnd::nothing_left;
    const double least = trials.least_seconds(trial->partition);
    if (budget.left() <= least) return TrialsEnd::time_up;
    const Budget part = budget.part(std::max(least, kTrialShare * budget.left()));
    WARPLOOM_TRY(const double us, trials.judge(*trial, part));
    WARPLOOM_CHECK(trials.note(*trial, us, search.tell(*trial, us)));
  }
  return TrialsEnd::interrupted;
}
}  // namespace warploom::search
