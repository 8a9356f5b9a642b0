// What strategies start from: every family's legal configs by guess, the fallback, and neighbours.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>
#include "base/random.h"
#include "codegen/launch_list.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "plan/limits.h"
#include "search/search_space.h"

namespace warploom::search {
// What covers the region and is the surest to be right: of a strict family, whose kernels compute
// with the operands themselves and hold infinities and NaN, one made for such regions before one
// that covers nearly everything; where there is none, of what there is. By guess or prediction the
// best that can be built of the configs that a bounded walk finds. Nothing where there is none.
struct Fallback {
  kernels::KernelConfig config;
  LaunchList list;
};

std::optional<Fallback> fallback_of(const SearchSpace& space);
std::optional<Fallback> fallback_within(const SearchSpace& space, const plan::Limits& limits);

using Ranked = std::vector<std::vector<kernels::KernelConfig>>;  // of each family, best guess first

// Of each family every legal config, or as many as a bounded number of samples finds where the
// space is too large to go through; equal guesses in random order on targets with a cost model,
// which orders them a few at a time.
Ranked ranked_families(const SearchSpace& space, Random& random, const plan::Limits& limits);

// Families in turn: their guesses need not compare.
std::vector<kernels::KernelConfig> in_turn(const Ranked& families);

// The legal configs that differ from `config` in one field, in the order of fields and values.
std::vector<kernels::KernelConfig> neighbours(const SearchSpace& space,
                                              const kernels::KernelConfig& config);
}  // namespace warploom::search
