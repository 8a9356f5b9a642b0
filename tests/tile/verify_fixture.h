// What tests of the verifier share: programs that are accepted, or refused at a place.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <filesystem>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "tile/build.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::tile {
inline std::string report(const Status& status) {
  return status ? "" : describe(status.error());
}

inline void expect_valid(const Program& program) {
  const Status status = verify(program);
  EXPECT_TRUE(status) << report(status);
}

// Refused at a statement of the test's file, for the reason that a word of the message gives.
inline void expect_invalid(const Program& program, int line, const std::string& word,
                           const char* file = __builtin_FILE()) {
  const Status status = verify(program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
  EXPECT_TRUE(status.error().place.ends_with(
      fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line)))
      << report(status);
  EXPECT_NE(status.error().message.find(word), std::string::npos) << report(status);
}

// Refused at a declaration.
inline void expect_invalid(const Program& program, const std::string& place,
                           const std::string& word) {
  const Status status = verify(program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
  EXPECT_NE(status.error().place.find(place), std::string::npos) << report(status);
  EXPECT_NE(status.error().message.find(word), std::string::npos) << report(status);
}

// Some tensors to make mistakes with.
struct Verify : testing::Test {
  Builder b{"program"};
  TensorId x = b.global("X", Dtype::f32, {64, 64});
  TensorId y = b.output("Y", Dtype::f32, {64, 64});
  TensorId s = b.shared("s", Dtype::f32, {16, 16});
  TensorId r = b.reg("r", Dtype::f32, {16, 16});
  TensorId q = b.reg("q", Dtype::f32, {16, 1});
  TensorId h = b.shared("h", Dtype::bf16, {16, 16});
  TensorId stage = b.shared("stage", Dtype::f32, {16, 16});

  Tile corner(TensorId id) { return b.tile(id, {0, 0}, {16, 16}); }

  PipelineId ring(int stages = 2) { return b.pipeline("ring", stages, {stage}); }

  void produce(PipelineId p) {
    b.produce(p, [&] { b.copy(corner(x), b.all(stage)); });
  }

  void consume(PipelineId p) {
    b.consume(p, 0, [&] { b.copy(b.all(stage), b.all(r)); });
  }
};
}  // namespace warploom::tile
