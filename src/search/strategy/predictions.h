// Predictions: what the cost model says of configs, each asked about once, many at a time. Once its
// limits end them, or are late, no more are made.
#pragma once
#include <map>
#include <string>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "plan/limits.h"
#include "search/search_space.h"

namespace warploom::search {
class Predictions {
 public:
  // The space must outlive it.
  Predictions(const SearchSpace& space, plan::Limits limits) : space_(&space), limits_(limits) {}

  // Sorts by predicted time, the unknown last; false where nothing is known.
  bool sort(std::vector<kernels::KernelConfig>& configs);

  bool is_over() const { return limits_.ended() || limits_.late(); }

  // From now on no clock ends them.
  void begin_rounds() { limits_.until.reset(); }

 private:
  void predict(const std::vector<kernels::KernelConfig>& configs);

  const SearchSpace* space_;
  plan::Limits limits_;
  std::map<std::string, double> predicted_;  // microseconds, by config
};
}  // namespace warploom::search
