#include "search/strategy/ranked.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/parallel.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "plan/limits.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using plan::Limits;

constexpr size_t kMostEnumerated = 100'000;  // spaces up to this size are gone through whole
constexpr size_t kSamples = 4'000;           // of larger ones

// A fallback: how many legal configs are predicted where predictions order them (where guesses do a
// whole space is looked at), how many draws find them, and how many are built at most.
constexpr size_t kFallbacksPredicted = 48;
constexpr size_t kFallbacksDrawn = 400;
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

}  // namespace

Ranked ranked_families(const SearchSpace& space, Random& random, const Limits& limits) {
  Ranked families;
  for (const kernels::FamilyPtr& family : space.families)
    families.push_back(ranked(space, *family, random, limits));
  return families;
}

std::vector<KernelConfig> in_turn(const Ranked& families) {
  std::vector<KernelConfig> out;
  size_t longest = 0;
  for (const auto& family : families)
    longest = std::max(longest, family.size());
  for (size_t rank = 0; rank < longest; ++rank)
    for (const auto& family : families)
      if (rank < family.size()) out.push_back(family[rank]);
  return out;
}

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

// Different legal configs at random, the same ones every time.
std::vector<Guessed> drawn_configs(const kernels::Family& family) {
  const kernels::SpaceWalk walk(family);
  Random random(1, "fallback");
  std::vector<Guessed> found;
  std::set<std::string> seen;
  for (size_t i = 0; i < kFallbacksDrawn && found.size() < kFallbacksPredicted; ++i) {
    const auto config = walk.sample(random);
    if (config && seen.insert(config->text()).second) found.push_back({0, *config});
  }
  if (!found.empty()) return found;
  walk.all([&](const KernelConfig& config) {
    found.push_back({0, config});
    return found.size() < kFallbacksTried;
  });
  return found;
}

// The first that can be built: by prediction of those that are drawn, or by guess of all.
std::optional<Fallback> best_built(const SearchSpace& space, const kernels::Family& family,
                                   const plan::Limits& limits) {
  std::vector<Guessed> found;
  if (space.capabilities.gpu) {
    found = drawn_configs(family);
    const auto predict = [&](int64_t i) {
      const bool is_over = limits.ended() || limits.late();
      found[i].guess = is_over ? HUGE_VAL : predicted(space, found[i].config);
    };
    graph::parallel_for(std::ssize(found), 0, predict);
  } else {
    kernels::SpaceWalk(family).all([&](const KernelConfig& config) {
      found.push_back({family.guess(config), config});
      return found.size() < kMostEnumerated;
    });
  }
  std::ranges::stable_sort(found, {}, &Guessed::guess);
  for (size_t i = 0; i < std::min(found.size(), kFallbacksTried); ++i)
    if (Result<LaunchList> list = space.build(found[i].config))
      return Fallback{found[i].config, *std::move(list)};
  return std::nullopt;
}
}  // namespace

std::optional<Fallback> fallback_within(const SearchSpace& space, const plan::Limits& limits) {
  std::vector<kernels::FamilyPtr> families = space.families;
  std::ranges::stable_sort(families, {}, [](const auto& family) { return doubt_of(*family); });
  for (const kernels::FamilyPtr& family : families)
    if (std::optional<Fallback> found = best_built(space, *family, limits)) return found;
  return std::nullopt;
}

std::optional<Fallback> fallback_of(const SearchSpace& space) {
  return fallback_within(space, {});
}
}  // namespace warploom::search
