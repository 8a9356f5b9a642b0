#include "tile/verify.h"
#include <gtest/gtest.h>
#include "examples.h"

namespace warploom::tile {
namespace {
std::string report(const Status& status) {
  return status ? "" : describe(status.error());
}

void expect_valid(const Program& program) {
  const Status status = verify(program);
  EXPECT_TRUE(status) << report(status);
}

// Refused at a statement of this file, for the reason that a word of the message gives.
void expect_invalid(const Program& program, int line, const std::string& word) {
  const Status status = verify(program);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
  EXPECT_TRUE(status.error().place.ends_with(fmt::format("verify_test.cpp:{}", line)))
      << report(status);
  EXPECT_NE(status.error().message.find(word), std::string::npos) << report(status);
}

// Refused at a declaration.
void expect_invalid(const Program& program, const std::string& place, const std::string& word) {
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
  TensorId slot = b.shared("slot", Dtype::f32, {16, 16});

  Tile corner(TensorId id) { return b.tile(id, {0, 0}, {16, 16}); }

  PipelineId ring(int stages = 2) { return b.pipeline("ring", stages, {slot}); }

  void produce(PipelineId p) {
    b.produce(p, [&] { b.copy(corner(x), b.all(slot)); });
  }

  void consume(PipelineId p) {
    b.consume(p, 0, [&] { b.copy(b.all(slot), b.all(r)); });
  }
};

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
  b.pipeline("one", 2, {slot});
  b.pipeline("two", 2, {slot});
  expect_invalid(b.finish(), "two", "twice");
}

TEST_F(Verify, RefusesAPipelineWithoutStages) {
  b.pipeline("ring", 0, {slot});
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

TEST_F(Verify, RefusesAnMmaFromGlobalMemory) {
  const int line = (b.mma(r, corner(x), b.all(s)), __LINE__);
  expect_invalid(b.finish(), line, "global");
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

// What blocks share

TEST_F(Verify, AcceptsAMulticastOfWhatBlocksAlongItShare) {
  b.grid(4, 4).cluster(2, 2);
  const auto p = ring();
  b.for_("tile", block(0) / 2, 8, 2, [&](const Index& tile) {
    const Index row = tile * 2 + block(0) % 2;
    const Index column = block(1) / 2;
    b.produce(p, [&] {
      b.multicast(b.tile(x, {row * 16, 0}, {16, 16}), b.all(slot), "y");
      b.multicast(b.tile(x, {column * 16, block(1) * 16}, {16, 16}), b.all(slot), "x");
      b.multicast(b.tile(x, {tile * 16, column * 16}, {16, 16}), b.all(slot), "xy");
    });
    consume(p);
  });
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesAMulticastOfWhatBlocksMayReadDifferently) {
  for (const Index& row : {block(0), cluster_rank(), block(0) / 3, block(0) % 2}) {
    Builder own("program");
    own.grid(12).cluster(2);
    const auto a = own.global("A", Dtype::f32, {64, 64});
    const auto to = own.shared("s", Dtype::f32, {16, 16});
    int line = 0;
    own.produce(own.pipeline("p", 2, {to}), [&] {
      line = (own.multicast(own.tile(a, {row * 16, 0}, {16, 16}), own.all(to), "x"), __LINE__);
    });
    expect_invalid(own.finish(), line, "different tiles");
  }
}

TEST_F(Verify, RefusesAMulticastThatSomeBlocksSkip) {
  b.grid(4).cluster(2);
  const auto p = ring();
  int line = 0;
  b.for_("k", block(0), 8, 4, [&](const Index&) {
    b.produce(p, [&] { line = (b.multicast(corner(x), b.all(slot), "x"), __LINE__); });
  });
  expect_invalid(b.finish(), line, "every block");
}

TEST_F(Verify, RefusesAMulticastOutsideAProduce) {
  const int line = (b.multicast(corner(x), b.all(s), "x"), __LINE__);
  expect_invalid(b.finish(), line, "outside a produce");
}

TEST_F(Verify, RefusesAMulticastAlongNoDimension) {
  for (const char* along : {"w", "yx", "xx"}) {
    Builder own("program");
    const auto a = own.global("A", Dtype::f32, {16});
    const auto to = own.shared("s", Dtype::f32, {16});
    int line = 0;
    own.produce(own.pipeline("p", 2, {to}),
                [&] { line = (own.multicast(own.all(a), own.all(to), along), __LINE__); });
    expect_invalid(own.finish(), line, "dimensions of a cluster");
  }
}

TEST_F(Verify, RefusesToCombineOutsideGlobalMemory) {
  const int line =
      (b.add(Copy{.src = b.all(r), .dst = b.all(s), .combine = ReduceOp::sum}), __LINE__);
  expect_invalid(b.finish(), line, "cannot combine");
}

TEST_F(Verify, RefusesATypeThatCannotCombine) {
  const auto halves = b.output("halves", Dtype::bf16, {16, 16});
  b.add(Copy{.src = b.all(h), .dst = b.all(halves), .combine = ReduceOp::sum});
  const int line =
      (b.add(Copy{.src = b.all(h), .dst = b.all(halves), .combine = ReduceOp::max}), __LINE__);
  expect_invalid(b.finish(), line, "cannot combine");
}

TEST_F(Verify, RefusesAFlagThatIsNone) {
  const auto flags = b.output("flags", Dtype::i32, {4});
  const auto given = b.global("given", Dtype::i32, {4});
  b.cooperative();
  b.add(Signal{b.tile(flags, {1}, {1}), 1});
  b.add(Wait{b.tile(given, {1}, {1}), 1});
  for (const Tile& tile : {b.tile(flags, {0}, {2}), b.tile(y, {0, 0}, {1, 1})}) {
    Builder own = b;
    const int line = (own.add(Signal{tile, 1}), __LINE__);
    expect_invalid(own.finish(), line, "no such flag");
  }
  const int line = (b.add(Signal{b.tile(given, {1}, {1}), 1}), __LINE__);
  expect_invalid(b.finish(), line, "no such flag");
}

TEST_F(Verify, RefusesAWaitAmongBlocksThatNeedNotRunTogether) {
  const auto flags = b.output("flags", Dtype::i32, {4});
  const int line = (b.add(Wait{b.tile(flags, {1}, {1}), 1}), __LINE__);
  expect_invalid(b.finish(), line, "same time");
}

TEST_F(Verify, AcceptsCopiesFromAPeer) {
  b.grid(4).cluster(2);
  b.add(ClusterSync{});
  b.add(Copy{.src = b.all(s), .dst = b.all(r), .peer = 1 - cluster_rank()});
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesAPeerWithoutAClusterOrOutsideSharedMemory) {
  Builder own = b;
  int line = (own.add(Copy{.src = own.all(s), .dst = own.all(r), .peer = 0}), __LINE__);
  expect_invalid(own.finish(), line, "peer");
  b.grid(4).cluster(2);
  line = (b.add(Copy{.src = corner(x), .dst = b.all(r), .peer = 0}), __LINE__);
  expect_invalid(b.finish(), line, "peer");
}

TEST_F(Verify, RefusesAClusterSyncOfSomeThreadsOrSomeBlocks) {
  b.grid(4).cluster(2);
  Builder own = b;
  int line = 0;
  b.roles([&] { b.role("one", 4, 0, [&] { line = (b.add(ClusterSync{}), __LINE__); }); });
  expect_invalid(b.finish(), line, "some threads");
  own.if_less(block(0), 2, [&] { line = (own.add(ClusterSync{}), __LINE__); });
  expect_invalid(own.finish(), line, "every block");
}

TEST_F(Verify, RefusesAZeroedInput) {
  b.zeroed(x);
  expect_invalid(b.finish(), "'X'", "zeroed");
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

// Packed tensors

struct VerifyPacked : Verify {
  TensorId w = b.prepacked(b.global("W", Dtype::u4, {32, 64}));
  TensorId codes = b.reg("codes", Dtype::u4, {16, 16});

  Tile tile(const Index& row, const Index& column) { return b.tile(w, {row, column}, {16, 16}); }
};

TEST_F(VerifyPacked, AcceptsTilesOnAGrid) {
  b.for_("k", 0, 64, 16, [&](const Index& k) { b.copy(tile(block(0) * 16, k), b.all(codes)); });
  b.for_("j", block(0) * 2, 9, 3,
         [&](const Index& j) { b.copy(tile(16, min(j * 32, 32) - 16), b.all(codes)); });
  expect_valid(b.finish());
}

TEST_F(VerifyPacked, RefusesAnOutput) {
  b.prepacked(y);
  expect_invalid(b.finish(), "'Y'", "packed");
}

TEST_F(VerifyPacked, RefusesASharedTensor) {
  b.prepacked(s);
  expect_invalid(b.finish(), "'s'", "packed");
}

TEST_F(VerifyPacked, RefusesStrides) {
  b.prepacked(b.global("turned", Dtype::f32, {16, 16}, {1, 16}));
  expect_invalid(b.finish(), "'turned'", "strides");
}

TEST_F(VerifyPacked, RefusesACopyToSharedMemory) {
  const auto slot4 = b.shared("slot4", Dtype::u4, {16, 16});
  const int line = (b.copy(tile(0, 0), b.all(slot4)), __LINE__);
  expect_invalid(b.finish(), line, "registers");
}

TEST_F(VerifyPacked, RefusesATileThatTakesSteps) {
  const auto p = b.prepacked(b.global("P", Dtype::f32, {64, 64}));
  const int line = (b.copy(b.stepped(b.tile(p, {0, 0}, {16, 16}), {2, 1}), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "packed");
}

TEST_F(VerifyPacked, RefusesAGatheredTile) {
  const auto rows = b.global("R", Dtype::i32, {64});
  const int line = (b.copy(b.gathered(tile(0, 0), 0, rows), b.all(codes)), __LINE__);
  expect_invalid(b.finish(), line, "packed");
}

TEST_F(VerifyPacked, RefusesToGatherByIt) {
  const auto rows = b.prepacked(b.global("R", Dtype::i32, {64}));
  const int line = (b.copy(b.gathered(corner(x), 0, rows), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "packed");
}

TEST_F(VerifyPacked, RefusesToWaitForIt) {
  b.cooperative();
  const auto flag = b.prepacked(b.global("F", Dtype::i32, {64}));
  const int line = (b.add(Wait{b.tile(flag, {0}, {1}), 1}), __LINE__);
  expect_invalid(b.finish(), line, "packed");
}

TEST_F(VerifyPacked, RefusesAnExtentThatDoesNotDivideTheTensor) {
  const auto wide = b.reg("wide", Dtype::u4, {16, 48});
  const int line = (b.copy(b.tile(w, {0, 0}, {16, 48}), b.all(wide)), __LINE__);
  expect_invalid(b.finish(), line, "no tile of the grid");
}

TEST_F(VerifyPacked, RefusesAnOffsetThatMayLieBetweenTiles) {
  const int line = (b.copy(tile(block(0) * 8, 0), b.all(codes)), __LINE__);
  expect_invalid(b.finish(), line, "no tile of the grid");
}

TEST_F(VerifyPacked, RefusesALoopThatBeginsBetweenTiles) {
  int line = 0;
  b.for_("k", 8, 64, 16,
         [&](const Index& k) { line = (b.copy(tile(0, k), b.all(codes)), __LINE__); });
  expect_invalid(b.finish(), line, "no tile of the grid");
}

TEST_F(VerifyPacked, RefusesTilesOfTwoShapes) {
  const auto half = b.reg("half", Dtype::u4, {8, 16});
  const int line = (b.copy(tile(0, 0), b.all(codes)), __LINE__);
  b.copy(b.tile(w, {16, 0}, {8, 16}), b.all(half));
  expect_invalid(b.finish(), line, "no tile of the grid");
}

TEST_F(VerifyPacked, RefusesTilesThatAreNoWholeBytes) {
  const auto odd = b.prepacked(b.global("odd", Dtype::u4, {3, 6}));
  const auto three = b.reg("three", Dtype::u4, {3, 2});
  const int line = (b.copy(b.tile(odd, {0, 0}, {3, 1}), b.all(three)), __LINE__);
  expect_invalid(b.finish(), line, "no tile of the grid");
}

// Pipelines

TEST_F(Verify, RefusesASlotUsedOutsideItsPipeline) {
  const auto p = ring();
  produce(p);
  consume(p);
  const int line = (b.copy(b.all(slot), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "outside");
}

TEST_F(Verify, RefusesWritingASlotThatIsConsumed) {
  const auto p = ring();
  produce(p);
  int line = 0;
  b.consume(p, 0, [&] { line = (b.copy(b.all(r), b.all(slot)), __LINE__); });
  expect_invalid(b.finish(), line, "written");
}

TEST_F(Verify, RefusesComputingInsideProduce) {
  const auto p = ring();
  int line = 0;
  b.produce(p, [&] { line = (b.fill(r, 0), __LINE__); });
  expect_invalid(b.finish(), line, "produce");
}

TEST_F(Verify, RefusesAPipelineInsideItself) {
  const auto p = ring();
  int line = 0;
  b.consume(p, 0, [&] { line = (b.consume(p, 0, [] {}), __LINE__); });
  expect_invalid(b.finish(), line, "inside itself");
}

TEST_F(Verify, RefusesALagOfAllStages) {
  const auto p = ring(2);
  produce(p);
  const int line = (b.consume(p, 2, [] {}), __LINE__);
  expect_invalid(b.finish(), line, "lag");
}

TEST_F(Verify, RefusesAPipelineThatIsNeverProduced) {
  const auto p = ring();
  const int line = (b.consume(p, 0, [] {}), __LINE__);
  expect_invalid(b.finish(), line, "never produced");
}

TEST_F(Verify, RefusesAPipelineThatIsNeverConsumed) {
  const auto p = ring();
  const int line = (b.produce(p, [] {}), __LINE__);
  expect_invalid(b.finish(), line, "never consumed");
}

// Roles

TEST_F(Verify, RefusesRolesInsideAStatement) {
  int line = 0;
  b.if_less(0, 1, [&] { line = (b.roles([&] { b.role("one", 4, 0, [] {}); }), __LINE__); });
  expect_invalid(b.finish(), line, "inside another");
}

TEST_F(Verify, RefusesAStatementAfterTheRoles) {
  b.roles([&] { b.role("one", 4, 0, [] {}); });
  const int line = (b.fill(r, 0), __LINE__);
  expect_invalid(b.finish(), line, "follows");
}

TEST_F(Verify, RefusesRegistersOfAnUnevenRole) {
  const int line = (b.roles([&] { b.role("one", 3, 40, [] {}); }), __LINE__);
  expect_invalid(b.finish(), line, "registers");
}

TEST_F(Verify, RefusesMoreWarpsThanABlockHolds) {
  b.roles([&] {
    b.role("one", 20, 0, [] {});
    b.role("two", 20, 0, [] {});
  });
  expect_invalid(b.finish(), "warps", "40");
}

TEST_F(Verify, RefusesTwoProducingRoles) {
  const auto p = ring();
  int line = 0;
  b.roles([&] {
    b.role("one", 4, 0, [&] {
      b.produce(p, [] {});
      b.consume(p, 0, [] {});
    });
    b.role("two", 4, 0, [&] { line = (b.produce(p, [] {}), __LINE__); });
  });
  expect_invalid(b.finish(), line, "more than one");
}

TEST_F(Verify, RefusesAConsumerListedBeforeItsProducer) {
  const auto p = ring();
  int line = 0;
  b.roles([&] {
    b.role("one", 4, 0, [&] { b.consume(p, 0, [] {}); });
    b.role("two", 4, 0, [&] { line = (b.produce(p, [] {}), __LINE__); });
  });
  expect_invalid(b.finish(), line, "before the role");
}

TEST_F(Verify, RefusesAPipelineUsedBeforeTheRoles) {
  const auto p = ring();
  int line = 0;
  b.produce(p, [] {});
  b.roles([&] { b.role("one", 4, 0, [&] { line = (b.consume(p, 0, [] {}), __LINE__); }); });
  expect_invalid(b.finish(), line, "before the roles");
}

TEST_F(Verify, RefusesARegisterTensorOfTwoRoles) {
  int line = 0;
  b.roles([&] {
    b.role("one", 4, 0, [&] { b.fill(r, 0); });
    b.role("two", 4, 0, [&] { line = (b.copy(b.all(r), corner(y)), __LINE__); });
  });
  expect_invalid(b.finish(), line, "more than one role");
}

TEST_F(Verify, RefusesRolesThatMeetInSharedMemory) {
  const auto other = b.reg("other", Dtype::f32, {16, 16});
  int line = 0;
  b.roles([&] {
    b.role("one", 4, 0, [&] {
      b.fill(r, 0);
      b.copy(b.all(r), b.all(s));
    });
    b.role("two", 4, 0, [&] { line = (b.copy(b.all(s), b.all(other)), __LINE__); });
  });
  expect_invalid(b.finish(), line, "another reads");
}

TEST_F(Verify, AcceptsRolesThatReadWhatWasWrittenBeforeThem) {
  const auto other = b.reg("other", Dtype::f32, {16, 16});
  b.copy(corner(x), b.all(s));
  b.roles([&] {
    b.role("one", 4, 0, [&] { b.copy(b.all(s), b.all(r)); });
    b.role("two", 4, 0, [&] { b.copy(b.all(s), b.all(other)); });
  });
  expect_valid(b.finish());
}

TEST_F(Verify, RefusesWarpsThatAreNotTheRolesSum) {
  const int line = (b.roles([&] { b.role("one", 4, 0, [] {}); }), __LINE__);
  Program program = b.finish();
  program.warps = 8;
  expect_invalid(program, line, "warps");
}
}  // namespace
}  // namespace warploom::tile
