// Scans of few long lines as scans of many short ones: the same numbers, and only where lines are
// few.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
Graph scan_of(const Shape& shape, int64_t axis, int64_t reverse, Dtype dtype = Dtype::f32) {
  Builder b("t");
  const TensorId x = b.input("x", dtype, shape);
  const TensorId along = b.integers("axis", std::vector<int64_t>{axis});
  b.output(b.add(OpKind::CumSum, {x, along}, {{"reverse", reverse}}));
  return *decompose(*b.finish());
}

size_t scans(const Graph& graph) {
  return static_cast<size_t>(std::ranges::count(graph.nodes, OpKind::CumSum, &Node::op));
}

TEST(SpreadScans, GiveTheSameNumbers) {
  Random random(11);
  const std::vector<std::pair<Shape, int64_t>> cases = {
      {{1, 16384}, 1}, {{2, 40961}, 1}, {{12288, 3}, 0}, {{2, 4099, 5}, 1}, {{3, 1, 20000}, -1}};
  for (const auto& [shape, axis] : cases)
    for (const int64_t reverse : {0, 1}) {
      const Graph whole = scan_of(shape, axis, reverse);
      const auto spread = split_scans(whole, 132);
      ASSERT_TRUE(spread) << describe(spread.error());
      EXPECT_EQ(scans(*spread), 2u) << to_text(shape);
      std::vector<float> x(static_cast<size_t>(element_count(shape)));
      for (float& value : x)
        value = static_cast<float>(random.uniform() - 0.5);
      const std::vector<Bytes> inputs = {std::as_bytes(std::span(x))};
      const auto expected = evaluate(whole, inputs);
      const auto found = evaluate(*spread, inputs);
      ASSERT_TRUE(expected && found);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR((*found)[0][i], (*expected)[0][i], 1e-9) << to_text(shape) << " at " << i;
    }
}

TEST(SpreadScans, KeepWhatIsBusyEnoughShortOrHasNoKernel) {
  for (const Shape& shape : {Shape{64, 65536}, Shape{1, 3000}, Shape{1, 0}, Shape{0, 65536}})
    EXPECT_EQ(scans(*split_scans(scan_of(shape, 1, 0), 132)), 1u) << to_text(shape);
  EXPECT_EQ(scans(*split_scans(scan_of({1, 65536}, 1, 0), 2)), 1u);
  for (const Dtype dtype : {Dtype::i64, Dtype::f64})
    EXPECT_EQ(scans(*split_scans(scan_of({1, 65536}, 1, 0, dtype), 132)), 1u) << name_of(dtype);
}

TEST(SpreadScans, AddUpSixteenBitsInF32) {
  const auto graph = *split_scans(scan_of({1, 65536}, 1, 0, Dtype::bf16), 132);
  for (const Node& node : graph.nodes)
    if (node.op != OpKind::Cast) {
      EXPECT_EQ(graph.tensor(node.outputs[0]).dtype, Dtype::f32) << place_of(node);
    }
  EXPECT_EQ(graph.tensor(graph.outputs[0]).dtype, Dtype::bf16);
}
}  // namespace
}  // namespace warploom::graph
