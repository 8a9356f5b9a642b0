// measure: what several alternatives cost on one device, fairly.
//
// Alternatives take turns in one run, in an order that turns round every lap, so that a clock that drifts hits all of them alike.
// Before every sample the caches are filled with other data. Where a call is shorter than `short_us` and every alternative has the
// same number of buffer sets bound, two or more, a sample is a recording of one call on each set, divided by their number: launch
// costs and the clock's grain do not count, and no call finds its own data in the caches.
//
//   auto samples = measure(*device, {&ours, &vendor});
//   samples[0].median_us; samples[0].low_us … samples[0].high_us  // 95 % interval of the median, by bootstrap
#pragma once
#include "runtime/executor.h"
namespace warploom::runtime {
struct MeasureOptions {
  int warm_up = 3;  // calls of each alternative that do not count
  int min_samples = 10;
  int max_samples = 200;
  double budget_ms = 500;  // for all alternatives together; min_samples may exceed it (but never fivefold)
  double short_us = 20;    // calls faster than this are timed in series
  bool flush = true;       // on a GPU; a CPU's caches are as large as most problems, and users find them warm
  std::uint64_t seed = 1;  // of the bootstrap
};

struct Samples {
  std::string name;
  std::vector<double> us;  // a call, in the order taken
  double median_us = 0, low_us = 0, high_us = 0;
  int calls_per_sample = 1;
  bool flushed = false;  // caches flushed before every sample
};

// One Samples for each alternative, in their order. Every alternative has at least buffer set 0 bound. Fails with the first
// failing launch's error.
Result<std::vector<Samples>> measure(Executor& device, std::span<Runnable* const> alternatives,
                                     const MeasureOptions& options = {});

// Median of `values` with the 95 % interval of `resamples` bootstrap medians.
struct Interval {
  double median = 0, low = 0, high = 0;
};
Interval median_interval(std::span<const double> values, std::uint64_t seed = 1, int resamples = 1000);
}  // namespace warploom::runtime
