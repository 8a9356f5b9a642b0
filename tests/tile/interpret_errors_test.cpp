// What interpret() says of programs and buffers that it cannot run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cmath>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "examples.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/interpret.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
TEST(Interpret, AMissingOrShortBufferIsAnError) {
  const Program program = rowwise_scale(2, 2);
  Arrays arrays(program);
  Buffers buffers = arrays.buffers();
  buffers["Y"] = buffers["Y"].first(15);
  EXPECT_EQ(interpret(program, buffers).error().code, ErrorCode::kTileRuntime);
  buffers.erase("Y");
  EXPECT_EQ(interpret(program, buffers).error().code, ErrorCode::kTileRuntime);
}

TEST(Interpret, AnInvalidProgramIsRefused) {
  Builder b("invalid");
  const auto x = b.global("X", Dtype::f32, {2});
  b.fill(x, 0);
  EXPECT_EQ(interpret(b.finish(), {}).error().code, ErrorCode::kTileInvalid);
}

TEST(Interpret, DividingByZeroIsUndefined) {
  Builder b("zero");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const int line = (b.copy(b.tile(x, {Index(1) / block(0)}, {2}), b.all(s)), __LINE__);
  expect_undefined(b.finish(), line, "divides");
}
}  // namespace
}  // namespace warploom::tile
