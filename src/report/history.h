// What the archive knows of one problem, as the page shows it: its candidates over the seconds of
// the search, the best so far, why some were refused.
#pragma once
#include <nlohmann/json.hpp>
#include "archive/archive.h"

namespace warploom::report {
// {"problem", "candidates", "runs", "best", "reference", "reference_us", "refusals", "judged",
//  "exchanges", "model_cost", "picture", "rounds", "tables"}: candidates are the archive's records
//  with
//   n         their number, in the order in which they were first recorded
//   seconds   of search until then, all runs of the problem together; null where the archive
//             does not say
//   spread    half of the interval of the median, against the median
//   why       of one that was refused: its code and message
// and what is not known is null. Exchanges with a language model are without their texts;
// model_cost says in words what they took, "": none was asked.
Result<nlohmann::json> history_of(archive::Archive& from, const archive::Problem& problem);

// The best so far: each candidate that was better than all before it, by its seconds of search, or
// by its number where `seconds` are not known of all.
struct Progress {
  bool seconds = true;
  std::vector<std::pair<double, double>> bests;  // when, and its median in microseconds
  double end = 0;                                // of the search
};

Progress progress_of(const nlohmann::json& history);
}  // namespace warploom::report
