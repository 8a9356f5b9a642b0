// Coordinates of tiles as values of register tensors.
#include "kernels/kernel_builder.h"
#include <gtest/gtest.h>
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
// Rows of a tensor that is one row have a dimension that follows no axis of the nest.
TEST(TileCoord, ValuesDoNotVaryAlongADimensionThatFollowsNoAxis) {
  const LoopNest nest{.axes = {640}};
  const TileCoord tile(nest);
  const Affine place{7, {1}};
  const Value plain = tile.value_at(place, {0});
  EXPECT_EQ(plain.kind, Value::Kind::coordinate);
  EXPECT_EQ(plain.axis, 0);
  const Value with_rows = tile.value_at(place, {1, 0});
  EXPECT_EQ(with_rows.kind, Value::Kind::coordinate);
  EXPECT_EQ(with_rows.axis, 1);
}
}  // namespace
}  // namespace warploom::kernels
