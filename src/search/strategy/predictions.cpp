#include "search/strategy/predictions.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/casts.h"
#include "graph/parallel.h"
#include "kernels/config/kernel_config.h"

namespace warploom::search {
using kernels::KernelConfig;

// Asks the model about those that it was not asked about before.
void Predictions::predict(const std::vector<KernelConfig>& configs) {
  std::vector<const KernelConfig*> fresh;
  for (const auto& config : configs)
    if (predicted_.emplace(config.text(), HUGE_VAL).second) fresh.push_back(&config);
  std::vector<double> us(fresh.size());
  const auto predict = [&](int64_t i) {
    const double predicted = is_over() ? 0 : space_->predict(*fresh[i]).value_or(0);
    us[i] = predicted > 0 ? predicted : HUGE_VAL;
  };
  graph::parallel_for(as_int64(fresh.size()), 0, predict);
  for (size_t i = 0; i < fresh.size(); ++i)
    predicted_[fresh[i]->text()] = us[i];
}

bool Predictions::sort(std::vector<KernelConfig>& configs) {
  if (!space_->capabilities.gpu || !space_->predict) return false;  // nothing is known of CPUs
  predict(configs);
  std::ranges::stable_sort(configs, {},
                           [&](const KernelConfig& config) { return predicted_[config.text()]; });
  return !configs.empty() && predicted_[configs[0].text()] < HUGE_VAL;
}
}  // namespace warploom::search
