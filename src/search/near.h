// Near: what earlier searches of other problems found, as places where a new search may begin.
//
// A softmax of 300 rows wants about what one of 512 rows wanted, and a product in bf16 much of what
// the one in fp32 did. Problems are points: the features of region and target (problem_record.h),
// each within -2 to 2 and most of them logarithms; beside those a step for another track. The bests
// of the nearest few, which may be of other shapes, tracks and cards, are carried over: field by
// field, each value as the new problem's family offers it, then to the nearest legal config.
//
//   for (const NearStart& start : near_starts(archive, problem, space, false))
//     strategy.suggest(start.config);   // once the families' guesses are tried
//
//   distance 0.12   softmax of [512, 700]   cpu_rowwise chunk=64 …  →  the same here
//
// They are proposals like any other: what is timed decides, here and now. Records of other archives
// (archive/travel.h) count like one's own, those of the same problem first.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "search/search_space.h"

namespace warploom::search {
// A config that was good at another problem.
struct NearConfig {
  std::string text;
  double us = 0;  // there
};

// A problem that was searched before.
struct NearProblem {
  archive::Problem problem;           // its features say what it is like
  std::string from = {};              // the file that brought it; empty: it was searched here
  std::vector<NearConfig> best = {};  // the fastest first
};

struct NearStart {
  kernels::KernelConfig config;  // legal in the space
  nlohmann::json origin;         // as archive::Run has it
};

// How far two problems are from each other; infinite where one has no features, or not the same.
double distance_between(const archive::Problem& one, const archive::Problem& other);

// Of these problems, but for the ones that are too far: the nearest first, none twice.
std::vector<NearStart> starts_from(std::span<const NearProblem> problems,
                                   const archive::Problem& problem, const SearchSpace& space);

// Of all that the archive knows but the problem itself; where `is_known`, since it was searched
// before, of what other archives say of it alone.
Result<std::vector<NearStart>> near_starts(archive::Archive& from, const archive::Problem& problem,
                                           const SearchSpace& space, bool is_known);
}  // namespace warploom::search
