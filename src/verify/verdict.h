// Verdict: right or wrong with the evidence, and its time or its error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "verify/inputs.h"

namespace warploom::verify {

// What one input family showed.
struct Evidence {
  InputFamily family = InputFamily::normal;
  std::uint64_t seed = 0;
  double error = 0;                         // relative Frobenius against FP64
  double max_error = 0;                     // largest absolute error over the largest absolute reference
  double bound = 0;                         // the Frobenius error that was allowed
  double worst_ratio = 0;                   // the worst element's error over its bound
  double reference_error = -1;              // the vendor's Frobenius error on the same inputs; -1: no vendor
  std::int64_t rows_checked = 0, rows = 0;  // against FP64; fewer than all where the whole was not affordable
};

struct Verdict {
  bool accepted = false;
  Error error_found = {ErrorCode::kInternal, {}};  // why not
  double error = 0, max_error = 0;                 // the worst family's
  double reference_error = -1;
  double median_us = 0, low_us = 0, high_us = 0;                         // 95 % interval of the median; 0: not timed
  double reference_us = 0, reference_low_us = 0, reference_high_us = 0;  // in the same run, alternating
  int repeats = 0;
  double floor_us = 0;  // the physical floor
  std::vector<Evidence> evidence;
};
nlohmann::json to_json(const Verdict& verdict);
Result<Verdict> verdict_from_json(const nlohmann::json& json);

}  // namespace warploom::verify
