// What the archive keeps of a problem beside its identity, so that other searches can learn of it:
// what it is like, in the features of region and target that a policy sees (policy/features.h); its
// graph; and its target.
//
//   note_problem(problem, space);
//   problem.features["flops"]           // 0.87: log2 of the operations over 32
//   region_of(problem)->nests()         // what a policy is trained on
//
// Constants of more than 4 KiB are not kept: the graph has inputs in their place, by which actions
// and plans are the same. A problem of an older program has none of this: then there is no region.
#pragma once
#include <optional>
#include "archive/archive.h"
#include "kernels/family.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
void note_problem(archive::Problem& problem, const SearchSpace& space);

// Nothing where the record has none, or none that is whole.
std::optional<kernels::Region> region_of(const archive::Problem& problem);
std::optional<target::Capabilities> capabilities_of(const archive::Problem& problem);
}  // namespace warploom::search
