#include "runtime/timing.h"
#include "base/random.h"
namespace warploom::runtime {
namespace {
double median_of(std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}
}  // namespace
Interval median_interval(std::span<const double> values, std::uint64_t seed) {
  if (values.empty()) return {};
  std::vector<double> drawn(values.begin(), values.end());
  Interval interval;
  interval.median = median_of(drawn);
  Random random(seed, "bootstrap");
  std::vector<double> medians;
  for (int i = 0; i < 1000; ++i) {
    for (double& value : drawn) value = values[random.below(values.size())];
    medians.push_back(median_of(drawn));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double share) {
    return medians[static_cast<std::size_t>(share * static_cast<double>(medians.size() - 1))];
  };
  interval.low = at(0.025);
  interval.high = at(0.975);
  return interval;
}

Result<std::vector<Samples>> measure(Executor& device, const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto sample = [&](const Call& work, int calls) -> Result<double> {
    // A CPU's caches are as large as most problems, and users find them warm.
    if (device.engine() == Engine::cuda) WARPLOOM_CHECK(device.flush_caches());
    WARPLOOM_TRY(const double us, device.time_us(work));
    return us / calls;
  };
  std::vector<Call> works;
  std::vector<Samples> all(alternatives.size());
  double shortest = 1e30;
  bool series = true;
  for (const std::vector<Call>& calls : alternatives) {
    works.push_back(calls[0]);
    series &= calls.size() >= 2 && calls.size() == alternatives[0].size();
    for (int call = 0; call < std::max(1, options.warm_up); ++call) {
      WARPLOOM_TRY(const double us, sample(calls[0], 1));
      shortest = std::min(shortest, us);
    }
  }
  // All in series or none: the two ways of timing differ by a bias, which must not fall on one alternative alone.
  for (std::size_t i = 0; series && shortest < options.short_us && i < works.size(); ++i) {
    WARPLOOM_TRY(works[i], device.record(in_order(alternatives[i])));
    all[i].calls_per_sample = static_cast<int>(alternatives[i].size());
    WARPLOOM_CHECK(sample(works[i], 1));
  }

  const auto start = Clock::now();
  for (int lap = 0; lap < options.max_samples; ++lap) {
    const double spent = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (spent > 5 * options.budget_ms && lap > 0) break;
    if (spent > options.budget_ms && lap >= options.min_samples) break;
    for (std::size_t turn = 0; turn < works.size(); ++turn) {
      const std::size_t i = (static_cast<std::size_t>(lap) + turn) % works.size();
      WARPLOOM_TRY(const double us, sample(works[i], all[i].calls_per_sample));
      all[i].us.push_back(us);
    }
  }
  for (Samples& samples : all) {
    const Interval interval = median_interval(samples.us, options.seed);
    std::tie(samples.median_us, samples.low_us, samples.high_us) = std::tie(interval.median, interval.low, interval.high);
  }
  return all;
}
}  // namespace warploom::runtime
