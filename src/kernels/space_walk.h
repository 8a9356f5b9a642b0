// Walking a family's space: its legal configs, all of them in order or some at random.
//
// A space is a list of values for each field, and most combinations clash. A walk sets field after
// field and asks after each which constraints fail that read fields set by now alone: such a
// constraint fails whatever comes, and the value is not taken. So a walk seldom ends where no value
// is left: then it goes back, a bounded number of times.
//
//   space {block_m: 128, 256, 64; …; num_math_warpgroups: 2, 1; ctas_per_sm: 1, 2}
//   num_math_warpgroups=2 is set; ctas_per_sm=2 fails "ctas_per_sm=1 with two math warpgroups",
//   which reads these two: ctas_per_sm=1 is what remains
#pragma once
#include <functional>
#include <optional>
#include "base/random.h"
#include "kernels/family.h"

namespace warploom::kernels {
class SpaceWalk {
 public:
  explicit SpaceWalk(const Family& family);

  // Every legal config, the first field's values fastest, until `visit` returns false.
  void all(const std::function<bool(const KernelConfig&)>& visit) const;

  // A legal one at random, with those fields fixed at what `from` has; nothing where the walk found
  // no way on.
  std::optional<KernelConfig> sample(Random& random) const;
  std::optional<KernelConfig> sample(Random& random, const KernelConfig& from,
                                     const std::vector<std::string>& fixed) const;

  const Space& space() const { return space_; }

 private:
  struct Step {
    size_t field;  // of the table
    Values values;
  };

  struct Walk;  // one under way
  std::vector<Step> steps_without(const KernelConfig& config,
                                  const std::vector<std::string>& fixed) const;

  const Family& family_;
  Space space_;
};
}  // namespace warploom::kernels
