// Timeline: where the seconds of a search went, as its progress told.
//
//   Timeline timeline;
//   timeline.see(progress);            // each time that the search reports
//   timeline.enter("building the bundle and running its check");
//   timeline.to_json();
//     // [{"phase": "planning", "region": "", "from": 0, "to": 0.4}, …]
//
// Stretches follow each other without gaps; the last ends when it is asked for. Units: seconds
// since the timeline was made.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "search/options.h"

namespace warploom::search {
// The stretches of a search, each of one phase in one region.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  // A phase begins, unless it is the one that there is.
  void enter(const std::string& phase, const std::string& region = {}, double now = -1);
  // What a search reports; while it tries candidates it names no phase.
  void see(const Progress& progress, double now = -1);
  nlohmann::json to_json(double now = -1) const;

 private:
  struct Stretch {
    std::string phase;
    std::string region;
    double from = 0;
  };

  // `now` where it is given (for tests), else by the clock.
  double at(double now) const;

  Clock::time_point start_ = Clock::now();
  std::vector<Stretch> stretches_;
};
}  // namespace warploom::search
