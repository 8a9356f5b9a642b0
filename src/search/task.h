// Task: one region on one target to be searched: what to try, and how it is judged.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include "base/error.h"
#include "kernels/family.h"
#include "search/coder/written.h"
#include "search/search_space.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"

namespace warploom::search {
struct Task {
  SearchSpace space;
  verify::Setup setup;
  verify::Bound bound = {};
  // Texts that a model writes, where one does; the space builds them (with_texts()).
  std::shared_ptr<WrittenTexts> texts = {};
  // In the evaluator's place, where verdicts were recorded before: then the seed and they alone
  // decide what is tried, and no clock ends the search, but `max_candidates`. For tests: no command
  // sets it.
  std::function<Result<verify::Verdict>(const kernels::KernelConfig&, const verify::Request&)>
      recorded = {};
};

// A task but for its space, which takes time for a whole network, and its reference.
// `constants`: those of the region's inputs that hold the same in every call. `least_flops`: what a
// rewritten graph needs, where that is less (choice_search.h): no floor or bound is above it.
Task make_task(const kernels::Region& region, const target::Capabilities& capabilities,
               uint64_t seed, const std::set<std::string>& constants = {},
               double least_flops = HUGE_VAL);

// From now on its space builds written texts, too.
void take_texts(Task& task);
}  // namespace warploom::search
