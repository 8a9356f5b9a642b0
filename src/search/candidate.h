// Candidate: a config, what it was built to, and what came of judging it.
#pragma once
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "verify/evaluator.h"

namespace warploom::search {
struct Candidate {
  kernels::KernelConfig config;
  LaunchList list;  // empty for one that the archive knows and that was not built again
  verify::Verdict verdict;
  std::vector<std::string> parents;  // texts of the configs that it was made from
  std::string compiler;
  bool judged_here = false;  // in this search, or before it was stopped
  bool promoted = false;     // judged whole in a fresh process
  bool finalist = false;     // measured again, in turns with the reference
  double screened_us = 0;    // what proposals went by: the time before that
};
}  // namespace warploom::search
