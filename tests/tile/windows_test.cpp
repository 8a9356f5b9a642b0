// Windows: overlapping views of a pipeline's tensor.
#include <gtest/gtest.h>
#include <cstddef>
#include <string>
#include <string_view>
#include "base/error.h"
#include "examples.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::tile {
namespace {
constexpr std::string_view kWindows = R"(program windows grid(1, 1, 1) warps 4
global X f32 [6, 16]
output Y f32 [12, 6]
shared patch f32 [6, 16]
shared seen f32 [3, 4, 2, 3] windows patch from 1 strides [16, 3, 32, 2]
register r f32 [12, 6]
pipeline ring stages 2 { patch }
produce ring:
  copy X -> patch
consume ring:
  copy seen -> r
  copy r -> Y
)";

Program program_of(std::string text, std::string_view from = "", std::string_view to = "") {
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  const auto program = parse(text);
  EXPECT_TRUE(program) << describe(program.error());
  return program.value_or(Program{});
}

void expect_refused(std::string_view from, std::string_view to, const std::string& word) {
  const Status status = verify(program_of(std::string(kWindows), from, to));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
  EXPECT_NE(status.error().message.find(word), std::string::npos) << describe(status.error());
}

TEST(Windows, PrintAsTheyAreRead) {
  EXPECT_EQ(print(program_of(std::string(kWindows))), kWindows);
}

TEST(Windows, ReadTheElementsAtTheSumsOfTheirStrides) {
  const Program program = program_of(std::string(kWindows));
  ASSERT_TRUE(verify(program));
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << describe(status.error());
  size_t at = 0;
  for (size_t y = 0; y < 3; ++y)
    for (size_t x = 0; x < 4; ++x)
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 3; ++j)
          EXPECT_EQ(arrays.get("Y", at++), arrays.get("X", 1 + 16 * y + 3 * x + 32 * i + 2 * j));
}

TEST(Windows, ReachNoFurtherThanTheirTensor) {
  expect_refused("from 1", "from 80", "outside");
}

TEST(Windows, AreNotWritten) {
  expect_refused("copy seen -> r", "copy seen -> r\n  copy r -> seen",
                 "written while its pipeline");
}

TEST(Windows, AreNoOperands) {
  expect_refused("  copy r -> Y", "  mma r += seen * seen", "works on windows");
}

TEST(Windows, AreOfAPipelinesTensor) {
  expect_refused("shared seen f32 [3, 4, 2, 3] windows patch",
                 "shared other f32 [6, 16]\nshared seen f32 [3, 4, 2, 3] windows other",
                 "pipeline's tensor");
}

TEST(Windows, OfOthersTensorsHaveNoStrides) {
  expect_refused(" windows patch from 1", "", "strides");
}
}  // namespace
}  // namespace warploom::tile
