// measure: what several alternatives cost on one device, fairly.
//
// Alternatives take turns in one run, in an order that turns round every lap, so that a clock that
// drifts hits all of them alike. On a GPU the caches are filled with other data before every
// sample. An alternative is calls that do the same on different buffers; the first is timed. Where
// it is shorter than `short_us` and every alternative has as many calls, two or more, a sample is a
// recording of all of them, divided by their number: launch costs and the clock's grain do not
// count, and no call finds its own data in the caches. Calls that are not timed in series, and
// shorter than `least_us`, are repeated within a sample. The first call of each alternative does
// not count.
//
//   auto samples = measure(*device, {{ours}, {vendor}});
//   samples[0].median_us; samples[0].low_us … samples[0].high_us  // 95 % interval of the median,
//   by bootstrap
#pragma once
#include "runtime/executor.h"

namespace warploom::runtime {
struct MeasureOptions {
  int min_samples = 10;
  int max_samples = 200;
  double budget_ms =
      500;  // for all alternatives together; min_samples may exceed it (but never fivefold)
  double short_us = 20;  // calls faster than this are timed in series
  double least_us = 0;   // calls that are not are repeated until a sample is about as long as this
  int most_times = 400;  // but no more often than this
  double warm_us = 0;    // before each sample of calls shorter than this one runs untimed, since
                         // `around` cools the caches
  std::uint64_t seed = 1;  // of the bootstrap
  // Called before and after every sample, outside its time, with its alternative's number and how
  // many of its calls are made.
  std::function<Status(std::size_t alternative, std::size_t calls, bool after)> around;
};

// A median with the 95 % interval of 1000 bootstrap medians.
struct Interval {
  double median_us = 0, low_us = 0, high_us = 0;
};

Interval median_interval(std::span<const double> values, std::uint64_t seed = 1);

struct Samples : Interval {
  std::vector<double> us;  // a call, in the order taken
  int calls_per_sample = 1;
};

// One Samples for each alternative, in their order. Fails with the first failing call's error.
Result<std::vector<Samples>> measure(Executor& device,
                                     const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options = {});
}  // namespace warploom::runtime
