// What numbers mean: found behind views, casts, arithmetic, and where a graph was cut.
#include "graph/ranges.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "builder.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
using Ints = std::vector<int64_t>;

constexpr int64_t kRows = 100;

Range range_of(const Graph& graph, std::string_view name) {
  return range_in(ranges_of(graph), name);
}

// A graph of ids [2, 6] of a type, a table of kRows rows, and what is looked up in it by what
// `between` makes of the ids.
Graph lookup(const std::function<TensorId(Builder&, TensorId)>& between, Dtype dtype = Dtype::i64) {
  Builder b("lookup");
  const TensorId ids = b.input("ids", dtype, {2, 6});
  const TensorId table = b.input("table", Dtype::f32, {kRows, 4});
  b.output(b.add(OpKind::Gather, {table, between(b, ids)}));
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  return *graph;
}

// Of the ids, in the graph as it is and in its primitives.
void expect_ids(const Graph& graph, double low, double high) {
  for (const Graph& one : {graph, *decompose(graph)}) {
    const Range found = range_of(one, "ids");
    EXPECT_EQ(found.low, low) << to_text(one);
    EXPECT_EQ(found.high, high) << to_text(one);
  }
}

TensorId cast(Builder& b, TensorId x, Dtype to) {
  return b.add(OpKind::Cast, {x}, {{"to", int64_t{onnx_type_of(to)}}});
}

TensorId number(Builder& b, double value, Dtype dtype = Dtype::i64) {
  static int made = 0;
  return b.constant(fmt::format("number{}", made++), dtype, {}, std::array{value});
}

TEST(Ranges, AnIndexCountsFromEitherEndOfItsAxis) {
  const Graph graph = lookup([](Builder&, TensorId ids) { return ids; });
  expect_ids(graph, -100, 99);
  EXPECT_TRUE(range_of(graph, "ids").whole);
  EXPECT_EQ(range_of(graph, "table"), Range{});
}

TEST(Ranges, AnIndexIsOneAlsoBehindViewsAndMoves) {
  expect_ids(lookup([](Builder& b, TensorId ids) {
               const TensorId flat = b.add(OpKind::Reshape, {ids, b.integers("to", Ints{12})});
               const TensorId part = b.add(
                   OpKind::Slice, {flat, b.integers("from", Ints{2}), b.integers("end", Ints{10})});
               const TensorId rows = b.add(OpKind::Reshape, {part, b.integers("rows", Ints{4, 2})});
               const TensorId turned = b.add(OpKind::Transpose, {rows});
               const TensorId more = b.add(OpKind::Unsqueeze, {turned, b.integers("ax", Ints{0})});
               return b.add(OpKind::Concat, {more, more}, {{"axis", int64_t{0}}});
             }),
             -100, 99);
}

TEST(Ranges, AnIndexIsOneAlsoBehindCasts) {
  const auto widened = [](Builder& b, TensorId ids) { return cast(b, ids, Dtype::i64); };
  expect_ids(lookup(widened, Dtype::i32), -100, 99);
  expect_ids(lookup(widened, Dtype::f32), -100, 99);
  expect_ids(lookup(widened, Dtype::u8), 0, 99);
}

TEST(Ranges, ArithmeticIsUndone) {
  expect_ids(
      lookup([](Builder& b, TensorId ids) { return b.add(OpKind::Sub, {ids, number(b, 1)}); }), -99,
      100);
  expect_ids(
      lookup([](Builder& b, TensorId ids) { return b.add(OpKind::Sub, {number(b, 10), ids}); }),
      -89, 110);
  expect_ids(lookup([](Builder& b, TensorId ids) {
               return b.add(OpKind::Add, {number(b, 5), b.add(OpKind::Mul, {ids, number(b, 3)})});
             }),
             -35, 31);
}

TEST(Ranges, WhatIsClippedMayBeAnything) {
  const Graph graph = lookup([](Builder& b, TensorId ids) {
    return b.add(OpKind::Clip, {ids, number(b, 0), number(b, kRows - 1)});
  });
  EXPECT_EQ(range_of(graph, "ids"), Range{});
}

TEST(Ranges, AnEndThatIsClippedIsOpen) {
  const Graph graph =
      lookup([](Builder& b, TensorId ids) { return b.add(OpKind::Max, {ids, number(b, 0)}); });
  EXPECT_EQ(range_of(graph, "ids").low, -HUGE_VAL);
  EXPECT_EQ(range_of(graph, "ids").high, 99);
}

TEST(Ranges, AChoiceAsksEachSideForItsOwnNumbersOnly) {
  const auto counted = [](bool greater) {
    return lookup([greater](Builder& b, TensorId ids) {
      const TensorId zero = number(b, 0);
      const TensorId from_end = b.add(OpKind::Add, {ids, number(b, kRows)});
      const TensorId below =
          greater ? b.add(OpKind::Greater, {zero, ids}) : b.add(OpKind::Less, {ids, zero});
      return b.add(OpKind::Where, {below, from_end, ids});
    });
  };
  // Those below -100 count from the end twice, here and in Gather.
  expect_ids(counted(false), -200, 99);
  expect_ids(counted(true), -200, 99);
}

TEST(Ranges, PositionsFromAMaskMakeItsSumsIndices) {
  const Graph graph = lookup([](Builder& b, TensorId ids) {
    const TensorId sum = b.add(OpKind::CumSum, {ids, number(b, 1)});
    return b.add(OpKind::Sub, {sum, number(b, 1)});
  });
  expect_ids(graph, -16, 16);  // six of them sum up to -99 to 100
}

TEST(Ranges, OfTwoTablesTheShorterOneCounts) {
  Builder b("tables");
  const TensorId ids = b.input("ids", Dtype::i64, {5});
  const auto look = [&](const char* name, int64_t rows) {
    b.output(b.add(OpKind::Gather, {b.input(name, Dtype::f32, {rows, 3}), ids}));
  };
  look("long", 50);
  look("short", 7);
  expect_ids(*b.finish(), -7, 6);
}

TEST(Ranges, ATableOfIndicesHoldsIndices) {
  Builder b("nested");
  const TensorId ids = b.input("ids", Dtype::i64, {5});
  const TensorId indices = b.input("indices", Dtype::i32, {9});
  const TensorId rows = b.add(OpKind::Gather, {indices, ids});
  b.output(b.add(OpKind::Gather, {b.input("table", Dtype::f32, {20, 3}), rows}));
  const Graph graph = *b.finish();
  expect_ids(graph, -9, 8);
  EXPECT_EQ(range_of(graph, "indices").low, -20);
  EXPECT_EQ(range_of(graph, "indices").high, 19);
}

TEST(Ranges, GatherElementsAndGatherNdTakeIndicesFromEitherEnd) {
  Builder elements("elements");
  elements.output(elements.add(
      OpKind::GatherElements,
      {elements.input("x", Dtype::f32, {64, 32}), elements.input("ids", Dtype::i64, {16, 32})},
      {{"axis", int64_t{0}}}));
  expect_ids(*elements.finish(), -64, 63);
  Builder places("places");
  places.output(places.add(OpKind::GatherND, {places.input("x", Dtype::f32, {9, 6, 2}),
                                              places.input("ids", Dtype::i64, {5, 2})}));
  expect_ids(*places.finish(), -6, 5);
}

TEST(Ranges, FloatsThatBecomeIndicesAreWholeWhereTheModelSaysSo) {
  Builder b("coordinates");
  const TensorId table = b.constant("table", Dtype::f32, {4}, std::array{0.0, 1.0, 2.0, 3.0});
  const TensorId scale = b.constant("scale", Dtype::f32, {4}, std::array{1.0, 1.0, 1.0, 1.0});
  const TensorId x = b.input("x", Dtype::f32, {4});
  const TensorId at = cast(b, b.add(OpKind::Min, {table, b.add(OpKind::Floor, {x})}), Dtype::i64);
  b.output(b.add(OpKind::Gather, {b.input("rows", Dtype::f32, {kRows, 3}), at}));
  b.output(b.add(OpKind::Mul, {x, scale}));
  const Graph graph = *b.finish();
  EXPECT_EQ(range_of(graph, "table"), (Range{0, 3, true}));
  EXPECT_EQ(range_of(graph, "scale"), Range{});  // weights that happen to be whole
}

TEST(Ranges, ClassesAreThoseThatThereAre) {
  Builder b("loss");
  b.output(b.add(OpKind::SoftmaxCrossEntropyLoss,
                 {b.input("x", Dtype::f32, {6, 10}), b.input("ids", Dtype::i64, {6})}));
  expect_ids(*b.finish(), 0, 9);
}

TEST(Ranges, WhatIsMadeInsideIsKnownToo) {
  Builder b("best");
  const TensorId best = b.add(OpKind::ArgMax, {b.input("x", Dtype::f32, {4, 30})},
                              {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  b.output(b.add(OpKind::Gather, {b.input("table", Dtype::f32, {kRows, 3}), best}));
  const Graph graph = *b.finish();
  const Range found = range_of(graph, graph.tensor(graph.nodes[0].outputs[0]).name);
  EXPECT_EQ(found, (Range{0, 29, true}));
}

TEST(Ranges, TwoUnknownAddendsHaveHalfEach) {
  Builder b("sum");
  const TensorId both =
      b.add(OpKind::Add, {b.input("ids", Dtype::i64, {5}), b.input("more", Dtype::i64, {5})});
  b.output(b.add(OpKind::Gather, {b.input("table", Dtype::f32, {kRows, 3}), both}));
  const Graph graph = *b.finish();
  EXPECT_EQ(range_of(graph, "ids"), (Range{-50, 49, true}));
  EXPECT_EQ(range_of(graph, "more"), (Range{-50, 49, true}));
}

TEST(Ranges, DivisorsOfIntegersAreNotZero) {
  Builder b("quotient");
  const TensorId by = cast(b, b.input("by", Dtype::i32, {5}), Dtype::i64);
  b.output(b.add(OpKind::Div, {b.input("x", Dtype::i64, {5}), by}));
  const Graph graph = *b.finish();
  EXPECT_TRUE(range_of(graph, "by").nonzero);
  EXPECT_FALSE(range_of(graph, "x").nonzero);
}

TEST(Ranges, AMaskOfAttentionIsZeroOrOne) {
  Builder b("mask");
  const TensorId mask = b.input("mask", Dtype::i64, {2, 8});
  const TensorId wide =
      b.add(OpKind::Unsqueeze, {cast(b, mask, Dtype::f32), b.integers("axes", Ints{1, 2})});
  const TensorId off = b.add(OpKind::Sub, {number(b, 1, Dtype::f32), wide});
  const TensorId added = b.add(OpKind::Mul, {off, number(b, -3.4e38, Dtype::f32)});
  b.output(b.add(OpKind::Add, {b.input("scores", Dtype::f32, {2, 3, 8, 8}), added}));
  const Graph graph = *b.finish();
  EXPECT_EQ(range_of(graph, "mask"), (Range{0, 1, true}));
  EXPECT_EQ(range_of(graph, "scores"), Range{});
}

TEST(Ranges, WhatIsKnownOfAnInputMeetsWhatIsAskedOfIt) {
  const Graph graph = lookup([](Builder&, TensorId ids) { return ids; });
  EXPECT_EQ(range_in(ranges_of(graph, {{"ids", {0, 200, true}}}), "ids"), (Range{0, 99, true}));
}
}  // namespace
}  // namespace warploom::graph
