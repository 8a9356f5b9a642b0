#include "runtime/timing.h"
#include "base/random.h"

namespace warploom::runtime {
namespace {
double median_of(std::vector<double>& values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}
}  // namespace

Interval median_interval(std::span<const double> values, std::uint64_t seed) {
  if (values.empty()) return {};
  std::vector<double> drawn(values.begin(), values.end());
  const double median = median_of(drawn);
  Random random(seed, "bootstrap");
  std::vector<double> medians;
  for (int i = 0; i < 1000; ++i) {
    for (double& value : drawn) value = values[random.below(values.size())];
    medians.push_back(median_of(drawn));
  }
  std::ranges::sort(medians);
  const auto at = [&](double share) {
    return medians[static_cast<std::size_t>(share * static_cast<double>(medians.size() - 1))];
  };
  return {median, at(0.025), at(0.975)};
}

Result<std::vector<Samples>> measure(Executor& device,
                                     const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<Call> works;
  int times = 1;
  double shortest = 1e30;
  const auto sample = [&](std::size_t i, int calls) -> Result<double> {
    if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<std::size_t>(calls), false));
    if (shortest < options.warm_us) {
      WARPLOOM_CHECK(works[i]());
      WARPLOOM_CHECK(device.synchronize());
      if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<std::size_t>(calls), false));
    }
    // A CPU's caches are as large as most problems, and users find them warm.
    if (device.engine() == Engine::cuda) WARPLOOM_CHECK(device.flush_caches());
    WARPLOOM_TRY(const double us, device.time_us(works[i], times));
    if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<std::size_t>(calls), true));
    return us / calls;
  };
  std::vector<Samples> all(alternatives.size());
  bool series = true;
  for (const std::vector<Call>& calls : alternatives) {
    works.push_back(calls[0]);
    series &= calls.size() >= 2 && calls.size() == alternatives[0].size();
    WARPLOOM_TRY(const double us, sample(works.size() - 1, 1));
    shortest = std::min(shortest, us);
  }
  // All in series or none: the two ways of timing differ by a bias, which must not fall on one
  // alternative alone.
  for (std::size_t i = 0; series && shortest < options.short_us && i < works.size(); ++i) {
    WARPLOOM_TRY(works[i], device.record(in_order(alternatives[i])));
    all[i].calls_per_sample = static_cast<int>(alternatives[i].size());
    WARPLOOM_CHECK(sample(i, all[i].calls_per_sample));
  }
  const bool in_series = !all.empty() && all[0].calls_per_sample > 1;
  const auto wanted = [&] {  // in few steps, each of which sees whether calls really are that short
    constexpr int kStep = 32;
    const int enough = static_cast<int>(std::min<double>(
        std::ceil(options.least_us / std::max(shortest, 0.1)), options.most_times));
    return in_series ? 1 : std::clamp(enough, 1, kStep * times);
  };
  times = wanted();

  const auto start = Clock::now();
  const auto most = [&] {
    return times > 1 ? std::max(options.min_samples, options.max_samples / 6) : options.max_samples;
  };
  for (int lap = 0; lap < most(); ++lap) {  // fewer where each is a mean of many calls
    const double spent = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (spent > 5 * options.budget_ms && lap > 0) break;
    if (spent > options.budget_ms && lap >= options.min_samples) break;
    for (std::size_t turn = 0; turn < works.size(); ++turn) {
      const std::size_t i = (static_cast<std::size_t>(lap) + turn) % works.size();
      WARPLOOM_TRY(const double us, sample(i, all[i].calls_per_sample));
      all[i].us.push_back(us);
      shortest = std::min(shortest, us);
    }
    // Calls that turn out shorter must not make samples short: they begin again.
    if (wanted() <= 2 * times) continue;
    times = wanted();
    for (Samples& samples : all) samples.us.clear();
    lap = -1;
  }
  for (Samples& samples : all) {
    samples.calls_per_sample *= times;
    static_cast<Interval&>(samples) = median_interval(samples.us, options.seed);
  }
  return all;
}
}  // namespace warploom::runtime
