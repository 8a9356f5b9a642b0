// Pieces that say in which types and order operands are read: precision, operand_packing,
// fp16_split and window_order, against every element.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/fp16_split.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/window_order.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/triangle_nets.h"
#include "pieces.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/interpret.h"

namespace warploom::kernels {
namespace {
using test::found, test::hopper, test::Net, test::Storage;
using Indices = std::vector<int64_t>;

TEST(PiecePrecision, IsTheOperandsTypeWhereTheTrackHasIt) {
  const auto is = [](Dtype dtype, Track track, Dtype operand, int terms) {
    const auto precision = precision_of(dtype, dtype, track);
    return precision && precision->operand == operand && precision->terms == terms;
  };
  EXPECT_TRUE(is(Dtype::bf16, Track::bf16, Dtype::bf16, 1));
  EXPECT_TRUE(is(Dtype::f16, Track::fp16, Dtype::f16, 1));
  EXPECT_TRUE(is(Dtype::f32, Track::tf32, Dtype::tf32, 1));
  EXPECT_TRUE(is(Dtype::f32, Track::fp32, Dtype::tf32, 3));
  EXPECT_TRUE(precision_of(Dtype::f32, Dtype::f32, Track::fp32, true)->is_fp16_split());
  EXPECT_FALSE(precision_of(Dtype::bf16, Dtype::bf16, Track::fp16));
  EXPECT_FALSE(precision_of(Dtype::f16, Dtype::f16, Track::bf16));
  EXPECT_FALSE(precision_of(Dtype::bf16, Dtype::f16, Track::tolerance));
}

TEST(PiecePrecision, PromotesWhatTensorCoresAddInexactly) {
  EXPECT_TRUE((Precision{Dtype::tf32, 3}.promotes()));
  EXPECT_FALSE((Precision{Dtype::tf32, 1}.promotes()));
  EXPECT_FALSE((Precision{Dtype::bf16, 1}.promotes()));
  EXPECT_FALSE((Precision{Dtype::i8, 1}.promotes()));
  EXPECT_EQ((Precision{Dtype::i8, 1}.accumulator()), Dtype::i32);
  EXPECT_EQ((Precision{Dtype::bf16, 1}.accumulator()), Dtype::f32);
}

TEST(PiecePrecision, FusesRowsThatFitWhereSumsAreShortAndRowsMany) {
  const Precision bf16{Dtype::bf16, 1};
  const auto fuses = [&](const test::MatmulShape& shape, int64_t columns) {
    return fuses_rows(found(test::matmul_graph(shape, Dtype::bf16)), bf16, columns, hopper());
  };
  EXPECT_TRUE(fuses({4096, 256, 2048}, 256));
  EXPECT_FALSE(fuses({4096, 264, 2048}, 256)) << "rows are longer than a tile";
  EXPECT_FALSE(fuses({4096, 256, 2056}, 256)) << "a sum has more than 2048 terms";
  // 132 / 4 = 33 multiprocessors at the least, each with 64 rows by 64 columns.
  EXPECT_TRUE(fuses({64 * 33, 64, 512}, 256));
  EXPECT_FALSE(fuses({64 * 32, 64, 512}, 256));
}

// An element of a buffer of a program's.
double element(const Storage& storage, const Access& access, const Indices& at) {
  const auto offset = static_cast<size_t>(test::offset_of(access, at));
  return load_as_double(access.dtype, storage.at(access.name).data(), offset);
}

// A product whose operands are packed, their inputs, and what packing them makes.
struct Packed {
  Packed(const test::MatmulShape& shape, Dtype dtype, const Precision& used)
      : graph(test::matmul_graph(shape, dtype)),
        c(found(graph)),
        precision(used),
        storage(test::storage_of(graph, test::random_inputs(graph, 1))) {}

  OperandPacking packing(const char* name) { return {made, name, precision, capabilities}; }

  void run() { test::interpret_all(made, storage); }

  graph::Graph graph;
  Contraction c;
  Precision precision;
  Storage storage;
  Family::Programs made;
  target::Capabilities capabilities = hopper();
};

TEST(PieceOperandPacking, ReadsAnOperandAsItLiesWhereTheCopyEngineCan) {
  Packed p({64, 64, 64}, Dtype::bf16, {Dtype::bf16, 1});
  const Prepared b = p.packing("b").pack_for_tma(p.c.access_b(), p.c.column, *p.c.channel);
  EXPECT_TRUE(p.made.programs.empty());
  EXPECT_EQ(b.high.name, p.c.access_b().name);
}

TEST(PieceOperandPacking, LaysRowsInStepsOf16BytesAndMovesEveryElement) {
  for (const bool transpose : {false, true}) {
    Packed p({.m = 20, .n = 37, .k = 27, .transpose_b = transpose}, Dtype::bf16, {Dtype::bf16, 1});
    const Access& from = p.c.access_b();
    const Prepared b = p.packing("b").pack_for_tma(from, p.c.column, *p.c.channel);
    ASSERT_EQ(p.made.programs.size(), 1u);
    for (const int64_t stride : b.high.strides)
      EXPECT_TRUE(stride == 1 || stride * 2 % 16 == 0);
    p.run();
    test::for_each_index(p.c.nest.axes, [&](const Indices& at) {
      ASSERT_EQ(element(p.storage, b.high, at), element(p.storage, from, at));
    });
  }
}

TEST(PieceOperandPacking, SplitsTf32OperandsIntoWhatRoundingLeavesAndLoses) {
  Packed p({16, 24, 40}, Dtype::f32, {Dtype::tf32, 3});
  const Access& from = p.c.access_b();
  const Prepared b = p.packing("b").pack_for_tma(from, p.c.column, *p.c.channel);
  p.run();
  test::for_each_index(p.c.nest.axes, [&](const Indices& at) {
    const double x = element(p.storage, from, at);
    const double high = element(p.storage, b.high, at);
    ASSERT_EQ(high, rounded(Dtype::tf32, x));
    ASSERT_EQ(element(p.storage, b.low, at), rounded(Dtype::tf32, x - high));
    ASSERT_NE(b.high.stride(*p.c.channel), 0);
  });
}

// x · scale in two halves, the largest of a row in [2^13, 2^14).
TEST(PieceFp16Split, HoldsRowsIn22BitsOfTheirLargest) {
  Packed p({16, 24, 40}, Dtype::f32, {Dtype::f16, 3});
  const Access& from = p.c.access_b();
  const Prepared b = p.packing("b").repack(from, p.c.column, *p.c.channel, true);
  p.run();
  const size_t column = p.c.column;
  const size_t k = *p.c.channel;
  for (int64_t n = 0; n < p.c.nest.axes[column]; ++n) {
    Indices at(p.c.nest.axes.size(), 0);
    at[column] = n;
    double largest = 0;
    for (at[k] = 0; at[k] < p.c.nest.axes[k]; ++at[k])
      largest = std::max(largest, std::abs(element(p.storage, from, at)));
    const auto amax = static_cast<size_t>(n);
    const Storage::mapped_type& measured = p.storage.at("b_most");
    ASSERT_EQ(load_as_double(Dtype::f32, measured.data(), amax), largest);
    const double scale = std::exp2(13 - std::floor(std::log2(largest)));
    for (at[k] = 0; at[k] < p.c.nest.axes[k]; ++at[k]) {
      const double x = element(p.storage, from, at) * scale;
      const double high = element(p.storage, b.high, at);
      ASSERT_EQ(high, rounded(Dtype::f16, x));
      ASSERT_NEAR(high + element(p.storage, b.low, at), x, std::exp2(14 - 22));
    }
  }
}

TEST(PieceFp16Split, ScalesARowsLargestBetween2To13And2To14AndBack) {
  KernelBuilder draft("scales");
  tile::Builder& t = draft.b;
  const std::vector<double> largest = {1.7, 1, 0.999, 1e30, 3e-20, 0};
  const auto count = std::ssize(largest);
  const TensorId x = t.global("X", Dtype::f32, {count});
  const TensorId scale = t.output("S", Dtype::f32, {count});
  const TensorId back = t.output("I", Dtype::f32, {count});
  const TensorId r = t.reg("r", Dtype::f32, {count});
  const TensorId made = t.reg("made", Dtype::f32, {count});
  t.copy(t.all(x), t.all(r));
  t.map(made, fp16_split::row_scale_of(t.value(r)));
  t.copy(t.all(made), t.all(scale));
  t.map(made, fp16_split::inverse_scale_of(t.value(r)));
  t.copy(t.all(made), t.all(back));
  Storage storage;
  for (const char* name : {"X", "S", "I"})
    storage[name].resize(largest.size() * 4);
  for (size_t i = 0; i < largest.size(); ++i)
    store_from_double(Dtype::f32, storage["X"].data(), i, largest[i]);
  const auto ran =
      tile::interpret(t.finish(), {{"X", storage["X"]}, {"S", storage["S"]}, {"I", storage["I"]}});
  ASSERT_TRUE(ran) << describe(ran.error());
  for (size_t i = 0; i < largest.size(); ++i) {
    const double up = load_as_double(Dtype::f32, storage["S"].data(), i);
    EXPECT_EQ(up * load_as_double(Dtype::f32, storage["I"].data(), i), 1) << largest[i];
    if (largest[i] == 0) continue;
    EXPECT_GE(up * largest[i], 0x1p13) << largest[i];
    EXPECT_LT(up * largest[i], 0x1.000001p14) << largest[i];
  }
}

TEST(PieceOperandPacking, WritesZerosWhereATriangleCountsAsZero) {
  const graph::Graph graph = test::times({130, 12, 140}, test::Side::a, 1, 0);
  const Contraction c = found(graph);
  ASSERT_FALSE(c.triangular_operands.empty());
  Storage storage = test::storage_of(graph, test::random_inputs(graph, 1));
  Family::Programs made;
  const Contraction whole = filled(made, c, hopper());
  test::interpret_all(made, storage);
  for (const auto& [load, triangle] : c.triangular_operands)
    test::for_each_index(c.nest.axes, [&](const Indices& at) {
      const bool counts = test::value_of(triangle, at) >= 0;
      const double x = counts ? element(storage, c.nest.loads[load], at) : 0;
      ASSERT_EQ(element(storage, whole.nest.loads[load], at), x);
    });
}

TEST(PieceOperandPacking, AWholeAccessBeginsAtItsFirstElementAndGoesForwards) {
  Access access{.shape = {8}, .strides = {1}, .at = {{0, {1}}}};
  EXPECT_TRUE(is_whole(access));
  access.at = {{1, {1}}};
  EXPECT_FALSE(is_whole(access));
  access.at = {{0, {-1}}};
  EXPECT_FALSE(is_whole(access));
  access.at = {{0, {1}}};
  access.in_bounds = false;
  EXPECT_FALSE(is_whole(access));
}

struct Convolution {
  graph::Shape x;
  graph::Shape w;
  int64_t stride = 1;
  int64_t pad = 0;
};

// Which element of a tensor, by its coordinates there, lies at each offset of an operand laid anew.
std::map<int64_t, Indices> elements_by_offset(const WindowOrder::Operand& operand) {
  std::map<int64_t, Indices> found;
  test::for_each_index(operand.made.shape, [&](const Indices& at) {
    Indices from = at;
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      from[d] += operand.begin[d];
      offset += at[d] * operand.made.strides[d];
    }
    EXPECT_TRUE(found.emplace(offset, from).second) << "two elements in one place";
    EXPECT_LT(offset, operand.elements);
  });
  return found;
}

// Each term of the sum lies where the run has it: channels of a place, then those of the next.
void expect_windows(const Contraction& c, const WindowOrder& order,
                    const WindowOrder::Operand& operand) {
  const std::map<int64_t, Indices> elements = elements_by_offset(operand);
  const int64_t places = c.window ? c.nest.axes[*c.window] : 1;
  const int64_t channels = order.contraction.nest.axes[*c.channel] / places;
  test::for_each_index(c.nest.axes, [&](const Indices& at) {
    Indices seen = at;
    if (c.window) {
      seen[*c.channel] = at[*c.window] * channels + at[*c.channel];
      seen[*c.window] = 0;
    }
    const auto there = elements.find(test::offset_of(operand.seen, seen));
    ASSERT_NE(there, elements.end());
    for (size_t d = 0; d < operand.from.at.size(); ++d)
      ASSERT_EQ(there->second[d], test::value_of(operand.from.at[d], at));
  });
}

TEST(PieceWindowOrder, HoldsEveryTermOfEverySumInOneRun) {
  const Convolution convolutions[] = {{{2, 3, 13, 14}, {4, 3, 5, 5}, 4, 2},
                                      {{2, 8, 6, 7}, {4, 8, 3, 3}, 1, 1},
                                      {{1, 5, 9, 9}, {3, 5, 2, 3}, 2, 0}};
  for (const Convolution& one : convolutions) {
    Net net;
    const auto y =
        net.add(graph::OpKind::Conv, {net.x(one.x), net.x(one.w)},
                {{"strides", test::Ints(2, one.stride)}, {"pads", test::Ints(4, one.pad)}});
    const Contraction c = found(net.with({y}));
    const auto order = window_order_of(c);
    ASSERT_TRUE(order);
    for (const WindowOrder::Operand& operand : {order->a, order->b}) {
      ASSERT_NO_FATAL_FAILURE(expect_windows(c, *order, operand));
      for (size_t d = 0; d < operand.seen.at.size(); ++d)
        EXPECT_TRUE(operand.seen.strides[d] == 1 || operand.seen.strides[d] % 4 == 0)
            << "TMA takes steps of 16 bytes";
    }
  }
}

// The worked example of window_order.h.
TEST(PieceWindowOrder, MakesTheFirstLayerOfAlexNetRunsOf33) {
  Net net;
  const auto y = net.add(graph::OpKind::Conv, {net.x({100, 3, 224, 224}), net.x({96, 3, 11, 11})},
                         {{"strides", test::Ints{4, 4}}, {"pads", test::Ints{2, 2, 2, 2}}});
  const Contraction c = found(net.with({y}));
  const auto order = window_order_of(c);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->contraction.nest.axes[*c.channel], 33);
  EXPECT_FALSE(order->contraction.window);
  EXPECT_EQ(order->b.made.shape, (graph::Shape{100, 3, 227, 227}));
  EXPECT_EQ(order->a.made.shape, (graph::Shape{96, 3, 11, 11}));
}
}  // namespace
}  // namespace warploom::kernels
