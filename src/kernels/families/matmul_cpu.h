// What the files of the family `matmul_cpu` share: a product as configs are offered for it
// (matmul_cpu_space.cpp), refused (matmul_cpu_constraints.cpp) and compared by guessed times
// (matmul_cpu_guess.cpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/whole_product.h"

namespace warploom::kernels::cpu_matmul {
inline constexpr int64_t kMostVectors = 6;  // of a register tile's row
// Fused multiply-adds, or additions of their sums, one after another (promotion.h).
inline constexpr int64_t kLongestSum = 512;
// The same of operands of 16 bits, whose rounding counts for far more, and of whole numbers.
inline constexpr int64_t kLongestSumOfPairs = 4096;
inline constexpr int64_t kMostBlocks = 200;
inline constexpr int64_t kFewTerms = 32;  // of a sum that is to lose little

// A product, and what of this processor decides about its kernels.
struct Problem {
  Contraction c;
  std::optional<loopnest::ZeroPoints> zero_points;  // of whole numbers
  Capabilities capabilities;
  bool has_pairs = false;  // dot products of two bf16 at once
  bool has_tiles = false;  // tiles of bf16
  bool saturates = false;  // the result, however large the sum is
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;

  bool holds_rows() const { return !c.reductions.empty(); }

  int64_t lanes() const { return capabilities.lanes(); }

  int64_t registers() const { return std::max(capabilities.registers, 16); }

  int64_t vectors_of(int64_t of_columns) const { return ceil_div(of_columns, lanes()); }

  // Tasks along the rows of one product, of which each holds its rows in half of its cache.
  int64_t tasks_in_cache() const {
    const int64_t bytes = 4 * rows * round_up(columns, lanes());
    return std::min(rows, ceil_div(2 * bytes, capabilities.shared_bytes));
  }

  CpuProduct product(const MatmulCpuConfig& s) const {
    return {c, s, lanes(), zero_points ? &*zero_points : nullptr};
  }
};

Space space_of(const Problem& problem);
FailedConstraints constraints_of(const Problem& problem, const MatmulCpuConfig& config);

// Cycles of a core in which a register tile takes one term of the sum, or a pair of terms by dot
// products: two multiply-adds or two loads in each, at least as long as a sum waits for itself, and
// a share of what a tile begins and ends with and of loads that come late.
double cycles_a_step(int64_t rows, int64_t vectors);

// How many places along axes that are neither rows, columns nor k.
int64_t outer_count(const Contraction& contraction, const Access& access);

struct Constants {  // operands that are the same in every call
  bool a = false;
  bool b = false;
};

// Cycles of the busiest core. Constants are packed once, before the calls.
double guessed_cycles(const Contraction& contraction, const MatmulCpuConfig& config,
                      const Capabilities& capabilities, Constants constants);
}  // namespace warploom::kernels::cpu_matmul
