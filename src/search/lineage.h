// Lineage: the way from where a search began to one of its candidates, a step each, and its replay.
//
//   const Lineage steps = lineage_of(candidates, best.schedule);   // of the archive
//   steps[0].action      // null: it was proposed as it is
//   steps[1].action      // {"kind": "tiling", "sentence": "register tiles of 8 rows …", …}
//   replay(space, steps) // the last one's config, each step's action carried out in turn
//
// Errors of the replay: plan-invalid where a step is none, or leads elsewhere than what was
// recorded; those of carry_out() in search/action/action.h.
#pragma once
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "search/search_space.h"

namespace warploom::search {
using Lineage = std::vector<archive::Candidate>;  // the first one has no parent among them

// A problem's candidates; the schedule's text. None where it is not among them.
Lineage lineage_of(const std::vector<archive::Candidate>& all, const std::string& schedule);

Result<kernels::KernelConfig> replay(const SearchSpace& space, const Lineage& steps);
}  // namespace warploom::search
