// measure: what several alternatives cost on one device, fairly.
//
// Alternatives take turns in one run, in an order that turns round every lap, so that a clock that
// drifts hits all of them alike. On a GPU the caches are filled with other data before every
// sample. An alternative is calls that do the same on different buffers; the first is timed. Where
// it is shorter than `short_us` and every alternative has as many calls, two or more, a sample is a
// recording of all of them, divided by their number: launch costs and the clock's grain do not
// count, and no call finds its own data in the caches. Calls that are not timed in series, and
// shorter than `least_us`, are repeated within a sample. The first call of each alternative does
// not count; a GPU, whose clock comes down under load, may be called untimed for longer
// (`warm_up_ms`).
//
//   auto samples = measure(*device, {{ours}, {vendor}});
//   samples[0].median_us; samples[0].low_us … samples[0].high_us  // 95 % interval of the median,
//   by bootstrap
#pragma once
#include <functional>
#include <span>
#include "runtime/executor.h"

namespace warploom::runtime {
// A sample of calls on a CPU takes so long, or one call does: shorter ones drown in what wakes
// threads. `make check` of a bundle has the same (resources/bundle/check.cpp).
inline constexpr double kCpuSampleUs = 1000;

struct MeasureOptions {
  int min_samples = 10;
  int max_samples = 200;
  double budget_ms =
      500;  // for all alternatives together; min_samples may exceed it (but never fivefold)
  double short_us = 20;   // calls faster than this are timed in series
  double least_us = 0;    // calls that are not are repeated until a sample is about as long as this
  int most_times = 400;   // but no more often than this
  double warm_us = 0;     // before each sample of calls shorter than this one runs untimed, since
                          // `around` cools the caches
  double warm_up_ms = 0;  // all alternatives are called untimed for so long before the first
                          // sample (common/warm_up.h)
  uint64_t seed = 1;      // of the bootstrap
  // Called before and after every sample, outside its time, with its alternative's number and how
  // many of its calls are made.
  std::function<Status(size_t alternative, size_t calls, bool after)> around;
  // Which of an alternative's calls a sample of one makes, asked after `around`; none: the first.
  std::function<size_t(size_t calls)> pick;
};

// A median with the 95 % interval of 1000 bootstrap medians.
struct Interval {
  double median_us = 0;
  double low_us = 0;
  double high_us = 0;
};

Interval median_interval(std::span<const double> values, uint64_t seed = 1);

// How many times as fast as a reference something is, with its 95 % interval; zeros: not known.
struct Ratio {
  double median = 0;
  double low = 0;
  double high = 0;
  int pairs = 0;  // that it is of
};

// Of pairs: each lap's sample of the reference over the same lap's of ours. What disturbs a lap
// disturbs both, so the ratio is known better than either time; a ratio of two medians would not
// know that.
Ratio ratio_of(std::span<const double> ours, std::span<const double> reference, uint64_t seed = 1);

// What is known beside a reference's samples; zeros: nothing.
struct Known {
  double flops = 0;    // of the problem
  double best_us = 0;  // the reference's best median on this machine so far
  double ours_us = 0;  // the candidate's median in the same run
};

// Why a reference's samples are hard to believe. A library's threads that wait for each other on a
// busy machine take a scheduler's quantum, hundreds of times what the library takes.
struct Doubt {
  std::string words;  // "" where nothing speaks against them
  bool firm = false;  // the reference is known to be faster; else it may be slow by its nature
};

Doubt doubt_of(std::span<const double> reference, const Known& known);

struct Samples : Interval {
  std::vector<double> us;  // a call, in the order taken
  int calls_per_sample = 1;
};

// One Samples for each alternative, in their order. Fails with the first failing call's error.
Result<std::vector<Samples>> measure(Executor& device,
                                     const std::vector<std::vector<Call>>& alternatives,
                                     const MeasureOptions& options = {});
}  // namespace warploom::runtime
