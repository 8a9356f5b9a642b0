#include "target/rates.h"

namespace warploom::target {

const Rates& rates_of(const std::string& arch) {
  static constexpr Rates h200{.clock_ghz = 1.75};
  static constexpr Rates a100{.clock_ghz = 1.41, .l2_total_bytes = 2600, .memory_latency = 600};
  static constexpr Rates l40s{
      .clock_ghz = 2.5, .warp_matrix_cycles = 16, .l2_total_bytes = 2000, .memory_latency = 900};
  return arch == "sm_90a" ? h200 : arch == "sm_89" ? l40s : a100;
}

}  // namespace warploom::target
