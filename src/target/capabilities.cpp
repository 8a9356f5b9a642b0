#include "target/capabilities.h"
#include <sched.h>
#include <unistd.h>
namespace warploom::target {
namespace {
// Datasheet figures of the part each architecture is planned for: H200 SXM, L40S, A100 80 GB SXM.
const std::vector<Capabilities>& gpus() {
  constexpr std::int64_t kKiB = 1 << 10, kMiB = 1 << 20;
  // clang-format off
  static const std::vector<Capabilities> all = {
      {.arch = "sm_90a", .gpu = true, .processors = 132, .shared_bytes = 227 * kKiB, .registers = 65536, .max_cluster = 16,
       .warpgroup_mma = true, .tensor_copy = true, .async_copy = true, .dram_gbs = 4800, .l2_bytes = 50 * kMiB,
       .fp32_tflops = 66.9, .tf32_tflops = 494.7, .half_tflops = 989.4, .fp8_tflops = 1979,
       .rates = {.clock_ghz = 1.75}},
      {.arch = "sm_89", .gpu = true, .processors = 142, .shared_bytes = 99 * kKiB, .registers = 65536, .async_copy = true,
       .dram_gbs = 864, .l2_bytes = 96 * kMiB, .fp32_tflops = 91.6, .tf32_tflops = 183, .half_tflops = 362, .fp8_tflops = 733,
       .rates = {.clock_ghz = 2.5, .warp_matrix_cycles = 16, .l2_total_bytes = 2000, .memory_latency = 900}},
      {.arch = "sm_80", .gpu = true, .processors = 108, .shared_bytes = 163 * kKiB, .registers = 65536, .async_copy = true,
       .dram_gbs = 2039, .l2_bytes = 40 * kMiB, .fp32_tflops = 19.5, .tf32_tflops = 156, .half_tflops = 312,
       .rates = {.clock_ghz = 1.41, .l2_total_bytes = 2600, .memory_latency = 600}}};
  // clang-format on
  return all;
}

// This machine: cores that the process may use, the widest vectors the processor has.
Capabilities this_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? std::max(1, CPU_COUNT(&allowed)) : 1;
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Bounds no core of today exceeds: 5 GHz with two fused multiply-adds a cycle; 50 GB/s of memory a core, 800 in all.
  const double lanes = avx512 ? 16 : avx2 ? 8 : 4;
  return {.arch = avx512 ? "x86-64-v4"
                  : avx2 ? "x86-64-v3"
                         : "x86-64-v2",
          .gpu = false,
          .processors = cores,
          .shared_bytes = l2 > 0 ? l2 : 1 << 20,
          .registers = avx512 ? 32 : 16,
          .vector_bytes = static_cast<int>(lanes * 4),
          .dram_gbs = std::min(50.0 * cores, 800.0),
          .l2_bytes = l3 > 0 ? l3 : 32 << 20,
          .fp32_tflops = cores * lanes * 4 * 5e9 * 1e-12,
          .tf32_tflops = cores * lanes * 4 * 5e9 * 1e-12,
          .half_tflops = cores * lanes * 8 * 5e9 * 1e-12};
}
}  // namespace
std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const Capabilities& gpu : gpus()) names.push_back(gpu.arch);
  names.emplace_back("cpu");
  return names;
}

Result<Capabilities> capabilities_of(const std::string& target) {
  if (target == "cpu") return this_cpu();
  for (const Capabilities& gpu : gpus())
    if (target == gpu.arch) return gpu;
  return fail({ErrorCode::kUnknownTarget, "the target is unknown", "--target",
               fmt::format("one of {}", fmt::join(known_targets(), ", ")), target, "name one of these, or `auto`"});
}
}  // namespace warploom::target
