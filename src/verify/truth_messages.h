// What DeviceTruth and its process tell each other, as JSON. Private to device_truth.cpp and
// truth_process.cpp.
#pragma once
#include <nlohmann/json.hpp>
#include "verify/tolerance.h"

namespace warploom::verify {
inline void to_json(nlohmann::json& out, const Comparison::Marks& marks) {
  out = {marks.count, marks.first};
}

inline void from_json(const nlohmann::json& in, Comparison::Marks& marks) {
  in.at(0).get_to(marks.count);
  in.at(1).get_to(marks.first);
}

inline void to_json(nlohmann::json& out, const Comparison::Worst& worst) {
  out = {worst.ratio, worst.index, worst.found, worst.expected};
}

inline void from_json(const nlohmann::json& in, Comparison::Worst& worst) {
  in.at(0).get_to(worst.ratio);
  in.at(1).get_to(worst.index);
  in.at(2).get_to(worst.found);
  in.at(3).get_to(worst.expected);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Comparison, error_squares, reference_squares, reference_fourths,
                                   magnitude_squares, magnitude_fourths, largest_error,
                                   largest_reference, compared, worst, nonfinite, unwritten,
                                   lost_nan, lost_infinity, undetermined, all_zero, zero_expected,
                                   beyond)
}  // namespace warploom::verify
