#include "tile/interpret.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/value_op.h"
#include "examples.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
std::string report(const Status& status) {
  return status ? "" : describe(status.error());
}

TEST(Interpret, RowwiseProgramScalesEveryRow) {
  const Program program = rowwise_scale(5, 33);
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  for (size_t i = 0; i < 5 * 33; ++i)
    EXPECT_EQ(arrays.get("Y", i), 2 * arrays.get("X", i));
}

double run_matmul(const Program& program, const MatmulShape& shape, uint64_t seed = 1) {
  Arrays arrays(program, seed);
  const Status status = interpret(program, arrays.buffers());
  EXPECT_TRUE(status) << report(status) << print(program);
  return status ? matmul_error(shape, arrays) : 1;
}

TEST(Interpret, MatmulWithRolesEqualsPlainLoops) {
  const MatmulShape shape;
  EXPECT_LT(run_matmul(matmul_with_roles(shape), shape), 1e-6);
}

TEST(Interpret, MatmulWithTransposedOperandEqualsPlainLoops) {
  MatmulShape shape;
  shape.transpose_b = true;
  EXPECT_LT(run_matmul(matmul_with_roles(shape), shape), 1e-6);
}

TEST(Interpret, SoftwarePipelineEqualsPlainLoops) {
  const MatmulShape shape;
  EXPECT_LT(run_matmul(matmul_pipelined(shape), shape), 1e-6);
}

TEST(Interpret, EdgesAreFilledAndClipped) {
  const MatmulShape shape{37, 29, 41, 16, 16, 16, 2, Dtype::f16, false};
  EXPECT_LT(run_matmul(matmul_pipelined(shape), shape), 1e-6);
  EXPECT_LT(run_matmul(matmul_with_roles(shape), shape), 1e-6);
}

TEST(Interpret, OnlineSoftmaxEqualsPlainLoops) {
  const Program program = online_softmax(4, 100, 32);
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  EXPECT_LT(softmax_error(4, 100, arrays), 1e-6);
}

TEST(Interpret, ClusterSoftmaxEqualsPlainLoops) {
  const Program program = cluster_softmax(3, 96, 4);
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  EXPECT_LT(softmax_error(3, 96, arrays), 1e-6);
}

TEST(Interpret, TwoHundredRandomProgramsEqualPlainLoops) {
  Random random(7);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<uint64_t>(high - low + 1)));
  };
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) {
      constexpr Dtype kTypes[] = {Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::tf32};
      const MatmulShape shape{between(1, 40),    between(1, 40),    between(1, 40),
                              2 * between(1, 8), between(1, 16),    between(1, 16),
                              between(1, 4),     kTypes[i / 2 % 4], between(0, 1) == 1};
      const Program program = i % 4 == 0 || shape.stages == 1
                                  ? matmul_with_roles(MatmulShape{
                                        shape.m, shape.n, shape.k, shape.bm, shape.bn, shape.bk,
                                        shape.stages + 1, shape.dtype, shape.transpose_b})
                                  : matmul_pipelined(shape);
      ASSERT_LT(run_matmul(program, shape, static_cast<uint64_t>(i)), 1e-5) << i;
    } else {
      const int64_t rows = between(1, 4);
      const int64_t blocks = between(2, 5);
      const int64_t columns = blocks * between(1, 30);
      const Program program = i % 4 == 1 ? online_softmax(rows, columns, between(1, 40))
                                         : cluster_softmax(rows, columns, blocks);
      Arrays arrays(program, static_cast<uint64_t>(i));
      const Status status = interpret(program, arrays.buffers());
      ASSERT_TRUE(status) << report(status);
      ASSERT_LT(softmax_error(rows, columns, arrays), 1e-6) << i;
    }
  }
}

TEST(Interpret, AccumulationRoundsAtEachStep) {
  Builder b("steps");
  const auto a = b.global("A", Dtype::f32, {1, 3});
  const auto w = b.global("B", Dtype::f32, {3, 1});
  const auto c = b.output("C", Dtype::f32, {1, 1});
  const auto ra = b.reg("ra", Dtype::f32, {1, 3});
  const auto rb = b.reg("rb", Dtype::f32, {3, 1});
  const auto acc = b.reg("acc", Dtype::f32, {1, 1});
  b.copy(b.all(a), b.all(ra));
  b.copy(b.all(w), b.all(rb));
  b.fill(acc, 0x1p24);
  b.mma(acc, b.all(ra), b.all(rb));
  b.copy(b.all(acc), b.all(c));
  const Program program = b.finish();
  Arrays arrays(program);
  for (size_t i = 0; i < 3; ++i) {
    arrays.set("A", i, 1);
    arrays.set("B", i, 1);
  }
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  EXPECT_EQ(arrays.get("C", 0), 0x1p24);  // each 1 is lost by itself; their sum would not be
}

TEST(Interpret, NarrowStoresRoundToNearestEven) {
  Builder b("narrow");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto y = b.output("Y", Dtype::bf16, {2});
  const auto r = b.reg("r", Dtype::bf16, {2});
  b.copy(b.all(x), b.all(r));
  b.copy(b.all(r), b.all(y));
  const Program program = b.finish();
  Arrays arrays(program);
  arrays.set("X", 0, 1 + 0x1p-8);
  arrays.set("X", 1, 1 + 3 * 0x1p-8);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  EXPECT_EQ(arrays.get("Y", 0), 1.0);
  EXPECT_EQ(arrays.get("Y", 1), 1 + 0x1p-6);
}

TEST(Interpret, StridesAreTheCallers) {
  Builder b("strided");
  const auto x = b.global("X", Dtype::f32, {2, 3}, {1, 2});  // stored transposed
  const auto y = b.output("Y", Dtype::f32, {2, 3}, {4, 1});  // padded rows
  const auto r = b.reg("r", Dtype::f32, {2, 3});
  b.copy(b.all(x), b.all(r));
  b.copy(b.all(r), b.all(y));
  const Program program = b.finish();
  Arrays arrays(program);
  arrays.set("Y", 3, 42);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      EXPECT_EQ(arrays.get("Y", 4 * i + j), arrays.get("X", i + 2 * j));
  EXPECT_EQ(arrays.get("Y", 3), 42);
}

TEST(Interpret, SteppedTilesTakeEverySoManyThElement) {
  Builder b("stepped");
  const auto x = b.global("X", Dtype::f32, {5, 7});
  const auto y = b.output("Y", Dtype::f32, {2, 4});
  const auto z = b.output("Z", Dtype::f32, {8});
  const auto r = b.reg("r", Dtype::f32, {2, 4});
  b.copy(b.stepped(b.tile(x, {1, -2}, {2, 4}), {2, 3}), b.all(r),
         7);  // rows 1 and 3, columns -2, 1, 4 and 7
  b.copy(b.all(r), b.all(y));
  b.copy(b.tile(r, {1, 1}, {1, 2}), b.stepped(b.tile(z, {1}, {2}), {4}));
  const Program program = b.finish();
  Arrays arrays(program);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  const double expected[] = {7, arrays.get("X", 8),  arrays.get("X", 11), 7,
                             7, arrays.get("X", 22), arrays.get("X", 25), 7};
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(arrays.get("Y", i), expected[i]) << i;
  EXPECT_EQ(arrays.get("Z", 1), expected[5]);
  EXPECT_EQ(arrays.get("Z", 5), expected[6]);
}

TEST(Interpret, CoordinatesBelowZeroCountFromTheEnd) {
  Builder b("gather");
  const auto rows = b.global("rows", Dtype::i64, {3});
  const auto x = b.global("X", Dtype::f32, {4});
  const auto y = b.output("Y", Dtype::f32, {3});
  const auto r = b.reg("r", Dtype::f32, {3});
  b.copy(b.gathered(b.tile(x, {0}, {3}), 0, rows), b.all(r), 7);
  b.copy(b.all(r), b.all(y));
  const Program program = b.finish();
  Arrays arrays(program);
  const double indices[] = {-1, -4, -5};  // the last lies before the first row
  for (size_t i = 0; i < 3; ++i)
    arrays.set("rows", i, indices[i]);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  EXPECT_EQ(arrays.get("Y", 0), arrays.get("X", 3));
  EXPECT_EQ(arrays.get("Y", 1), arrays.get("X", 0));
  EXPECT_EQ(arrays.get("Y", 2), 7);
}

TEST(Interpret, GatheredRowsAreReadWhereTheIndicesPointAndElseFilled) {
  Builder b("gather");
  const auto rows = b.global("rows", Dtype::i32, {3});
  const auto x = b.global("X", Dtype::f32, {4, 2});
  const auto y = b.output("Y", Dtype::f32, {5, 2});
  const auto z = b.output("Z", Dtype::f32, {4, 2});
  const auto r = b.reg("r", Dtype::f32, {5, 2});
  b.copy(b.gathered(b.tile(x, {-1, 0}, {5, 2}), 0, rows), b.all(r), 7);
  b.copy(b.all(r), b.all(y));
  b.copy(b.all(r), b.gathered(b.tile(z, {-1, 0}, {5, 2}), 0, rows));
  const Program program = b.finish();
  Arrays arrays(program);
  const double indices[] = {3, 4, 1};  // rows -1 and 3 of `rows`, and row 4 of X, do not exist
  for (size_t i = 0; i < 3; ++i)
    arrays.set("rows", i, indices[i]);
  const double untouched = arrays.get("Z", 0);
  const Status status = interpret(program, arrays.buffers());
  ASSERT_TRUE(status) << report(status);
  EXPECT_EQ(arrays.get("Y", 0), 7);
  EXPECT_EQ(arrays.get("Y", 3), arrays.get("X", 7));
  EXPECT_EQ(arrays.get("Y", 4), 7);
  EXPECT_EQ(arrays.get("Y", 6), arrays.get("X", 2));
  EXPECT_EQ(arrays.get("Y", 8), 7);
  EXPECT_EQ(arrays.get("Z", 7), arrays.get("X", 7));
  EXPECT_EQ(arrays.get("Z", 0), untouched);
}

TEST(Interpret, AMaskComparesCoordinates) {
  Builder b("mask");
  b.grid(2);
  const auto y = b.output("Y", Dtype::f32, {2, 3});
  const auto r = b.reg("r", Dtype::f32, {1, 3});
  b.map(r, apply(ValueOp::less, {coordinate(0, block(0)), coordinate(1)}));
  b.copy(b.all(r), b.tile(y, {block(0), 0}, {1, 3}));
  const Program program = b.finish();
  Arrays arrays(program);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(arrays.get("Y", i), i / 3 < i % 3 ? 1 : 0) << i;
}

TEST(Interpret, ScansInReverseBeginAtTheEnd) {
  Builder b("scan");
  const auto x = b.global("X", Dtype::f32, {3, 4});
  const auto y = b.output("Y", Dtype::f32, {3, 4});
  const auto z = b.output("Z", Dtype::f32, {3, 4});
  const auto r = b.reg("r", Dtype::f32, {3, 4});
  const auto s = b.reg("s", Dtype::f32, {3, 4});
  b.copy(b.all(x), b.all(r));
  b.scan(s, r, 1, ReduceOp::sum, true);
  b.copy(b.all(s), b.all(y));
  b.scan(s, r, 0, ReduceOp::max, true);
  b.copy(b.all(s), b.all(z));
  const Program program = b.finish();
  Arrays arrays(program);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  for (size_t i = 3; i-- > 0;) {
    float sum = 0;
    for (size_t j = 4; j-- > 0;) {
      sum += static_cast<float>(arrays.get("X", 4 * i + j));
      EXPECT_EQ(arrays.get("Y", 4 * i + j), sum);
      double most = -HUGE_VAL;
      for (size_t k = i; k < 3; ++k)
        most = std::fmax(most, arrays.get("X", 4 * k + j));
      EXPECT_EQ(arrays.get("Z", 4 * i + j), most);
    }
  }
}

TEST(Interpret, ScansKeepEveryPrefix) {
  Builder b("scan");
  const auto x = b.global("X", Dtype::f32, {3, 4});
  const auto y = b.output("Y", Dtype::f32, {3, 4});
  const auto z = b.output("Z", Dtype::f32, {4, 3});
  const auto r = b.reg("r", Dtype::f32, {3, 4});
  const auto s = b.reg("s", Dtype::f32, {3, 4});
  const auto t = b.reg("t", Dtype::f32, {4, 3});
  b.copy(b.all(x), b.all(r));
  b.add(Scan{s, r, 1, ReduceOp::sum});
  b.copy(b.all(s), b.all(y));
  b.add(Scan{r, r, 0, ReduceOp::min});
  b.convert_layout(t, r, true);
  b.copy(b.all(t), b.all(z));
  const Program program = b.finish();
  Arrays arrays(program);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  for (size_t i = 0; i < 3; ++i) {
    float sum = 0;
    for (size_t j = 0; j < 4; ++j) {
      sum += static_cast<float>(arrays.get("X", 4 * i + j));
      EXPECT_EQ(arrays.get("Y", 4 * i + j), sum);
      double least = HUGE_VAL;
      for (size_t k = 0; k <= i; ++k)
        least = std::fmin(least, arrays.get("X", 4 * k + j));
      EXPECT_EQ(arrays.get("Z", 3 * j + i), least);
    }
  }
}

TEST(Interpret, ElementsOfLessThanAByteArePackedRoundedAndSaturated) {
  Builder b("packed");
  const auto x = b.global("X", Dtype::f32, {1, 8});
  const auto y = b.output("Y", Dtype::u4, {1, 8});
  const auto z = b.output("Z", Dtype::u8, {1, 4});
  const auto r = b.reg("r", Dtype::u4, {1, 8});
  const auto bytes = b.reg("bytes", Dtype::u8, {1, 4});
  b.copy(b.all(x), b.all(r));
  b.copy(b.all(r), b.all(y));
  b.add(Bitcast{bytes, r});
  b.copy(b.all(bytes), b.all(z));
  const Program program = b.finish();
  Arrays arrays(program);
  const double values[] = {0.5, 1.5, 14.5, 16, -3, NAN, 7, 8};
  const double codes[] = {0, 2, 14, 15, 0, 0, 7, 8};
  for (size_t i = 0; i < 8; ++i)
    arrays.set("X", i, values[i]);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(arrays.get("Y", i), codes[i]) << i;
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(arrays.get("Z", i), codes[2 * i] + 16 * codes[2 * i + 1]) << i;
}

TEST(Interpret, ReadingTheUnwrittenNamesTheElement) {
  Builder b("unwritten");
  const auto y = b.output("Y", Dtype::f32, {4});
  const auto r = b.reg("r", Dtype::f32, {4});
  const auto s = b.shared("s", Dtype::f32, {4});
  b.fill(r, 1);
  b.copy(b.tile(r, {0}, {3}), b.tile(s, {0}, {3}));
  const int line = (b.copy(b.all(s), b.all(y)), __LINE__);
  expect_undefined(b.finish(), line, "s[3]");
}

TEST(Interpret, AVariableOffsetOutsideASharedTensorIsUndefined) {
  Builder b("outside");
  b.grid(3);
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {4});
  const int line = (b.copy(b.all(x), b.tile(s, {block(0) * 2}, {2})), __LINE__);
  expect_undefined(b.finish(), line, "s[4]");
}

TEST(Interpret, ConsumingAnEmptyPipelineIsUndefined) {
  Builder b("empty");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const auto p = b.pipeline("p", 2, {s});
  b.produce(p, [&] { b.copy(b.all(x), b.all(s)); });
  b.consume(p, 0, [] {});
  const int line = (b.consume(p, 0, [] {}), __LINE__);
  expect_undefined(b.finish(), line, "'p'");
}

TEST(Interpret, ProducingMoreThanAllStagesInOneThreadIsUndefined) {
  Builder b("full");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const auto p = b.pipeline("p", 1, {s});
  b.produce(p, [&] { b.copy(b.all(x), b.all(s)); });
  const int line = (b.produce(p, [&] { b.copy(b.all(x), b.all(s)); }), __LINE__);
  b.consume(p, 0, [] {});
  expect_undefined(b.finish(), line, "'p'");
}

TEST(Interpret, SlotsOfAnotherRoleThatNobodyConsumesAreUndefined) {
  Builder b("leftover");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const auto p = b.pipeline("p", 2, {s});
  const auto produce = [&](const Index&) { b.produce(p, [&] { b.copy(b.all(x), b.all(s)); }); };
  int line = 0;
  b.roles([&] {
    b.role("producer", 4, 0, [&] { b.for_("k", 0, 2, 1, produce); });
    b.role("consumer", 4, 0, [&] { line = (b.consume(p, 0, [] {}), __LINE__); });
  });
  expect_undefined(b.finish(), line, "'p'");
}

TEST(Interpret, OneThreadOfControlMayPrefetchPastItsLoop) {
  Builder b("ahead");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const auto p = b.pipeline("p", 2, {s});
  b.for_("k", 0, 2, 1, [&](const Index&) { b.produce(p, [&] { b.copy(b.all(x), b.all(s)); }); });
  b.consume(p, 0, [] {});
  const Program program = b.finish();
  Arrays arrays(program);
  EXPECT_TRUE(interpret(program, arrays.buffers()).has_value());
}

TEST(Interpret, OneThreadOfControlMayPrefetchForALoopWithoutTurns) {
  Builder b("none");
  const auto x = b.global("X", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {2});
  const auto p = b.pipeline("p", 2, {s});
  b.produce(p, [&] { b.copy(b.all(x), b.all(s)); });
  b.for_("k", 0, block(0), 1, [&](const Index&) { b.consume(p, 0, [] {}); });
  const Program program = b.finish();
  Arrays arrays(program);
  EXPECT_TRUE(interpret(program, arrays.buffers()).has_value());
}

TEST(Interpret, CombiningCopiesMeetInOneElement) {
  Builder b("sums");
  b.grid(4);
  const auto x = b.global("X", Dtype::f32, {4});
  const auto sum = b.zeroed(b.output("sum", Dtype::f32, {1}));
  const auto most = b.zeroed(b.output("most", Dtype::i32, {1}));
  const auto r = b.reg("r", Dtype::f32, {1});
  const auto n = b.reg("n", Dtype::i32, {1});
  b.copy(b.tile(x, {block(0)}, {1}), b.all(r));
  b.add(Copy{.src = b.all(r), .dst = b.all(sum), .combine = ReduceOp::sum});
  b.copy(b.all(r), b.all(n));
  b.add(Copy{.src = b.all(n), .dst = b.all(most), .combine = ReduceOp::max});
  const Program program = b.finish();
  Arrays arrays(program);
  for (size_t i = 0; i < 4; ++i)
    arrays.set("X", i, 7 - static_cast<double>(i));
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  EXPECT_EQ(arrays.get("sum", 0), 7 + 6 + 5 + 4);
  EXPECT_EQ(arrays.get("most", 0), 7);
}

// Block 0 holds 1 and block 1 holds 5; each stores what the peer holds.
std::pair<Program, int> from_peer(const Index& rank) {
  Builder b("peers");
  b.grid(2).cluster(2);
  const auto y = b.output("Y", Dtype::f32, {2});
  const auto s = b.shared("s", Dtype::f32, {1});
  const auto r = b.reg("r", Dtype::f32, {1});
  b.fill(r, 1);
  b.if_less(0, block(0), [&] { b.fill(r, 5); });
  b.copy(b.all(r), b.all(s));
  b.add(ClusterSync{});
  const int line = (b.add(Copy{.src = b.all(s), .dst = b.all(r), .peer = rank}), __LINE__);
  b.copy(b.all(r), b.tile(y, {block(0)}, {1}));
  return {b.finish(), line};
}

TEST(Interpret, APeersTileIsReadFromItsOwnMemory) {
  const Program program = from_peer(1 - cluster_rank()).first;
  Arrays arrays(program);
  ASSERT_TRUE(interpret(program, arrays.buffers()));
  EXPECT_EQ(arrays.get("Y", 0), 5);
  EXPECT_EQ(arrays.get("Y", 1), 1);
}

TEST(Interpret, APeerOutsideTheClusterIsUndefined) {
  const auto [program, line] = from_peer(cluster_rank() + 1);
  expect_undefined(program, line, "peer");
}

TEST(Interpret, BlocksOfACooperativeProgramWaitForEachOther) {
  for (const int least : {3, 4}) {
    Builder b("meeting");
    b.grid(3).cooperative();
    const auto flag = b.zeroed(b.output("flag", Dtype::i32, {1}));
    const auto parts = b.output("parts", Dtype::f32, {3});
    const auto sums = b.output("sums", Dtype::f32, {3});
    const auto own = b.reg("own", Dtype::f32, {1});
    const auto all = b.reg("all", Dtype::f32, {3});
    b.map(own, coordinate(0, block(0) + 1));
    b.copy(b.all(own), b.tile(parts, {block(0)}, {1}));
    b.add(Signal{b.all(flag), 1});
    const int line = (b.add(Wait{b.all(flag), least}), __LINE__);
    b.copy(b.all(parts), b.all(all));
    b.reduce(own, all, 0, ReduceOp::sum);
    b.copy(b.all(own), b.tile(sums, {block(0)}, {1}));
    const Program program = b.finish();
    if (least > 3) expect_undefined(program, line, "no block ends");
    Arrays arrays(program);
    ASSERT_EQ(interpret(program, arrays.buffers()).has_value(), least == 3);
    for (size_t i = 0; i < 3 && least == 3; ++i)
      EXPECT_EQ(arrays.get("sums", i), 6);
  }
}
}  // namespace
}  // namespace warploom::tile
