// What the tests of families share: a schedule at random, and how far an output is from FP64.
#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>
#include "kernels/config/reader.h"
#include "kernels/space_walk.h"

namespace warploom::test {
// A family's config with these fields, today's or those of an earlier version, and defaults.
inline kernels::KernelConfig config_of(const std::string& family,
                                       const std::map<std::string, int64_t>& fields) {
  kernels::RawConfig raw{family, {}};
  for (const auto& [name, value] : fields)
    raw.fields[name] = std::to_string(value);
  raw = kernels::migrated(std::move(raw));
  auto config = kernels::config_of(raw, *kernels::config_type(raw.family));
  if (!config) throw std::runtime_error(describe(config.error()));
  return *std::move(config);
}

// Sets a field by its name; the test fails where the family has none of that name.
inline void set_field(kernels::KernelConfig& config, std::string_view name, int64_t value) {
  EXPECT_TRUE(config.set(name, value)) << config.family() << " has no field " << name;
}

// A legal one with these fields fixed, which the family must have; nothing where chance finds none.
inline std::optional<kernels::KernelConfig> random_schedule(
    const kernels::Family& family, Random& random, const std::map<std::string, int64_t>& fixed = {},
    int attempts = 1000) {
  const kernels::SpaceWalk walk(family);
  kernels::KernelConfig from(family.type());
  std::vector<std::string> names;
  for (const auto& [name, value] : fixed) {
    set_field(from, name, value);
    names.push_back(name);
  }
  for (int attempt = 0; attempt < attempts; ++attempt)
    if (auto config = walk.sample(random, from, names)) return config;
  return std::nullopt;
}

// The legal schedule of the space that comes first, where chance finds none: few may be.
inline std::optional<kernels::KernelConfig> first_schedule(const kernels::Family& family) {
  std::optional<kernels::KernelConfig> first;
  kernels::SpaceWalk(family).all([&](const kernels::KernelConfig& config) {
    first = config;
    return false;
  });
  return first;
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
