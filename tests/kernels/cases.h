// The golden launch lists: every GPU family and every form of its kernels, on small problems. Tests
// that judge emitted text all draw on this list: emulation against FP64, mutants, and
// tests/ptxas.lock.
#pragma once
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>
#include "kernels/family.h"

namespace warploom::test {
struct Case {
  std::string name;
  std::string target;
  kernels::Region region;
  kernels::KernelConfig schedule;
  double tolerance = 0;  // relative Frobenius error against FP64
  int num_sms = 0;       // of a smaller GPU, so that few tiles are several waves
};

inline target::Capabilities capabilities_of(const Case& c) {
  auto capabilities = *target::capabilities_of(c.target);
  if (c.num_sms > 0) capabilities.num_sms = c.num_sms;
  return capabilities;
}

inline std::vector<Case> joined(std::initializer_list<std::vector<Case>> parts) {
  std::vector<Case> all;
  for (const std::vector<Case>& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

// Cases whose every synchronisation is mutated: two blocks share the tiles, and K has more steps
// than the pipeline has stages.
std::vector<Case> mutated_cases();
// Sums of so many parts that what their additions lose is carried on.
std::vector<Case> long_sums();
// Those and further forms; names are unique.
std::vector<Case> all_cases();
}  // namespace warploom::test
