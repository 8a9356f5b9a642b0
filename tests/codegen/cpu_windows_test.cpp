// Products of windows of a patch on a CPU, by the emitted text.
#include <gtest/gtest.h>
#include <cstdint>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/emit.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom {
namespace {
using tile::Builder;

// Twelve windows of a patch, times weights of 20 columns that lie in memory, rows `pitch` apart.
tile::Program product(int64_t pitch) {
  Builder b("product");
  b.warps(1);
  const auto x = b.global("X", Dtype::f32, {6, 16});
  const auto w = b.global("W", Dtype::f32, {20, 6}, {1, pitch});
  const auto y = b.output("Y", Dtype::f32, {12, 20});
  const auto patch = b.shared("patch", Dtype::f32, {6, 16});
  const auto seen = b.as_strided("seen", patch, 0, {3, 4, 2, 3}, {16, 3, 32, 2});
  const auto acc = b.reg("acc", Dtype::f32, {12, 20});
  b.copy(b.all(x), b.all(patch));
  b.fill(acc, 0);
  b.mma(acc, b.all(seen), b.all(w), false, true);
  b.copy(b.all(acc), b.all(y));
  return b.finish();
}

const target::Capabilities& vectors_of_16() {
  static const auto capabilities = [] {
    auto all = *target::capabilities_of("cpu");
    all.vector_bytes = 64;
    all.registers = 32;
    return all;
  }();
  return capabilities;
}

TEST(CpuWindows, WeightsInMemoryAreReadWhereTheyLie) {
  const auto kernel = codegen::emit_cpu(product(32), vectors_of_16());
  ASSERT_TRUE(kernel) << describe(kernel.error());
  EXPECT_NE(kernel->source.find("wl::mma_windows<"), std::string::npos) << kernel->source;
  EXPECT_NE(kernel->source.find("(acc, patch, W, true)"), std::string::npos) << kernel->source;
}

// Whole vectors are read of every row.
TEST(CpuWindows, RowsOfWeightsThatEndWithinAVectorAreRefused) {
  const auto kernel = codegen::emit_cpu(product(20), vectors_of_16());
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kNoInstruction);
}
}  // namespace
}  // namespace warploom
