#include "search/catalogue.h"
namespace warploom::search {
namespace {
constexpr std::int64_t kWalk = 40'000;   // spaces up to this size are walked whole
constexpr std::int64_t kLooks = 20'000;  // random looks into larger ones

kernels::Schedule at(const kernels::Space& space, std::int64_t index) {
  kernels::Schedule schedule{space.family, {}};
  for (const auto& field : space.fields) {
    const auto count = static_cast<std::int64_t>(field.values.size());
    schedule.fields[field.name] = field.values[static_cast<std::size_t>(index % count)];
    index /= count;
  }
  return schedule;
}

kernels::Schedule at_random(const kernels::Space& space, Random& random) {
  kernels::Schedule schedule{space.family, {}};
  for (const auto& field : space.fields) schedule.fields[field.name] = field.values[random.below(field.values.size())];
  return schedule;
}

const kernels::Family* family_named(const Catalogue& catalogue, const std::string& name) {
  for (const kernels::Family* family : catalogue.families)
    if (family->name() == name) return family;
  return nullptr;
}
}  // namespace
std::vector<kernels::Schedule> ranked(const Catalogue& catalogue, const kernels::Family& family, Random& random) {
  const kernels::Space space = family.space(catalogue.region, catalogue.capabilities);
  std::vector<std::pair<double, kernels::Schedule>> found;
  for (const auto& field : space.fields)
    if (field.values.empty()) return {};
  // A product of many fields can overflow what size() counts in; anything negative or huge is sampled.
  double combinations = 1;
  for (const auto& field : space.fields) combinations *= static_cast<double>(field.values.size());
  std::set<std::string> seen;
  const bool walk = combinations <= static_cast<double>(kWalk);
  const std::int64_t looks = walk ? static_cast<std::int64_t>(combinations) : kLooks;
  for (std::int64_t i = 0; i < looks; ++i) {
    kernels::Schedule schedule = walk ? at(space, i) : at_random(space, random);
    if (!walk && !seen.insert(schedule.text()).second) continue;
    if (!family.legal(catalogue.region, schedule, catalogue.capabilities)) continue;
    const double guess = family.guess(catalogue.region, schedule, catalogue.capabilities);
    found.emplace_back(guess, std::move(schedule));
  }
  if (catalogue.capabilities.gpu) random.shuffle(found);  // the cost model orders them, a few at a time
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<kernels::Schedule> out;
  for (auto& [guess, schedule] : found) out.push_back(std::move(schedule));
  return out;
}

std::vector<kernels::Schedule> neighbours(const Catalogue& catalogue, const kernels::Schedule& schedule) {
  const kernels::Family* family = family_named(catalogue, schedule.family);
  std::vector<kernels::Schedule> out;
  if (!family) return out;
  for (const auto& field : family->space(catalogue.region, catalogue.capabilities).fields) {
    for (const std::int64_t value : field.values) {
      kernels::Schedule changed = schedule;
      const auto place = changed.fields.find(field.name);
      if (place == changed.fields.end() || place->second == value) continue;
      place->second = value;
      if (family->legal(catalogue.region, changed, catalogue.capabilities)) out.push_back(std::move(changed));
    }
  }
  return out;
}
}  // namespace warploom::search
