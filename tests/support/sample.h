// Long tests run a sample of their cases in CI and all of them with `./run test all`.
//
//   for (const Case& c : test::sampled("mutants", 0.25, test::mutated_cases(), labels_of)) …
//
// A case has labels: its family, the kinds of mutation that its kernels allow. The sample is drawn
// by the commit (WARPLOOM_SAMPLE_SEED, which tools/test_all.py sets), has every label that any case
// has, and then as many more cases as make up the share. WARPLOOM_WHOLE takes all. How many of how
// many it is goes to the file that WARPLOOM_SAMPLES names, which test_all.py prints.
#pragma once
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>
#include "base/random.h"

namespace warploom::test {
inline uint64_t sample_seed() {
  const char* text = std::getenv("WARPLOOM_SAMPLE_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

inline bool whole() {
  return std::getenv("WARPLOOM_WHOLE") != nullptr;
}

inline void note_sample(const std::string& what, size_t taken, size_t all) {
  if (const char* file = std::getenv("WARPLOOM_SAMPLES"))
    std::ofstream(file, std::ios::app) << what << ": " << taken << " of " << all << "\n";
}

template <class Case, class Labels>
std::vector<Case> sampled(const std::string& what, double share, std::vector<Case> cases,
                          Labels labels_of) {
  if (whole()) return cases;
  Random random(sample_seed(), what);
  random.shuffle(cases);
  const auto wanted = static_cast<size_t>(share * static_cast<double>(cases.size()));
  std::set<std::string> met;
  std::vector<Case> taken;
  std::vector<Case> others;
  for (Case& one : cases) {
    const std::set<std::string> labels = labels_of(one);
    const size_t before = met.size();
    met.insert(labels.begin(), labels.end());
    (met.size() > before ? taken : others).push_back(std::move(one));
  }
  for (Case& one : others) {
    if (taken.size() >= wanted) break;
    taken.push_back(std::move(one));
  }
  return taken;
}
}  // namespace warploom::test
