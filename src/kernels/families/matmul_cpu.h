// What the files of the family `matmul_cpu` share: the guess of a config's time.
#pragma once
#include <cstdint>
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::cpu_matmul {
inline constexpr int64_t kMostVectors = 6;  // of a register tile's row

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
