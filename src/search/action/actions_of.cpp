#include "search/action/actions_of.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "search/action/action.h"
#include "search/action/own_action.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::FailedConstraints;
using kernels::KernelConfig;

constexpr int kMostChecks = 120;      // configs that a repair looks at
constexpr size_t kRepairWidth = 4;    // the most promising that it goes on from
constexpr size_t kMostRepaired = 3;   // fields beside the one that is meant
constexpr size_t kEntries = 4;        // into another family
constexpr size_t kEntrySamples = 96;  // of which they are the best by guess

// How far two values are from each other: in doublings where both are positive.
double distance(int64_t one, int64_t other) {
  if (one > 0 && other > 0) return std::abs(std::log2(as_double(one) / as_double(other)));
  return as_double(std::abs(one - other));
}

// A config on the way to one that is legal: what was set, how far that is from where it began, and
// what still fails.
struct Partial {
  KernelConfig config;
  std::vector<size_t> set;
  double moved = 0;
  FailedConstraints failed;
};

// The nearest legal config with one field as it is meant; nothing where the search, which is
// bounded, finds none.
class Repair {
 public:
  Repair(const kernels::Family& family, const kernels::Space& fields)
      : family_(family), fields_(fields) {}

  std::optional<KernelConfig> run(Partial start) {
    std::vector<Partial> front = {std::move(start)};
    for (size_t depth = 0; depth < kMostRepaired && !front.empty(); ++depth) {
      std::vector<Partial> next;
      for (const Partial& one : front)
        add_changed(one, next);
      std::ranges::stable_sort(next, [](const Partial& a, const Partial& b) {
        return std::pair(a.failed.size(), a.moved) < std::pair(b.failed.size(), b.moved);
      });
      if (!next.empty() && next[0].failed.empty()) return next[0].config;
      if (next.size() > kRepairWidth) next.erase(next.begin() + as_int64(kRepairWidth), next.end());
      front = std::move(next);
    }
    return std::nullopt;
  }

 private:
  // One field more, of those that the first failing constraint reads.
  void add_changed(const Partial& from, std::vector<Partial>& out) {
    for (const size_t number : from.failed[0].fields) {
      if (contains(from.set, number)) continue;
      const auto field = std::ranges::find(fields_.fields, number, &kernels::Field::number);
      if (field == fields_.fields.end()) continue;
      const int64_t now = from.config.get(number);
      kernels::Values values = field->values;
      std::ranges::stable_sort(values, {}, [&](int64_t value) { return distance(now, value); });
      for (const int64_t value : values) {
        if (value == now || checks_++ >= kMostChecks) continue;
        Partial changed = from;
        changed.config.set(number, value);
        changed.set.push_back(number);
        changed.moved += distance(now, value) + 1;
        changed.failed = family_.constraints(changed.config);
        out.push_back(std::move(changed));
      }
    }
  }

  const kernels::Family& family_;
  const kernels::Space& fields_;
  int checks_ = 0;
};

// The change that is meant comes first.
Action action_to(const KernelConfig& from, const KernelConfig& to, size_t meant) {
  std::vector<Setting> settings = {{meant, from.get(meant), to.get(meant)}};
  for (size_t i = 0; i < to.size(); ++i)
    if (i != meant && from.get(i) != to.get(i)) settings.push_back({i, from.get(i), to.get(i)});
  return action_of(*to.type(), std::move(settings));
}

std::vector<KernelConfig> entries_of(const kernels::Family& family, uint64_t seed) {
  const kernels::SpaceWalk walk(family);
  Random random(seed, family.name());
  std::vector<std::pair<double, KernelConfig>> found;
  std::set<std::string> seen;
  for (size_t i = 0; i < kEntrySamples; ++i) {
    auto config = walk.sample(random);
    if (!config || !seen.insert(config->text()).second) continue;
    const double guess = family.guess(*config);
    found.emplace_back(guess, *std::move(config));
  }
  std::ranges::stable_sort(found, {}, &std::pair<double, KernelConfig>::first);
  std::vector<KernelConfig> out;
  for (size_t i = 0; i < std::min(found.size(), kEntries); ++i)
    out.push_back(std::move(found[i].second));
  return out;
}
}  // namespace

ActionSpace::ActionSpace(const SearchSpace& space, uint64_t seed) : space_(&space) {
  for (const kernels::FamilyPtr& family : space.families) {
    fields_.emplace(family->name(), family->space());
    entries_.emplace(family->name(), entries_of(*family, seed));
  }
}

void ActionSpace::add_changes(const kernels::Family& family, const kernels::Space& fields,
                              const KernelConfig& config, Actions& out) const {
  std::set<std::string> made;
  for (const kernels::Field& field : fields.fields) {
    const int64_t now = config.get(field.number);
    for (const int64_t value : field.values) {
      if (value == now) continue;
      Partial changed{config, {field.number}, 0, {}};
      changed.config.set(field.number, value);
      changed.failed = family.constraints(changed.config);
      std::optional<KernelConfig> legal;
      if (changed.failed.empty())
        legal = changed.config;
      else
        legal = Repair(family, fields).run(changed);
      if (!legal)
        out.refused.push_back({action_to(config, changed.config, field.number), changed.failed});
      else if (made.insert(legal->text()).second)
        out.legal.push_back(action_to(config, *legal, field.number));
    }
  }
}

void ActionSpace::add_own(const kernels::Family& family, const KernelConfig& config,
                          Actions& out) const {
  if (!space_->own_actions) return;
  for (const OwnAction& own : space_->own_actions->all) {
    OwnActionHere here = action_at(own, family, config);
    if (!here.action) continue;
    if (here.why.empty())
      out.legal.push_back(*std::move(here.action));
    else
      out.refused.push_back({*std::move(here.action), std::move(here.why)});
  }
}

std::optional<Result<Action>> ActionSpace::own(const std::string& name,
                                               const KernelConfig& config) const {
  if (!space_->own_actions) return std::nullopt;
  const auto& all = space_->own_actions->all;
  const auto own = std::ranges::find(all, name, &OwnAction::name);
  if (own == all.end()) return std::nullopt;
  OwnActionHere here;
  for (const kernels::FamilyPtr& family : space_->families)
    if (family->name() == config.family()) here = action_at(*own, *family, config);
  if (here.action && here.why.empty()) return *std::move(here.action);
  Error error{ErrorCode::kScheduleIllegal, "the action cannot be carried out here", name};
  error.expected = here.why.empty()
                       ? fmt::format("a config of {} that it changes", own->type->family)
                       : here.why[0].expected;
  error.found = here.why.empty() ? config.text() : here.why[0].found;
  return fail(error);
}

Actions ActionSpace::at(const KernelConfig& config) const {
  Actions out;
  for (const kernels::FamilyPtr& family : space_->families) {
    if (family->name() == config.family()) {
      add_changes(*family, fields_.at(family->name()), config, out);
      add_own(*family, config, out);
      continue;
    }
    for (const KernelConfig& entry : entries(family->name()))
      out.legal.push_back(*action_between(config, entry));
  }
  return out;
}

ActionsPtr ActionSpace::shared_at(const KernelConfig& config) const {
  constexpr size_t kMostKnown = 20'000;
  const std::string text = config.text();
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(text); known != known_.end()) return known->second;
  }
  auto made = std::make_shared<const Actions>(at(config));
  const std::scoped_lock lock(mutex_);
  if (known_.size() < kMostKnown) known_.emplace(text, made);
  return made;
}

const std::vector<KernelConfig>& ActionSpace::entries(const std::string& family) const {
  static const std::vector<KernelConfig> kNone;
  const auto found = entries_.find(family);
  return found == entries_.end() ? kNone : found->second;
}

std::optional<KernelConfig> nearest_legal(const kernels::Family& family, const KernelConfig& wanted,
                                          const std::vector<size_t>& keep) {
  const kernels::Space fields = family.space();
  KernelConfig offered = wanted;
  for (const kernels::Field& field : fields.fields) {
    const int64_t value = wanted.get(field.number);
    const auto from_here = [&](int64_t one) { return distance(value, one); };
    if (!field.values.empty() && !contains(keep, field.number))
      offered.set(field.number, *std::ranges::min_element(field.values, {}, from_here));
  }
  Partial start{offered, keep, 0, family.constraints(offered)};
  if (start.failed.empty()) return offered;
  return Repair(family, fields).run(std::move(start));
}

Actions actions_of(const SearchSpace& space, const KernelConfig& config) {
  return ActionSpace(space).at(config);
}
}  // namespace warploom::search
