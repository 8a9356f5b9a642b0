#include "kernels/space_walk.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/random.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"

namespace warploom::kernels {
namespace {
constexpr int kTries = 200;  // values that a walk at random looks at before it gives up
}

// Steps are taken in turn, each over its values. `open`: the fields that later steps set.
struct SpaceWalk::Walk {
  const Family& family;
  std::vector<Step> steps = {};
  KernelConfig config = {};
  std::vector<bool> open = {};

  using Fields = std::vector<bool>;

  // Begins where every field has its first value and all steps' fields are open.
  void begin(const KernelConfig& from) {
    config = from;
    open.assign(config.size(), false);
    for (const Step& step : steps) {
      config.set(step.field, step.values[0]);
      open[step.field] = true;
    }
  }

  // A constraint that fails whatever the open fields become.
  std::optional<FailedConstraint> failure() const {
    const auto is_open = [&](size_t field) -> bool { return open[field]; };
    for (FailedConstraint& failed : family.constraints(config))
      if (std::ranges::none_of(failed.fields, is_open)) return std::move(failed);
    return std::nullopt;
  }

  // Every legal config in order; false where `visit` wants no more.
  bool all(size_t number, const std::function<bool(const KernelConfig&)>& visit) {
    if (number == steps.size()) return visit(config);
    const Step& step = steps[number];
    open[step.field] = false;
    for (const int64_t value : step.values) {
      config.set(step.field, value);
      if (!failure() && !all(number + 1, visit)) return false;
    }
    open[step.field] = true;
    config.set(step.field, step.values[0]);
    return true;
  }

  // One at random, in at most `tries` looks: nothing, or the fields of which one has to change
  // before a value of this step can hold. So a walk goes back at once to the last of these, past
  // steps that do not matter (conflict-directed backjumping).
  std::optional<Fields> sample(size_t number, Random& random, int& tries) {
    if (number == steps.size()) return std::nullopt;
    const Step& step = steps[number];
    Values values = step.values;
    random.shuffle(values);
    Fields blame(config.size(), false);
    open[step.field] = false;
    for (const int64_t value : values) {
      if (tries-- <= 0) break;
      config.set(step.field, value);
      auto below = blame_of(failure());
      if (!below) below = sample(number + 1, random, tries);
      if (!below) return std::nullopt;
      if (!(*below)[step.field]) {
        blame = *std::move(below);
        break;
      }
      for (size_t i = 0; i < blame.size(); ++i)
        blame[i] = blame[i] || (*below)[i];
    }
    blame[step.field] = false;
    open[step.field] = true;
    config.set(step.field, step.values[0]);
    return blame;
  }

  std::optional<Fields> blame_of(const std::optional<FailedConstraint>& failed) const {
    if (!failed) return std::nullopt;
    Fields blame(config.size(), false);
    for (const size_t field : failed->fields)
      blame[field] = true;
    return blame;
  }
};

SpaceWalk::SpaceWalk(const Family& family) : family_(family), space_(family.space()) {}

std::vector<SpaceWalk::Step> SpaceWalk::steps_without(const KernelConfig& config,
                                                      const std::vector<std::string>& fixed) const {
  std::vector<Step> steps;
  for (const Field& field : space_.fields) {
    const auto same = [&](const std::string& name) {
      return config.type()->find(name) == field.number;
    };
    if (std::ranges::none_of(fixed, same)) steps.push_back({field.number, field.values});
  }
  return steps;
}

void SpaceWalk::all(const std::function<bool(const KernelConfig&)>& visit) const {
  const KernelConfig from(family_.type());
  Walk walk{family_, steps_without(from, {})};
  std::ranges::reverse(walk.steps);  // the last field changes slowest
  walk.begin(from);
  walk.all(0, visit);
}

std::optional<KernelConfig> SpaceWalk::sample(Random& random) const {
  return sample(random, KernelConfig(family_.type()), {});
}

std::optional<KernelConfig> SpaceWalk::sample(Random& random, const KernelConfig& from,
                                              const std::vector<std::string>& fixed) const {
  Walk walk{family_, steps_without(from, fixed)};
  walk.begin(from);
  int tries = kTries;
  return walk.sample(0, random, tries) ? std::nullopt : std::optional(walk.config);
}
}  // namespace warploom::kernels
