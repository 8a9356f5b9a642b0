#include "search/lineage.h"
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

Error not_replayed(const std::string& place, std::string expected, std::string found) {
  return {ErrorCode::kPlanInvalid,
          "a step does not lead to what was recorded",
          place,
          std::move(expected),
          std::move(found),
          "search again: the archive is of another program"};
}

Result<KernelConfig> config_of(const SearchSpace& space, const archive::Candidate& one) {
  WARPLOOM_TRY(const kernels::RawConfig raw, kernels::read_raw(one.schedule));
  const auto family = std::ranges::find(space.families, raw.family, &kernels::Family::name);
  if (family == space.families.end())
    return fail(not_replayed(one.schedule, "a family of the region", raw.family));
  return kernels::config_of(raw, (*family)->type());
}
}  // namespace

Lineage lineage_of(const std::vector<archive::Candidate>& all, const std::string& schedule) {
  std::map<std::string, const archive::Candidate*> by_schedule;
  for (const archive::Candidate& one : all)
    by_schedule.emplace(one.schedule, &one);
  Lineage out;
  std::set<std::string> seen;
  std::string next = schedule;
  while (true) {
    const auto found = by_schedule.find(next);
    if (found == by_schedule.end() || !seen.insert(next).second) break;
    out.push_back(*found->second);
    if (found->second->parents.empty()) break;
    next = found->second->parents[0];
  }
  std::ranges::reverse(out);
  return out;
}

Result<KernelConfig> replay(const SearchSpace& space, const Lineage& steps) {
  if (steps.empty()) return fail(not_replayed("", "a step at least", "none"));
  WARPLOOM_TRY(KernelConfig config, config_of(space, steps[0]));
  for (size_t i = 1; i < steps.size(); ++i) {
    WARPLOOM_TRY(const Action action, action_from_json(steps[i].action, space));
    WARPLOOM_TRY(config, carry_out(space, action, config));
    WARPLOOM_TRY(const KernelConfig recorded, config_of(space, steps[i]));
    if (config != recorded)
      return fail(not_replayed(action.sentence, recorded.text(), config.text()));
  }
  return config;
}
}  // namespace warploom::search
