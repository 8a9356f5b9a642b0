#include "search/near.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "search/action/actions_of.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using nlohmann::json;

constexpr double kFar = 0.6;  // nearly three doublings of every axis of a product, or another kind
constexpr double kOtherTrack = 0.25;  // as far as twice the bytes of an element
constexpr size_t kProblems = 2;
constexpr size_t kOfEach = 1;   // configs of a problem
constexpr size_t kFastest = 8;  // of which they are
constexpr size_t kRead = 8;     // problems, in case that some have nothing to give

std::optional<KernelConfig> carried_over(const std::string& text, const SearchSpace& space) {
  const auto raw = kernels::read_raw(text);
  if (!raw) return std::nullopt;
  const auto family = std::ranges::find(space.families, raw->family, &kernels::Family::name);
  if (family == space.families.end()) return std::nullopt;
  const auto config = kernels::config_of(*raw, (*family)->type());
  if (!config) return std::nullopt;
  return nearest_legal(**family, *config);
}

std::vector<NearConfig> best_of(std::vector<archive::Candidate> candidates) {
  std::erase_if(candidates, [](const archive::Candidate& one) {
    return one.stage == archive::Stage::refused || !one.median_us || !one.source.empty();
  });
  std::ranges::stable_sort(candidates, {}, [](const auto& one) { return *one.median_us; });
  std::vector<NearConfig> out;
  for (const archive::Candidate& one : candidates)
    if (out.size() < kFastest) out.push_back({one.schedule, *one.median_us});
  return out;
}
}  // namespace

double distance_between(const archive::Problem& one, const archive::Problem& other) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool are_known = one.features.is_object() && other.features.is_object();
  if (!are_known || one.features.size() != other.features.size()) return kNever;
  double sum = one.track == other.track ? 0 : kOtherTrack * kOtherTrack;
  for (const auto& [name, value] : one.features.items()) {
    const auto found = other.features.find(name);
    const bool are_numbers =
        value.is_number() && found != other.features.end() && found->is_number();
    if (!are_numbers) return kNever;
    const double apart = value.get<double>() - found->get<double>();
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

std::vector<NearStart> starts_from(std::span<const NearProblem> problems,
                                   const archive::Problem& problem, const SearchSpace& space) {
  std::vector<std::pair<double, const NearProblem*>> near;
  for (const NearProblem& one : problems) {
    const double distance = distance_between(problem, one.problem);
    if (distance <= kFar && !one.best.empty()) near.emplace_back(distance, &one);
  }
  std::ranges::stable_sort(near, {}, &std::pair<double, const NearProblem*>::first);
  if (near.size() > kProblems) near.erase(near.begin() + as_int64(kProblems), near.end());
  std::vector<NearStart> out;
  std::set<std::string> seen;
  for (const auto& [distance, one] : near) {
    size_t taken = 0;
    for (const NearConfig& best : one->best) {
      auto config = carried_over(best.text, space);
      if (taken == kOfEach || !config || !seen.insert(config->text()).second) continue;
      ++taken;
      json origin = {{"schedule", config->text()}, {"was", best.text}, {"us", best.us}};
      origin["problem"] = one->problem.key;
      origin["name"] = one->problem.name;
      origin["track"] = one->problem.track;
      origin["device"] = one->problem.device;
      origin["distance"] = distance;
      origin["from"] = one->from;
      out.push_back({*std::move(config), std::move(origin)});
    }
  }
  return out;
}

namespace {
// Those that may be near: of other archives, and where nothing is known of the problem itself, of
// this one.
Result<std::vector<NearProblem>> problems_near(archive::Archive& from,
                                               const archive::Problem& problem, bool is_known) {
  std::vector<NearProblem> found;
  WARPLOOM_TRY(const auto foreign, from.foreign_problems());
  for (const auto& [file, one] : foreign)
    if (!is_known || one.key == problem.key) found.push_back({one, file});
  if (is_known) return found;
  WARPLOOM_TRY(const auto own, from.problems());
  for (const archive::Problem& one : own)
    if (one.key != problem.key) found.push_back({one});
  return found;
}
}  // namespace

Result<std::vector<NearStart>> near_starts(archive::Archive& from, const archive::Problem& problem,
                                           const SearchSpace& space, bool is_known) {
  WARPLOOM_TRY(std::vector<NearProblem> found, problems_near(from, problem, is_known));
  // Only of the nearest candidates are read: an archive may hold a hundred thousand.
  std::ranges::stable_sort(
      found, {}, [&](const NearProblem& one) { return distance_between(problem, one.problem); });
  if (found.size() > kRead) found.resize(kRead);
  for (NearProblem& one : found) {
    std::vector<archive::Candidate> candidates;
    if (one.from.empty()) {
      WARPLOOM_TRY(candidates, from.fastest(one.problem.key, kFastest));
    } else {
      WARPLOOM_TRY(const auto records, from.foreign_candidates(one.problem.key));
      for (const auto& record : records)
        candidates.push_back(record.record);
    }
    one.best = best_of(std::move(candidates));
  }
  return starts_from(found, problem, space);
}
}  // namespace warploom::search
