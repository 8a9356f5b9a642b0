// Inputs as a GPU draws them (resources/truth/draw.cu): the bytes that fill() makes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/track.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
namespace {
using graph::Builder, graph::OpKind;

class TruthDraws : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    if (runtime::find_cpu_compiler()) device_ = *runtime::Executor::open(Engine::cpu);
  }

  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "no C++ compiler here";
  }

  // An input of a type, of every family, is drawn as fill() writes it.
  static void expect_bytes(Dtype dtype, int64_t elements, const graph::Range& range = {},
                           int64_t row = 0) {
    Builder builder("drawn");
    const graph::Shape shape = row > 0 ? graph::Shape{elements / row, row} : graph::Shape{elements};
    const auto x = builder.input("x", dtype, shape);
    builder.output(builder.add(OpKind::Cast, {x}, {{"to", int64_t{11}}}));
    const auto graph = builder.finish();
    ASSERT_TRUE(graph) << describe(graph.error());
    const graph::Ranges ranges = {{"x", range}};
    auto engine = TruthEngine::make(*device_, *graph, Track::fp32, ranges);
    ASSERT_TRUE(engine) << describe(engine.error());
    for (const InputFamily family : input_families()) {
      ASSERT_TRUE((*engine)->draw(0, family, 7));
      const Stream stream = streams_of(*graph, family, 7, ranges)[0];
      std::vector<std::byte> wanted(static_cast<size_t>(bytes_of(dtype, elements)));
      fill(stream, wanted.data(), 0, elements);
      const auto* const found = static_cast<const std::byte*>((*engine)->tensors(0)[0].address());
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_EQ(found[i], wanted[i]) << name_of(dtype) << ", " << name_of(family) << ", element "
                                       << i / static_cast<size_t>(bytes_of(dtype));
    }
  }

  inline static ScratchFolder cache_{"truth-draw-test"};
  inline static std::unique_ptr<runtime::Executor> device_;
};

constexpr Dtype kTypes[] = {Dtype::f64,  Dtype::f32,  Dtype::bf16,   Dtype::f16,
                            Dtype::e4m3, Dtype::e5m2, Dtype::i64,    Dtype::i32,
                            Dtype::i8,   Dtype::u8,   Dtype::boolean};

TEST_F(TruthDraws, OfFewElementsAreFillsBytes) {
  for (const Dtype dtype : kTypes)
    expect_bytes(dtype, 5);
}

TEST_F(TruthDraws, OfManyElementsAreFillsBytes) {
  for (const Dtype dtype : kTypes)
    expect_bytes(dtype, 20'000);
}

TEST_F(TruthDraws, OfSeveralBlocksAreFillsBytes) {
  expect_bytes(Dtype::f32, (2 << 20) + 77);
}

TEST_F(TruthDraws, OfRowsThatLieInTwoBlocksAreFillsBytes) {
  for (const int64_t row : {1, 7, 1000})
    expect_bytes(Dtype::f32, 7000 * 151, {}, row);
  expect_bytes(Dtype::f16, 7000, {}, 7);
}

TEST_F(TruthDraws, OfARangeWithTwoEndsAreFillsBytes) {
  for (const Dtype dtype : {Dtype::f32, Dtype::i64, Dtype::i8})
    expect_bytes(dtype, 3000, {.low = -3, .high = 90});
}

TEST_F(TruthDraws, OfARangeWithOneEndAreFillsBytes) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::i32})
    expect_bytes(dtype, 3000, {.low = 0.5});
}

TEST_F(TruthDraws, OfNumbersThatAreNotZeroAreFillsBytes) {
  expect_bytes(Dtype::i32, 3000, {.nonzero = true});
}
}  // namespace
}  // namespace warploom::verify
