#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>
#include "base/error.h"
#include "layout/tv_layout.h"
#include "target/capabilities.h"
#include "target/instruction.h"

namespace warploom::target {
namespace {
// Whether the layouts of a matrix row cover its tiles: every element equally often, those of the
// accumulator once.
Status check_operand(const Instruction& row, const layout::TvLayout& tv, char operand) {
  const bool covers = tv.threads() == row.threads && tv.is_exact() &&
                      (operand != 'c' || tv.threads() * tv.values() == tv.tile[0] * tv.tile[1]);
  if (covers) return ok();
  return fail(
      {ErrorCode::kInternal,
       fmt::format("row {}: the layout of operand {} does not cover its tile", row.name, operand),
       std::string(row.name), fmt::format("{} threads, every element equally often", row.threads),
       layout::to_string(tv), "mend the row"});
}

Status check(const Instruction& row) {
  const bool is_matrix = row.m > 0;
  if (is_matrix && !row.a_shared) WARPLOOM_CHECK(check_operand(row, row.a, 'a'));
  if (is_matrix && !row.b_shared) WARPLOOM_CHECK(check_operand(row, row.b, 'b'));
  if (is_matrix) WARPLOOM_CHECK(check_operand(row, row.c, 'c'));
  return ok();
}

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
    for (const Instruction& row : instructions_of(arch))
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(Rows, EveryCallIsOfTheDeviceInterface) {
  for (const Instruction& row : instructions_of("sm_90a"))
    EXPECT_TRUE(row.call.starts_with("wl::")) << row.name;
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
  EXPECT_GE(caps->num_sms, 1);
  EXPECT_GE(caps->vector_bytes, 16);
}
}  // namespace
}  // namespace warploom::target
