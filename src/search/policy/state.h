// State: what a policy sees when it weighs the actions at a config.
//
//   region     space->region, the target's capabilities, its least work and its roofline bound
//   config     where the search stands, with its time, or why it was refused
//   history    the steps that led here from where the search began, the oldest first
//
// Times are microseconds; 0: not known.
#pragma once
#include <vector>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/search_space.h"
#include "verify/setup.h"

namespace warploom::search {
// What is known of a region before anything was tried.
struct RegionFacts {
  kernels::Work work;
  verify::Bound bound;
};

RegionFacts facts_of(const SearchSpace& space);

// A verdict, as far as a search goes by it.
struct Judged {
  kernels::KernelConfig config;
  bool accepted = false;
  double us = 0;           // its median; 0 where it was refused
  bool is_wrong = false;   // refused since it computes something else
  ErrorCode refusal = {};  // where it was refused
};

// A step that was taken.
struct Moment {
  Action action;
  bool accepted = false;
  double before_us = 0;
  double after_us = 0;
};

struct State {
  const SearchSpace* space = nullptr;
  const RegionFacts* facts = nullptr;
  kernels::KernelConfig config;
  double us = 0;       // of the config; 0: refused, or not judged yet
  double best_us = 0;  // of the whole search so far
  std::vector<Moment> history;
};

// What holds the config back, by its time against the roofline: the bound's own resource where the
// time is near it, else that latency is not hidden. Unknown where no time or no bound is.
Bottleneck bottleneck_of(const State& state);
}  // namespace warploom::search
