// Closed sub-spaces: a search space with some values of each field alone, so that all of it can be
// measured once and searched again and again from the records.
//
//   const ValueRanges ranges = {{"cpu_rowwise", {{"chunk", {16, 64}}, {"rows_per_task", {1, 4}}}}};
//   const SearchSpace closed = closed_space(space, ranges);   // families that are named, so ranged
//
// Fields that are not named keep all of their values; families that are not named are left out.
// Constraints, guesses and kernels are the family's own.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "search/search_space.h"

namespace warploom::search {
// By family and field.
using ValueRanges = std::map<std::string, std::map<std::string, std::vector<int64_t>>>;

SearchSpace closed_space(SearchSpace space, const ValueRanges& ranges);
}  // namespace warploom::search
