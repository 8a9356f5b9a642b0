// Catalogue: the schedules a search may try for one region on one target, and how to build one. optimize() makes it from the
// families of kernels/; tests make their own.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include "base/random.h"
#include "kernels/family.h"
namespace warploom::search {
struct Catalogue {
  kernels::Region region;
  target::Capabilities capabilities;
  std::vector<const kernels::Family*> families;
  std::function<Result<LaunchList>(const kernels::Schedule&)> build;
};

// Every legal schedule of a family, or as many as a bounded number of looks finds where the space is too large to go through,
// best guess first; in random order on targets with a cost model.
std::vector<kernels::Schedule> ranked(const Catalogue& catalogue, const kernels::Family& family, Random& random);

// The legal schedules that differ from `schedule` in one field, in the order of fields and values.
std::vector<kernels::Schedule> neighbours(const Catalogue& catalogue, const kernels::Schedule& schedule);
}  // namespace warploom::search
