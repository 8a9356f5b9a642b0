#include "search/strategy/curves.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
double Recording::best_us() const {
  double best = 0;
  for (const auto& [text, judged] : verdicts)
    if (judged.accepted && (best <= 0 || judged.us < best)) best = judged.us;
  return best;
}

std::optional<int> Curve::candidates_to(double wanted) const {
  const auto reached = std::ranges::find_if(share, [&](double one) { return one >= wanted; });
  if (reached == share.end()) return std::nullopt;
  return as_int(reached - share.begin()) + 1;
}

double Curve::share_at(int candidates) const {
  if (share.empty() || candidates <= 0) return 0;
  return share[std::min(as_size(candidates), share.size()) - 1];
}

Curve curve_of(const Recording& recording, const ReplaySetup& setup) {
  const StrategyPtr strategy = make_strategy(setup.strategy, {.space = &recording.space,
                                                              .seed = setup.seed,
                                                              .policy = setup.policy,
                                                              .actions = recording.actions,
                                                              .start = setup.start,
                                                              .unlikely = setup.unlikely});
  std::vector<kernels::KernelConfig> near = setup.near;
  const double best_of_all = recording.best_us();
  double best = 0;
  Curve out;
  while (out.share.size() < as_size(setup.most)) {
    if (out.share.size() > recording.space.families.size()) {
      for (const kernels::KernelConfig& config : std::views::reverse(near))
        strategy->suggest(config);
      near.clear();
    }
    const std::optional<Proposal> next = strategy->ask();
    if (!next) break;
    std::erase(near, next->config);
    const std::string text = next->config.text();
    const auto known = recording.verdicts.find(text);
    const bool is_known = known != recording.verdicts.end();
    const Judged judged = is_known ? known->second : Judged{.config = next->config};
    strategy->tell(judged);
    if (judged.accepted && (best <= 0 || judged.us < best)) best = judged.us;
    out.sequence.push_back(text);
    out.share.push_back(best > 0 ? best_of_all / best : 0);
  }
  return out;
}

namespace {
double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const size_t middle = numbers.size() / 2;
  if (numbers.size() % 2 == 1) return numbers[middle];
  return (numbers[middle - 1] + numbers[middle]) / 2;
}
}  // namespace

MedianInterval median_interval(std::span<const double> numbers) {
  constexpr int kDraws = 1000;
  constexpr double kTail = 0.025;
  Random random(1, "bootstrap");
  std::vector<double> medians;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<double> drawn;
    for (size_t j = 0; j < numbers.size(); ++j)
      drawn.push_back(numbers[random.below(numbers.size())]);
    medians.push_back(median_of(std::move(drawn)));
  }
  std::ranges::sort(medians);
  const auto at = [&](double share) { return medians[as_size(share * (kDraws - 1))]; };
  return {median_of({numbers.begin(), numbers.end()}), at(kTail), at(1 - kTail)};
}
}  // namespace warploom::search
