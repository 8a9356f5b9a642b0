#include "runtime/timing.h"
#include "common/median.h"
#include "common/warm_up.h"
#include "runtime/noise.h"

namespace warploom::runtime {
Interval median_interval(std::span<const double> values, uint64_t seed) {
  const wl::Interval interval = wl::median_interval(values.data(), values.size(), seed);
  return {interval.median, interval.low, interval.high};
}

Ratio ratio_of(std::span<const double> ours, std::span<const double> reference, uint64_t seed) {
  std::vector<double> ratios;
  for (size_t lap = 0; lap < std::min(ours.size(), reference.size()); ++lap)
    if (ours[lap] > 0 && reference[lap] > 0) ratios.push_back(reference[lap] / ours[lap]);
  const wl::Interval interval = wl::median_interval(ratios.data(), ratios.size(), seed);
  return {interval.median, interval.low, interval.high, static_cast<int>(ratios.size())};
}

Doubt doubt_of(std::span<const double> reference, const Known& known) {
  constexpr double kModes = 2.5;   // two modes: most samples are so much slower than the fast ones
  constexpr double kSlower = 2.5;  // than it is known to be
  constexpr double kGflops = 0.1;  // on any machine of today, of a problem that is not tiny
  constexpr double kNotTiny = 1e5;
  constexpr double kFarBehind = 20;
  if (reference.empty()) return {};
  const double median = quantile_of(reference, 0.5);
  const double fast = quantile_of(reference, 0.1);
  if (median > kModes * fast)
    return {fmt::format("its samples have two modes, {:.1f} and {:.1f} us", fast, median), true};
  if (known.best_us > 0 && median > kSlower * known.best_us)
    return {fmt::format("it took {:.1f} us, and {:.1f} us before on this machine", median,
                        known.best_us),
            true};
  const double gflops = known.flops / median / 1e3;
  if (known.flops >= kNotTiny && gflops < kGflops)
    return {fmt::format("it made {:.2f} GFLOP/s, less than any machine's", gflops)};
  if (known.ours_us > 0 && median > kFarBehind * known.ours_us)
    return {fmt::format("it took {:.0f} times as long as the candidate", median / known.ours_us)};
  return {};
}

Result<std::vector<Samples>> measure(Executor& device,
                                     const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<Call> works;
  int times = 1;
  double shortest = 1e30;
  const auto sample = [&](size_t i, int calls) -> Result<double> {
    if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<size_t>(calls), false));
    if (shortest < options.warm_us) {
      WARPLOOM_CHECK(works[i]());
      WARPLOOM_CHECK(device.synchronize());
      if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<size_t>(calls), false));
    }
    // A CPU's caches are as large as most problems, and users find them warm.
    if (device.engine() == Engine::cuda) WARPLOOM_CHECK(device.flush_caches());
    WARPLOOM_TRY(const double us, device.time_us(works[i], times));
    if (options.around) WARPLOOM_CHECK(options.around(i, static_cast<size_t>(calls), true));
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
  for (size_t i = 0; series && shortest < options.short_us && i < works.size(); ++i) {
    WARPLOOM_TRY(works[i], device.record(in_order(alternatives[i])));
    all[i].calls_per_sample = static_cast<int>(alternatives[i].size());
    WARPLOOM_CHECK(sample(i, all[i].calls_per_sample));
  }
  for (const wl::WarmUp warm_up(options.warm_up_ms); warm_up.is_due();)
    for (size_t i = 0; i < works.size(); ++i) WARPLOOM_CHECK(sample(i, all[i].calls_per_sample));
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
    for (size_t turn = 0; turn < works.size(); ++turn) {
      const size_t i = (static_cast<size_t>(lap) + turn) % works.size();
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
