#include "search/timeline.h"
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include "search/options.h"

namespace warploom::search {
double Timeline::at(double now) const {
  if (now >= 0) return now;
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Timeline::enter(const std::string& phase, const std::string& region, double now) {
  const bool goes_on =
      !stretches_.empty() && stretches_.back().phase == phase && stretches_.back().region == region;
  if (!goes_on) stretches_.push_back({phase, region, at(now)});
}

void Timeline::see(const Progress& progress, double now) {
  enter(progress.phase.empty() ? "trying candidates" : progress.phase, progress.region_name, now);
}

nlohmann::json Timeline::to_json(double now) const {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < stretches_.size(); ++i) {
    const bool is_last = i + 1 == stretches_.size();
    nlohmann::json row;
    row["phase"] = stretches_[i].phase;
    row["region"] = stretches_[i].region;
    row["from"] = stretches_[i].from;
    row["to"] = is_last ? at(now) : stretches_[i + 1].from;
    out.push_back(std::move(row));
  }
  return out;
}
}  // namespace warploom::search
