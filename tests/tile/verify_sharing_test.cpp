// What the blocks of a cluster and of a grid share: multicast, peers, flags, sums.
#include <gtest/gtest.h>
#include "base/dtype.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"
#include "verify_fixture.h"

namespace warploom::tile {
namespace {
TEST_F(Verify, AcceptsAMulticastOfWhatBlocksAlongItShare) {
  b.grid(4, 4).cluster(2, 2);
  const auto p = ring();
  b.for_("tile", block(0) / 2, 8, 2, [&](const Index& tile) {
    const Index row = tile * 2 + block(0) % 2;
    const Index column = block(1) / 2;
    b.produce(p, [&] {
      b.multicast(b.tile(x, {row * 16, 0}, {16, 16}), b.all(stage), "y");
      b.multicast(b.tile(x, {column * 16, block(1) * 16}, {16, 16}), b.all(stage), "x");
      b.multicast(b.tile(x, {tile * 16, column * 16}, {16, 16}), b.all(stage), "xy");
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
    b.produce(p, [&] { line = (b.multicast(corner(x), b.all(stage), "x"), __LINE__); });
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
}  // namespace
}  // namespace warploom::tile
