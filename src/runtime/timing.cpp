#include "runtime/timing.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ratio>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "common/median.h"
#include "common/warm_up.h"
#include "runtime/executor.h"
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
  const int pairs = as_int(ratios.size());
  return {interval.median, interval.low, interval.high, pairs};
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

namespace {
class Measurement {
 public:
  Measurement(Executor& device, const std::vector<std::vector<Call>>& alternatives,
              const MeasureOptions& options)
      : device_(device),
        alternatives_(alternatives),
        options_(options),
        all_(alternatives.size()) {}

  Result<std::vector<Samples>> run() {
    WARPLOOM_CHECK(call_each_once());
    WARPLOOM_CHECK(record_series());
    WARPLOOM_CHECK(warm_up());
    times_ = wanted_times();
    WARPLOOM_CHECK(take_laps());
    for (Samples& samples : all_) {
      samples.calls_per_sample *= times_;
      static_cast<Interval&>(samples) = median_interval(samples.us, options_.seed);
    }
    return std::move(all_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status around(size_t alternative, bool after) const {
    if (!options_.around) return ok();
    const auto calls = as_size(all_[alternative].calls_per_sample);
    return options_.around(alternative, calls, after);
  }

  // What a sample runs: the series, or one of the calls.
  const Call& work_of(size_t alternative) const {
    const std::vector<Call>& calls = alternatives_[alternative];
    const bool in_series = all_[alternative].calls_per_sample > 1;
    if (in_series || !options_.pick) return works_[alternative];
    return calls[options_.pick(calls.size())];
  }

  // The time of one call, by a sample of an alternative's.
  Result<double> sample(size_t alternative) {
    WARPLOOM_CHECK(around(alternative, false));
    if (shortest_ < options_.warm_us) {
      WARPLOOM_CHECK(work_of(alternative)());
      WARPLOOM_CHECK(device_.synchronize());
      WARPLOOM_CHECK(around(alternative, false));
    }
    // A CPU's caches are as large as most problems, and users find them warm.
    if (device_.engine() == Engine::cuda) WARPLOOM_CHECK(device_.flush_caches());
    WARPLOOM_TRY(const double us, device_.time_us(work_of(alternative), times_));
    WARPLOOM_CHECK(around(alternative, true));
    return us / all_[alternative].calls_per_sample;
  }

  Status call_each_once() {
    for (const std::vector<Call>& calls : alternatives_) {
      works_.push_back(calls[0]);
      WARPLOOM_TRY(const double us, sample(works_.size() - 1));
      shortest_ = std::min(shortest_, us);
    }
    return ok();
  }

  // All in series or none: the two ways of timing differ by a bias, which must not fall on one
  // alternative alone.
  Status record_series() {
    const auto is_series = [&](const std::vector<Call>& calls) {
      return calls.size() >= 2 && calls.size() == alternatives_[0].size();
    };
    const bool possible = std::ranges::all_of(alternatives_, is_series);
    for (size_t i = 0; i < works_.size(); ++i) {
      if (!possible || shortest_ >= options_.short_us) return ok();
      WARPLOOM_TRY(works_[i], device_.record(in_order(alternatives_[i])));
      all_[i].calls_per_sample = as_int(alternatives_[i].size());
      WARPLOOM_CHECK(sample(i));
    }
    return ok();
  }

  // Untimed calls of all alternatives, for as long as the options say.
  Status warm_up() {
    for (const wl::WarmUp warm_up(options_.warm_up_ms); warm_up.is_due();)
      for (size_t i = 0; i < works_.size(); ++i)
        WARPLOOM_CHECK(sample(i));
    return ok();
  }

  // How often calls are repeated within a sample; more in few steps, each of which sees whether
  // calls really are that short.
  int wanted_times() const {
    constexpr int kStep = 32;
    const bool in_series = !all_.empty() && all_[0].calls_per_sample > 1;
    if (in_series) return 1;
    const double enough = std::ceil(options_.least_us / std::max(shortest_, 0.1));
    const double most = options_.most_times;
    const int times = as_int(std::min(enough, most));
    return std::clamp(times, 1, kStep * times_);
  }

  bool has_enough(int laps, Clock::time_point start) const {
    // Fewer where each is a mean of many calls.
    const int fewer = std::max(options_.min_samples, options_.max_samples / 6);
    if (laps >= (times_ > 1 ? fewer : options_.max_samples)) return true;
    const std::chrono::duration<double, std::milli> passed = Clock::now() - start;
    const double spent = passed.count();
    if (spent > 5 * options_.budget_ms && laps > 0) return true;
    return spent > options_.budget_ms && laps >= options_.min_samples;
  }

  // A sample of each alternative; the order turns round from lap to lap.
  Status take_lap(size_t lap) {
    for (size_t turn = 0; turn < works_.size(); ++turn) {
      const size_t i = (lap + turn) % works_.size();
      WARPLOOM_TRY(const double us, sample(i));
      all_[i].us.push_back(us);
      shortest_ = std::min(shortest_, us);
    }
    return ok();
  }

  Status take_laps() {
    const auto start = Clock::now();
    int laps = 0;
    while (!has_enough(laps, start)) {
      WARPLOOM_CHECK(take_lap(as_size(laps)));
      ++laps;
      // Calls that turn out shorter must not make samples short: they begin again.
      if (wanted_times() <= 2 * times_) continue;
      times_ = wanted_times();
      for (Samples& samples : all_)
        samples.us.clear();
      laps = 0;
    }
    return ok();
  }

  Executor& device_;
  const std::vector<std::vector<Call>>& alternatives_;
  const MeasureOptions& options_;
  std::vector<Samples> all_;
  std::vector<Call> works_;  // what a sample runs, one an alternative
  int times_ = 1;            // how often, within a sample
  double shortest_ = 1e30;   // the shortest call so far, us
};
}  // namespace

Result<std::vector<Samples>> measure(Executor& device,
                                     const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options) {
  return Measurement(device, alternatives, options).run();
}
}  // namespace warploom::runtime
