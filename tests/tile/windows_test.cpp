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

TEST(Windows, AreNoSecondOperands) {
  expect_refused("  copy r -> Y", "  mma r += seen * seen", "works on windows");
}

TEST(Windows, AreOfASharedTensor) {
  expect_refused("shared seen f32 [3, 4, 2, 3] windows patch",
                 "register other f32 [6, 16]\nshared seen f32 [3, 4, 2, 3] windows other",
                 "shared tensor");
}

// The first dimensions are rows of the product, the others its depth.
constexpr std::string_view kProduct = R"(program product grid(1, 1, 1) warps 4
global X f32 [6, 16]
global W f32 [6, 2]
output Y f32 [12, 2]
shared patch f32 [6, 16]
shared seen f32 [3, 4, 2, 3] windows patch from 1 strides [16, 3, 32, 2]
shared w f32 [6, 2]
register acc f32 [12, 2]
copy X -> patch
copy W -> w
fill acc 0
mma acc += seen * w
copy acc -> Y
)";

TEST(Windows, AreMultipliedWhereTheyLie) {
  const Program program = program_of(std::string(kProduct));
  const Status legal = verify(program);
  ASSERT_TRUE(legal) << describe(legal.error());
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << describe(status.error());
  for (size_t row = 0; row < 12; ++row)
    for (size_t column = 0; column < 2; ++column) {
      double sum = 0;
      for (size_t k = 0; k < 6; ++k) {
        const size_t window = 1 + 16 * (row / 4) + 3 * (row % 4);
        sum +=
            arrays.get("X", window + 32 * (k / 3) + 2 * (k % 3)) * arrays.get("W", 2 * k + column);
      }
      EXPECT_NEAR(arrays.get("Y", 2 * row + column), sum, 1e-5);
    }
}

TEST(Windows, MakeWholeRowsOfAProduct) {
  const Status status =
      verify(program_of(std::string(kProduct), "seen f32 [3, 4, 2, 3]", "seen f32 [2, 4, 2, 3]"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
}

TEST(Windows, OfOthersTensorsHaveNoStrides) {
  expect_refused(" windows patch from 1", "", "strides");
}
}  // namespace
}  // namespace warploom::tile
