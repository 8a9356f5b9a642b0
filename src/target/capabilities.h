// What a target can do: limits and engines, apart from its instruction rows. Kernel builders read this and nothing else of a
// target; synthesis reads the rows.
#pragma once
#include <vector>
#include "base/error.h"
namespace warploom::target {
struct Capabilities {
  std::string arch;  // "sm_90a", "sm_89", "sm_80", "x86-64-v4", "x86-64-v3"
  bool gpu = false;
  // GPU limits
  int processors = 1;             // multiprocessors, or CPU cores
  std::int64_t shared_bytes = 0;  // a block may use; on the CPU what fits in a core's L2 cache
  int registers = 0;              // 32-bit registers a multiprocessor; on the CPU vector registers
  int max_cluster = 1;            // blocks a cluster, non-portable sizes included
  // Multiprocessors that clusters of `size` blocks can use at once, a block each: a cluster stays within one group of
  // multiprocessors, and the groups are of unequal sizes (asked of an H200: 132, 120, 120, 112 for clusters of 2, 4, 8, 16).
  int cluster_processors(int size) const { return size <= 2 ? processors : processors * 10 / 11 / size * size; }
  bool warpgroup_mma = false;  // matrix unit fed from shared memory by four warps
  bool tensor_copy = false;    // tile copies by a copy engine
  bool async_copy = false;     // copies to shared memory behind the threads' backs
  int vector_bytes = 16;       // widest register the CPU computes with; widest global access on the GPU
  // Rates, for floors and rooflines: datasheet figures
  double dram_gbs = 0;  // 10^9 bytes a second
  std::int64_t l2_bytes = 0;
  double fp32_tflops = 0, tf32_tflops = 0, half_tflops = 0, fp8_tflops = 0;
};

// By name: one of the GPU architectures above, or "cpu" for this machine. Fails with kUnknownTarget.
Result<Capabilities> capabilities_of(const std::string& target);
std::vector<std::string> known_targets();
}  // namespace warploom::target
