// What the tests of families share: a schedule at random, and how far an output is from FP64.
#pragma once
#include <cmath>
#include "base/random.h"
#include "kernels/family.h"

namespace warploom::test {
// A legal one with these fields fixed; nothing where chance finds none.
inline std::optional<kernels::Schedule> random_schedule(
    const kernels::Family& family, Random& random, const std::map<std::string, int64_t>& fixed = {},
    int attempts = 20000) {
  const kernels::Space space = family.space();
  for (int attempt = 0; attempt < attempts; ++attempt) {
    kernels::Schedule schedule{family.name(), fixed};
    for (const kernels::Field& field : space.fields)
      if (!fixed.contains(field.name))
        schedule.fields[field.name] = field.values[random.below(field.values.size())];
    if (family.legal(schedule)) return schedule;
  }
  return std::nullopt;
}

// The largest difference over the largest value; infinite where something is no number.
inline double error_of(const std::vector<double>& want, Dtype dtype,
                       const std::vector<std::byte>& have) {
  double worst = 0;
  double largest = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    const double value = load_as_double(dtype, have.data(), i);
    worst = std::max(worst, std::isnan(value) ? HUGE_VAL : std::abs(value - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return worst / largest;
}

inline double allowed(Dtype dtype) {
  return dtype == Dtype::f32 ? 3e-6 : 1e-2;
}
}  // namespace warploom::test
