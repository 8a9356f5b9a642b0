#include <gtest/gtest.h>
#include "base/dtype.h"
#include "base/value_op.h"
#include "examples.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"
#include "verify_fixture.h"

namespace warploom::tile {
namespace {
TEST_F(Verify, AcceptsTheExamples) {
  expect_valid(rowwise_scale(4, 16));
  expect_valid(matmul_with_roles({}));
  expect_valid(matmul_pipelined({}));
  expect_valid(online_softmax(4, 16, 8));
  expect_valid(cluster_softmax(4, 16, 4));
}

// Declarations

TEST_F(Verify, RefusesAnUnusableName) {
  b.reg("9lives", Dtype::f32, {1});
  expect_invalid(b.finish(), "9lives", "identifier");
}

TEST_F(Verify, RefusesAReservedName) {
  b.reg("int", Dtype::f32, {1});
  expect_invalid(b.finish(), "int", "identifier");
}

TEST_F(Verify, RefusesTheNameOfAGridVariable) {
  b.reg("block_x", Dtype::f32, {1});
  expect_invalid(b.finish(), "block_x", "grid variable");
}

TEST_F(Verify, RefusesANameDeclaredTwice) {
  b.reg("X", Dtype::f32, {1});
  expect_invalid(b.finish(), "'X'", "twice");
}

TEST_F(Verify, RefusesAnExtentBelowOne) {
  b.reg("empty", Dtype::f32, {4, 0});
  expect_invalid(b.finish(), "empty", "extent");
}

TEST_F(Verify, RefusesATensorWithoutDimensions) {
  b.reg("scalar", Dtype::f32, {});
  expect_invalid(b.finish(), "scalar", "dimension");
}

TEST_F(Verify, RefusesATensorTooLarge) {
  b.global("huge", Dtype::f32, {1LL << 40, 1LL << 40});
  expect_invalid(b.finish(), "huge", "too large");
}

TEST_F(Verify, RefusesStridesOfAnotherRank) {
  b.global("odd", Dtype::f32, {4, 4}, {1});
  expect_invalid(b.finish(), "odd", "stride");
}

TEST_F(Verify, RefusesAnOutputWhoseElementsShareTheirPlace) {
  b.output("folded", Dtype::f32, {4, 4}, {0, 1});
  expect_invalid(b.finish(), "folded", "stride of 0");
}

TEST_F(Verify, RefusesAGridThatIsNoMultipleOfTheCluster) {
  b.grid(6).cluster(4);
  expect_invalid(b.finish(), "grid", "multiple");
}

TEST_F(Verify, RefusesTooManyWarps) {
  b.warps(33);
  expect_invalid(b.finish(), "warps", "33");
}

TEST_F(Verify, RefusesAPipelineOfRegisterTensors) {
  b.pipeline("ring", 2, {r});
  expect_invalid(b.finish(), "ring", "shared");
}

TEST_F(Verify, RefusesATensorOfTwoPipelines) {
  b.pipeline("one", 2, {stage});
  b.pipeline("two", 2, {stage});
  expect_invalid(b.finish(), "two", "twice");
}

TEST_F(Verify, RefusesAPipelineWithoutStages) {
  b.pipeline("ring", 0, {stage});
  expect_invalid(b.finish(), "ring", "stage");
}

// Tiles and indices

TEST_F(Verify, RefusesATileOfAnotherRank) {
  const int line = (b.copy(b.tile(x, {0}, {16, 16}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "rank");
}

TEST_F(Verify, RefusesATileExtentBelowOne) {
  const int line = (b.copy(b.tile(x, {0, 0}, {16, 0}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "extent");
}

TEST_F(Verify, RefusesATileOutsideASharedTensor) {
  const int line = (b.copy(b.tile(s, {8, 0}, {16, 16}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "outside");
}

TEST_F(Verify, RefusesAnUnknownTensor) {
  const int line = (b.fill(99, 0), __LINE__);
  expect_invalid(b.finish(), line, "99");
}

TEST_F(Verify, RefusesAVariableOutOfScope) {
  const int line = (b.copy(b.tile(x, {Index::variable("k"), 0}, {16, 16}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "'k'");
}

TEST_F(Verify, RefusesADivisorThatALoopChanges) {
  int line = 0;
  b.for_("k", 1, 4, 1, [&](const Index& k) {
    line = (b.copy(b.tile(x, {block(0) / k, 0}, {16, 16}), b.all(r)), __LINE__);
  });
  expect_invalid(b.finish(), line, "divides");
}

TEST_F(Verify, RefusesANegativeDivisor) {
  const int line = (b.copy(b.tile(x, {block(0) / -2, 0}, {16, 16}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "divides");
}

// Statements

TEST_F(Verify, RefusesACopyFromGlobalToGlobal) {
  const int line = (b.copy(b.all(x), b.all(y)), __LINE__);
  expect_invalid(b.finish(), line, "global to global");
}

TEST_F(Verify, RefusesACopyToAnInput) {
  const int line = (b.copy(b.all(r), corner(x)), __LINE__);
  expect_invalid(b.finish(), line, "no output");
}

TEST_F(Verify, RefusesACopyBetweenShapes) {
  const int line = (b.copy(b.tile(x, {0, 0}, {16, 8}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "shape");
}

TEST_F(Verify, AcceptsACopyThatDiffersInExtentsOfOne) {
  const auto v = b.reg("v", Dtype::f32, {16});
  b.copy(b.tile(x, {0, 0}, {16, 1}), b.all(v));
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesFillOfAnythingButRegisters) {
  const int line = (b.fill(s, 0), __LINE__);
  expect_invalid(b.finish(), line, "register");
}

TEST_F(Verify, RefusesMapOverSharedTensors) {
  const int line = (b.map(r, b.value(s) + constant(1)), __LINE__);
  expect_invalid(b.finish(), line, "register");
}

TEST_F(Verify, RefusesAMapThatDoesNotBroadcast) {
  const int line = (b.map(q, b.value(r)), __LINE__);
  expect_invalid(b.finish(), line, "broadcast");
}

TEST_F(Verify, AcceptsAMapThatBroadcasts) {
  b.map(r, b.value(r) - b.value(q));
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesAnOperationWithTheWrongOperands) {
  const int line = (b.map(r, apply(ValueOp::fma, {b.value(r), b.value(r)})), __LINE__);
  expect_invalid(b.finish(), line, "operands");
}

TEST_F(Verify, RefusesAnMmaIntoSharedMemory) {
  const int line = (b.mma(s, b.all(r), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "register");
}

TEST_F(Verify, AcceptsAnMmaThatReadsGlobalMemoryInPlace) {
  b.mma(r, corner(x), b.all(s));
  expect_valid(b.finish());
}

TEST_F(Verify, AcceptsAnMmaOfRowsInGroupsInMemory) {
  const TensorId pairs = b.global("P", Dtype::f32, {8, 2, 16}, {32, 1, 2});
  b.mma(r, b.all(s), b.all(pairs));
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesAnMmaOfRowsInGroupsElsewhere) {
  const TensorId groups = b.shared("groups", Dtype::f32, {8, 2, 16});
  const int line = (b.mma(r, b.all(s), b.all(groups)), __LINE__);
  expect_invalid(b.finish(), line, "shapes");
}

TEST_F(Verify, RefusesAnMmaOfAGatheredOperand) {
  const TensorId indices = b.global("I", Dtype::i32, {64});
  const int line = (b.mma(r, b.gathered(corner(x), 0, indices), b.all(s)), __LINE__);
  expect_invalid(b.finish(), line, "gathered");
}

TEST_F(Verify, RefusesAnMmaOfMixedTypes) {
  const int line = (b.mma(r, b.all(h), b.all(s)), __LINE__);
  expect_invalid(b.finish(), line, "type");
}

TEST_F(Verify, RefusesAnMmaIntoTheWrongType) {
  const auto acc = b.reg("acc", Dtype::bf16, {16, 16});
  const int line = (b.mma(acc, b.all(h), b.all(h)), __LINE__);
  expect_invalid(b.finish(), line, "accumulate");
}

TEST_F(Verify, RefusesAnMmaOfShapesThatDoNotFit) {
  const int line = (b.mma(r, b.tile(s, {0, 0}, {16, 8}), b.all(s)), __LINE__);
  expect_invalid(b.finish(), line, "shapes");
}

TEST_F(Verify, RefusesAnMmaThatReadsItsAccumulator) {
  const int line = (b.mma(r, b.all(r), b.all(s)), __LINE__);
  expect_invalid(b.finish(), line, "operands");
}

TEST_F(Verify, RefusesAReduceIntoTheWrongShape) {
  const int line = (b.reduce(q, r, 0, ReduceOp::sum), __LINE__);
  expect_invalid(b.finish(), line, "shape");
}

TEST_F(Verify, RefusesAReduceOverAMissingAxis) {
  const int line = (b.reduce(q, r, 2, ReduceOp::sum), __LINE__);
  expect_invalid(b.finish(), line, "axis");
}

TEST_F(Verify, RefusesAClusterReduceWithoutACluster) {
  const int line = (b.cluster_reduce(q, ReduceOp::max), __LINE__);
  expect_invalid(b.finish(), line, "without clusters");
}

TEST_F(Verify, RefusesAClusterReduceThatSomeBlocksSkip) {
  b.grid(4).cluster(2);
  int line = 0;
  b.if_less(cluster_rank(), 1, [&] { line = (b.cluster_reduce(q, ReduceOp::max), __LINE__); });
  expect_invalid(b.finish(), line, "every block");
}

TEST_F(Verify, RefusesAStepBelowOne) {
  const int line = (b.for_("k", 0, 4, 0, [](const Index&) {}), __LINE__);
  expect_invalid(b.finish(), line, "step");
}

TEST_F(Verify, RefusesALoopVariableThatShadows) {
  int line = 0;
  b.for_("k", 0, 4, 1,
         [&](const Index&) { line = (b.for_("k", 0, 4, 1, [](const Index&) {}), __LINE__); });
  expect_invalid(b.finish(), line, "'k'");
}

TEST_F(Verify, RefusesALoopVariableNamedLikeTheGrid) {
  const int line = (b.for_("block_y", 0, 4, 1, [](const Index&) {}), __LINE__);
  expect_invalid(b.finish(), line, "block_y");
}

TEST_F(Verify, AcceptsALoopVariableUsedAgainAfterItsLoop) {
  b.for_("k", 0, 4, 1, [](const Index&) {});
  b.for_("k", 0, 4, 1, [](const Index&) {});
  expect_valid(b.finish());
}

TEST_F(Verify, AcceptsGatheredTilesScansAndRearrangements) {
  const auto rows = b.global("rows", Dtype::i64, {40});
  const auto t = b.reg("t", Dtype::f32, {16, 16});
  b.copy(b.gathered(b.tile(x, {3, 0}, {16, 16}), 0, rows), b.all(r));
  b.copy(b.all(r), b.gathered(b.tile(y, {3, 0}, {16, 16}), 1, rows));
  b.add(Scan{r, r, 1, ReduceOp::max});
  b.convert_layout(t, r, true);
  b.map(t, coordinate(1, block(0)));
  expect_valid(b.finish());
}

TEST_F(Verify, AcceptsSeveralDimensionsOfAGlobalTileThatMeetOne) {
  const auto image = b.global("I", Dtype::f32, {3, 64, 64});
  b.copy(b.tile(image, {1, 5, -1}, {1, 16, 16}), b.all(r));
  b.copy(b.tile(image, {0, 0, 0}, {2, 8, 16}), b.all(r));
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesDimensionsThatMeetAcrossEachOther) {
  const auto wide = b.reg("w", Dtype::f32, {8, 32});
  const auto part = b.tile(b.global("I", Dtype::f32, {64, 64}), {0, 0}, {16, 16});
  const int line = (b.copy(part, b.all(wide)), __LINE__);
  expect_invalid(b.finish(), line, "shape");
}

TEST_F(Verify, AcceptsStepsOfAGlobalTile) {
  b.copy(b.stepped(b.tile(x, {-1, 0}, {16, 16}), {2, 3}), b.all(r));
  b.copy(b.all(r), b.stepped(b.tile(y, {3, 0}, {16, 16}), {1, 2}));
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesStepsOfASharedTile) {
  const int line = (b.copy(b.stepped(b.all(s), {2, 1}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "steps");
}

TEST_F(Verify, RefusesStepsBackwards) {
  const int line = (b.copy(b.stepped(b.tile(x, {15, 0}, {16, 16}), {-1, 1}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "steps");
}

TEST_F(Verify, RefusesStepsWhereATileIsGathered) {
  const auto rows = b.global("rows", Dtype::i32, {40});
  const auto stepped = b.stepped(b.tile(x, {0, 0}, {16, 16}), {2, 1});
  const int line = (b.copy(b.gathered(stepped, 0, rows), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "steps");
}

TEST_F(Verify, RefusesToGatherByAnythingButIntegers) {
  const int line = (b.copy(b.gathered(corner(x), 0, x), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "coordinates");
}

TEST_F(Verify, RefusesToGatherFromSharedMemory) {
  const auto rows = b.global("rows", Dtype::i32, {40});
  const int line = (b.copy(b.gathered(b.all(s), 0, rows), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "gathered");
}

TEST_F(Verify, RefusesACoordinateOfAMissingAxis) {
  const int line = (b.map(r, coordinate(2)), __LINE__);
  expect_invalid(b.finish(), line, "axis 2");
}

TEST_F(Verify, RefusesACoordinateOfAnUnknownVariable) {
  const int line = (b.map(r, coordinate(0, Index::variable("k"))), __LINE__);
  expect_invalid(b.finish(), line, "'k'");
}

TEST_F(Verify, RefusesAScanIntoAnotherShape) {
  const int line = (b.add(Scan{q, r, 1, ReduceOp::sum}), __LINE__);
  expect_invalid(b.finish(), line, "scan");
}

TEST_F(Verify, RefusesARearrangementIntoAnotherShape) {
  const auto t = b.reg("t", Dtype::f32, {16, 8});
  const int line = (b.convert_layout(t, r, true), __LINE__);
  expect_invalid(b.finish(), line, "rearrange");
}

TEST_F(Verify, RefusesToReinterpretFloats) {
  const auto t = b.reg("t", Dtype::u8, {16, 64});
  const int line = (b.add(Bitcast{t, r}), __LINE__);
  expect_invalid(b.finish(), line, "reinterpret");
}

TEST_F(Verify, RefusesRowsThatAreNoWholeBytes) {
  b.shared("odd", Dtype::u4, {8, 3});
  expect_invalid(b.finish(), "odd", "whole bytes");
}

TEST_F(Verify, RefusesRegistersThatAreNoWholeBytes) {
  b.reg("odd", Dtype::u4, {3, 3});
  expect_invalid(b.finish(), "odd", "whole bytes");
}

TEST_F(Verify, RefusesATileThatMayBeginWithinAByte) {
  const auto w = b.global("W", Dtype::u4, {16, 64});
  const auto c = b.reg("c", Dtype::u4, {16, 16});
  const int line = (b.copy(b.tile(w, {0, block(0)}, {16, 16}), b.all(c)), __LINE__);
  expect_invalid(b.finish(), line, "byte");
}

}  // namespace
}  // namespace warploom::tile
