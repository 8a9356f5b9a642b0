// What the fields of a config must fulfil together.
//
// A family states each of its constraints with the fields that it reads; those that fail are
// handed back, all of them. A constraint can fail for good as soon as the fields that it reads are
// set, whatever the others become: that is how a space is walked (space_walk.h), and how a move
// knows which fields would mend it.
//
//   Checks<MatmulWgmmaConfig> checks;
//   checks.require(c.block_m % (64 * c.num_math_warpgroups) == 0,
//                  {F::block_m, F::num_math_warpgroups},
//                  "block_m a multiple of 64 rows a math warpgroup", c.block_m);
#pragma once
#include <initializer_list>
#include "base/error.h"
#include "kernels/config/kernel_config.h"

namespace warploom::kernels {
// One that fails.
struct FailedConstraint {
  ErrorCode code = ErrorCode::kScheduleIllegal;  // or kResourceLimit
  std::string expected;                          // what must hold, which is what would mend it
  std::string found;
  std::vector<size_t> fields;  // that it reads, by their numbers in the family's table
};

using FailedConstraints = std::vector<FailedConstraint>;

template <Config T> class Checks {
 public:
  using Field = typename T::Field;
  using Fields = std::initializer_list<Field>;

  void require(bool holds, Fields reads, const char* expected, int64_t found) {
    if (!holds) add(ErrorCode::kScheduleIllegal, reads, expected, std::to_string(found));
  }

  // That `bytes` fit in what a CTA, or a core on a CPU, has of fast memory.
  void require_fits(int64_t bytes, int64_t most, Fields reads) {
    if (bytes > most)
      add(ErrorCode::kResourceLimit, reads,
          "at most " + std::to_string(most) +
              " bytes of shared memory, or of a core's L2 cache: smaller tiles, or fewer stages",
          std::to_string(bytes) + " bytes");
  }

  FailedConstraints failed() && { return std::move(failed_); }

  bool all_hold() const { return failed_.empty(); }

 private:
  void add(ErrorCode code, Fields reads, std::string expected, std::string found) {
    FailedConstraint one{code, std::move(expected), std::move(found), {}};
    for (const Field field : reads)
      one.fields.push_back(static_cast<size_t>(field));
    failed_.push_back(std::move(one));
  }

  FailedConstraints failed_;
};
}  // namespace warploom::kernels
