#include "target/instruction_set.h"
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace warploom::target {
namespace {
// Tuning: left to themselves, compilers take half of an AVX-512. For an Arm g++ would begin by
// loading all that a tile of registers multiplies, and move sums to the stack to make room for it.
// clang-format off
constexpr std::array kSets = {
    InstructionSet{.name = "x86-64-v4", .vectors = "AVX-512", .vector_bytes = 64, .registers = 32,
                   .march = "x86-64-v4", .tuning = "-mprefer-vector-width=512"},
    InstructionSet{.name = "x86-64-v3", .vectors = "AVX2", .vector_bytes = 32,
                   .march = "x86-64-v3"},
    InstructionSet{.name = "x86-64-v2", .vectors = "SSE4.2", .march = "x86-64-v2"},
    InstructionSet{.name = "aarch64", .vectors = "NEON", .processor = Processor::aarch64,
                   .registers = 32, .multiply_adds = 4, .march = "armv8-a",
                   .tuning = "-fno-schedule-insns"}};
// clang-format on

#if defined(__aarch64__)
// Every processor of this kind has NEON.
bool is_here(const InstructionSet& set) {
  return set.processor == Processor::aarch64;
}
#elif defined(__x86_64__)
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool is_here(const InstructionSet& set) {
  __builtin_cpu_init();
  if (set.processor != Processor::x86_64) return false;
  if (set.vector_bytes == 64) return has_avx512();
  return set.vector_bytes == 16 || has_avx2();
}
#else
#error "no instruction set of this processor is known: add its row"
#endif
}  // namespace

std::span<const InstructionSet> instruction_sets() {
  return kSets;
}

const InstructionSet* instruction_set(std::string_view name) {
  const auto found = std::ranges::find(kSets, name, &InstructionSet::name);
  return found == kSets.end() ? nullptr : found;
}

const InstructionSet& instruction_set_here() {
  static const InstructionSet& here = *std::ranges::find_if(kSets, is_here);
  return here;
}
}  // namespace warploom::target
