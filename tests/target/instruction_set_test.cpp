#include "target/instruction_set.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include "base/error.h"
#include "target/capabilities.h"

namespace warploom::target {
namespace {
TEST(InstructionSets, AreTargetsWithVectorsOfTheirOwn) {
  for (const InstructionSet& set : instruction_sets()) {
    const auto capabilities = capabilities_of(std::string(set.name));
    ASSERT_TRUE(capabilities) << set.name << describe(capabilities.error());
    EXPECT_FALSE(capabilities->gpu);
    EXPECT_EQ(capabilities->arch, set.name);
    EXPECT_EQ(capabilities->vector_bytes, set.vector_bytes);
    EXPECT_EQ(capabilities->registers, set.registers);
    EXPECT_EQ(std::ranges::count(known_targets(), set.name), 1) << set.name;
  }
}

TEST(InstructionSets, OfThisMachineIsTheTargetCpu) {
  const auto cpu = capabilities_of("cpu");
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->arch, instruction_set_here().name);
  EXPECT_FALSE(cpu->estimated);
}

TEST(InstructionSets, OfAnotherProcessorAreGuessed) {
  for (const InstructionSet& set : instruction_sets()) {
    const bool is_here = set.processor == instruction_set_here().processor;
    EXPECT_EQ(capabilities_of(std::string(set.name))->estimated, !is_here) << set.name;
  }
}

TEST(InstructionSets, AreNoGpus) {
  EXPECT_EQ(instruction_set("sm_90a"), nullptr);
  EXPECT_EQ(instruction_set("cpu"), nullptr);
  EXPECT_EQ(capabilities_of("x86-64-v9").error().code, ErrorCode::kUnknownTarget);
}
}  // namespace
}  // namespace warploom::target
