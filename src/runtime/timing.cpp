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

// One alternative while it is measured.
struct Entry {
  Runnable* what = nullptr;
  std::function<Status()> series;
  Samples samples;
};

Result<double> sample(Executor& device, Entry& entry, bool flush) {
  if (flush) WARPLOOM_CHECK(device.flush_caches());
  WARPLOOM_TRY(const double us, device.time_us([&] { return entry.series ? entry.series() : entry.what->launch(0); }));
  return us / entry.samples.calls_per_sample;
}

bool same_sets(std::span<Runnable* const> alternatives) {
  return std::all_of(alternatives.begin(), alternatives.end(),
                     [&](const Runnable* r) { return r->sets() >= 2 && r->sets() == alternatives[0]->sets(); });
}

Status record_series(Executor& device, Entry& entry) {
  WARPLOOM_TRY(entry.series, device.record([what = entry.what]() -> Status {
    for (int set = 0; set < what->sets(); ++set) WARPLOOM_CHECK(what->launch(set));
    return ok();
  }));
  entry.samples.calls_per_sample = entry.what->sets();
  return ok();
}
}  // namespace
Interval median_interval(std::span<const double> values, std::uint64_t seed, int resamples) {
  if (values.empty()) return {};
  std::vector<double> drawn(values.begin(), values.end());
  Interval interval;
  interval.median = median_of(drawn);
  Random random(seed, "bootstrap");
  std::vector<double> medians;
  for (int i = 0; i < resamples; ++i) {
    for (double& value : drawn) value = values[random.below(values.size())];
    medians.push_back(median_of(drawn));
  }
  if (medians.empty()) return {interval.median, interval.median, interval.median};
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double share) {
    return medians[static_cast<std::size_t>(share * static_cast<double>(medians.size() - 1))];
  };
  interval.low = at(0.025);
  interval.high = at(0.975);
  return interval;
}

Result<std::vector<Samples>> measure(Executor& device, std::span<Runnable* const> alternatives, const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  const bool flush = device.engine() == Engine::cuda && options.flush;
  std::vector<Entry> entries(alternatives.size());
  double shortest = 1e30;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].what = alternatives[i];
    entries[i].samples.name = alternatives[i]->name();
    entries[i].samples.flushed = flush;
    for (int call = 0; call < std::max(1, options.warm_up); ++call) {
      WARPLOOM_TRY(const double us, sample(device, entries[i], flush));
      shortest = std::min(shortest, us);
    }
  }
  // All in series or none: the two ways of timing differ by a bias, which must not fall on one alternative alone.
  if (shortest < options.short_us && same_sets(alternatives)) {
    for (Entry& entry : entries) {
      WARPLOOM_CHECK(record_series(device, entry));
      WARPLOOM_CHECK(sample(device, entry, flush));
    }
  }

  const auto start = Clock::now();
  for (int lap = 0; lap < options.max_samples; ++lap) {
    const double spent = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (spent > 5 * options.budget_ms && lap > 0) break;
    if (spent > options.budget_ms && lap >= options.min_samples) break;
    for (std::size_t turn = 0; turn < entries.size(); ++turn) {
      Entry& entry = entries[(static_cast<std::size_t>(lap) + turn) % entries.size()];
      WARPLOOM_TRY(const double us, sample(device, entry, flush));
      entry.samples.us.push_back(us);
    }
  }
  std::vector<Samples> all;
  for (Entry& entry : entries) {
    Samples& samples = entry.samples;
    const Interval interval = median_interval(samples.us, options.seed);
    std::tie(samples.median_us, samples.low_us, samples.high_us) = std::tie(interval.median, interval.low, interval.high);
    all.push_back(std::move(samples));
  }
  return all;
}
}  // namespace warploom::runtime
