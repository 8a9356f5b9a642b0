#include <gtest/gtest.h>
#include <set>
#include "target/capabilities.h"
#include "target/instruction.h"
namespace warploom::target {
namespace {
TEST(Rows, EveryRowProvesItsOwnLayouts) {
  for (const char* arch : {"sm_80", "sm_89", "sm_90a"})
    for (const Instruction& row : instructions_of(arch)) {
      const Status status = check(row);
      EXPECT_TRUE(status.has_value()) << arch << ": " << (status ? "" : describe(status.error()));
    }
}

TEST(Rows, AFragmentThatMissesAnElementIsRefused) {
  Instruction row = instructions_of("sm_80")[0];
  row.a.value.back().step = {4, 0};  // two values now hold the same element
  const Status status = check(row);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
}

TEST(Rows, NamesAreUniqueWithinAnArchitecture) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::set<std::string_view> names;
    for (const Instruction& row : instructions_of(arch)) EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(Rows, EveryCallIsOfTheDeviceInterface) {
  for (const Instruction& row : instructions_of("sm_90a")) EXPECT_TRUE(row.call.starts_with("wl::")) << row.name;
}

TEST(Capabilities, AnUnknownTargetIsRefusedByItsCode) {
  const auto caps = capabilities_of("sm_12");
  ASSERT_FALSE(caps.has_value());
  EXPECT_EQ(caps.error().code, ErrorCode::kUnknownTarget);
  EXPECT_NE(caps.error().expected.find("sm_90a"), std::string::npos);
}

TEST(Capabilities, ThisMachineIsACpuTarget) {
  const auto caps = capabilities_of("cpu");
  ASSERT_TRUE(caps.has_value());
  EXPECT_FALSE(caps->gpu);
  EXPECT_GE(caps->processors, 1);
  EXPECT_GE(caps->vector_bytes, 16);
}
}  // namespace
}  // namespace warploom::target
