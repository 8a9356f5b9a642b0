// Pipelines and roles.
#include <gtest/gtest.h>
#include "base/dtype.h"
#include "tile/program.h"
#include "verify_fixture.h"

namespace warploom::tile {
namespace {
// Pipelines

TEST_F(Verify, RefusesASlotUsedOutsideItsPipeline) {
  const auto p = ring();
  produce(p);
  consume(p);
  const int line = (b.copy(b.all(stage), b.all(r)), __LINE__);
  expect_invalid(b.finish(), line, "outside");
}

TEST_F(Verify, RefusesWritingASlotThatIsConsumed) {
  const auto p = ring();
  produce(p);
  int line = 0;
  b.consume(p, 0, [&] { line = (b.copy(b.all(r), b.all(stage)), __LINE__); });
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
