#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/machine.h"
#include "target/instruction_set.h"

namespace warploom::runtime {
namespace {
std::string march_of(std::string_view arch) {
  const auto flags = cpu_compile_flags(arch);
  const auto found = std::ranges::find_if(
      flags, [](const std::string& flag) { return flag.starts_with("-march="); });
  return found == flags.end() ? "" : *found;
}

TEST(InstructionSetFlags, OfThisMachineAreForAllThatItCanDo) {
  EXPECT_EQ(march_of(""), "-march=native");
  EXPECT_EQ(cpu_compile_flags(target::instruction_set_here().name), cpu_compile_flags());
}

TEST(InstructionSetFlags, OfAnotherSetAreForThatSetAlone) {
  for (const target::InstructionSet& set : target::instruction_sets()) {
    if (set.name == target::instruction_set_here().name) continue;
    EXPECT_EQ(march_of(set.name), "-march=" + std::string(set.march));
  }
}

TEST(InstructionSetFlags, PreferWideVectorsWhereThereAreAny) {
  const auto wide = [](std::string_view arch) {
    return std::ranges::count(cpu_compile_flags(arch), "-mprefer-vector-width=512") == 1;
  };
  EXPECT_TRUE(wide("x86-64-v4"));
  EXPECT_FALSE(wide("x86-64-v3"));
  EXPECT_FALSE(wide("aarch64"));
}

TEST(InstructionSetMachines, RunOlderSetsOfTheirProcessor) {
  EXPECT_TRUE(runs_on("x86-64-v3", "x86-64-v4"));
  EXPECT_FALSE(runs_on("x86-64-v4", "x86-64-v3"));
  EXPECT_FALSE(runs_on("aarch64", "x86-64-v4"));
  EXPECT_FALSE(runs_on("x86-64-v2", "aarch64"));
}

TEST(InstructionSetMachines, KernelsOfAnotherProcessorAreNotCompiledHere) {
  const bool on_arm = target::instruction_set_here().processor == target::Processor::aarch64;
  const auto binary = compile(doubling_list(Engine::cpu, on_arm ? "x86-64-v3" : "aarch64"));
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code, ErrorCode::kWrongMachine);
}
}  // namespace
}  // namespace warploom::runtime
