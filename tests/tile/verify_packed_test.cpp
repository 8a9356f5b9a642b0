// Packed tensors: global tensors whose order synthesis chooses.
#include <gtest/gtest.h>
#include "base/dtype.h"
#include "tile/index.h"
#include "tile/program.h"
#include "verify_fixture.h"

namespace warploom::tile {
namespace {
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
  const auto stage4 = b.shared("stage4", Dtype::u4, {16, 16});
  const int line = (b.copy(tile(0, 0), b.all(stage4)), __LINE__);
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
}  // namespace
}  // namespace warploom::tile
