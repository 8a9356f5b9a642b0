// threads_kernel and epilogue: products by any GPU's threads, and what follows a sum, on the
// interpreter against FP64.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/threads_kernel.h"
#include "kernels/trials.h"
#include "loopnest/contraction.h"
#include "loopnest/triangle_nets.h"
#include "pieces.h"
#include "support/nets.h"
#include "support/problems.h"
#include "tile/build.h"
#include "tile/interpret.h"

namespace warploom::kernels {
namespace {
using test::found, test::Net;

constexpr ThreadsMath kBf16{{Dtype::bf16, 1}, 16, false};

const MatmulMmaConfig kSmall{.block_m = 32, .block_n = 64, .block_k = 32, .stages = 3, .warps = 4};

void expect_product(const graph::Graph& graph, const Contraction& c, const ThreadsMath& math,
                    const MatmulMmaConfig& s, double allowed) {
  Family::Programs made;
  ThreadsKernel(c, nullptr, c.access_a(), second_column(c), math, s).add_to(made);
  test::expect_fp64(graph, made, allowed);
}

TEST(PieceThreadsKernel, ComputesProductsOfAnyShapeByAnyNumberOfStages) {
  const graph::Graph graph = test::matmul_graph({77, 90, 100}, Dtype::bf16);
  for (const int64_t stages : {2, 3, 4}) {
    MatmulMmaConfig s = kSmall;
    s.stages = stages;
    expect_product(graph, found(graph), kBf16, s, test::allowed(Dtype::bf16));
  }
}

TEST(PieceThreadsKernel, TakesSeveralPlacesOfAFilterInAStage) {
  Net net;
  const auto y = net.add(graph::OpKind::Conv, {net.x({2, 16, 9, 14}), net.x({24, 16, 3, 3})},
                         {{"pads", test::Ints{1, 1, 1, 1}}});
  const graph::Graph graph = net.with({y});
  const ThreadsMath simt{{Dtype::f32, 1}, 4, false};
  for (const int64_t taps : {1, 2, 4}) {  // of rows of 3 places
    MatmulMmaConfig s = kSmall;
    s.block_k = 16;
    s.block_n = 16;
    s.tile_p = 2;
    s.filter_taps_per_stage = taps;
    expect_product(graph, found(graph), simt, s, test::allowed(Dtype::f32));
  }
}

TEST(PieceThreadsKernel, AddsUpTheThreeProductsOfSplitOperands) {
  const graph::Graph graph = test::matmul_graph({40, 64, 96}, Dtype::f32);
  expect_product(graph, found(graph), {{Dtype::tf32, 3}, 8, true}, kSmall, 3e-6);
}

TEST(PieceThreadsKernel, ReadsBothFamiliesFieldsAlike) {
  const MatmulSimtConfig simt{.block_m = 64, .block_n = 32, .block_k = 8, .stages = 2, .warps = 8};
  const MatmulMmaConfig seen = threads_choices(simt);
  const KernelConfig from = simt;
  const KernelConfig to = seen;
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i)
    EXPECT_EQ(to.get(i), from.get(i)) << from.field(i).name;
}

TEST(PieceEpilogue, ComputesWhatFollowsTheSumBeforeItIsStored) {
  const test::MatmulShape shape{.m = 40, .n = 70, .k = 48, .bias = true, .gelu = true};
  const graph::Graph graph = test::matmul_graph(shape, Dtype::bf16);
  expect_product(graph, found(graph), kBf16, kSmall, test::allowed(Dtype::bf16));
}

TEST(PieceEpilogue, ReducesRowsThatATileHoldsWhole) {
  Net net;
  const auto x = net.x({40, 48}, Dtype::bf16);
  const auto product = net.add(graph::OpKind::MatMul, {x, net.x({48, 50}, Dtype::bf16)});
  const auto y = net.add(graph::OpKind::Softmax, {product}, {{"axis", int64_t{-1}}});
  const graph::Graph graph = net.with({y});
  const auto c = contraction_of(Region(graph, Track::bf16).nests(), true);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->reductions.size(), 2u);
  expect_product(graph, *c, kBf16, kSmall, test::allowed(Dtype::bf16));  // 14 columns beyond
}

TEST(PieceEpilogue, PromotesAStagesSumsTimesTheirScales) {
  for (const size_t scales : {0, 1, 2}) {
    KernelBuilder draft("promoted");
    tile::Builder& t = draft.b;
    const TensorId y = t.output("Y", Dtype::f32, {1});
    const TensorId acc = t.reg("acc", Dtype::f32, {1});
    const TensorId part = t.reg("part", Dtype::f32, {1});
    t.fill(acc, 7);
    t.fill(part, 3);
    std::vector<TensorId> factors;
    double want = 3;
    for (size_t i = 0; i < scales; ++i) {
      const double factor = static_cast<double>(i) + 2;
      factors.push_back(t.reg(fmt::format("s{}", i), Dtype::f32, {1}));
      t.fill(factors.back(), factor);
      want *= factor;
    }
    t.map(acc, promoted(draft, acc, part, factors));
    t.copy(t.all(acc), t.all(y));
    std::vector<std::byte> out(4);
    ASSERT_TRUE(tile::interpret(t.finish(), {{"Y", out}}));
    EXPECT_EQ(load_as_double(Dtype::f32, out.data(), 0), 7 + want);
  }
}
}  // namespace
}  // namespace warploom::kernels
