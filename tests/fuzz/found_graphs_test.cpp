// Every fault that random graphs found, at the smallest graph that showed it.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/random.h"
#include "fuzz/graph_case.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph_check.h"

namespace warploom {
namespace {
using graph::OpKind;
using graph::TensorId;
using Integers = std::vector<int64_t>;

// Under several draws of schedules.
void expect_agreement(graph::Builder& b, TensorId output, std::vector<std::string> targets,
                      uint64_t draws) {
  b.output(output);
  fuzz::GraphCase c{.graph = *graph::simplify(*b.finish()), .targets = std::move(targets)};
  for (const TensorId id : c.graph.inputs) {
    const graph::Tensor& tensor = c.graph.tensor(id);
    Random random(1, tensor.name);
    auto& bytes = c.inputs.emplace_back(static_cast<size_t>(graph::byte_count(tensor)));
    for (size_t i = 0; i < static_cast<size_t>(graph::element_count(tensor.shape)); ++i)
      store_from_double(tensor.dtype, bytes.data(), i, random.normal());
  }
  for (uint64_t draw = 0; draw < draws; ++draw)
    for (const auto& o : fuzz::check_graphs(std::span(&c, 1), [](int) {}, draw))
      if (o.kind == "graph") {
        EXPECT_EQ(o.code, "agrees") << o.target << "\n" << o.detail;
      }
}

TEST(FoundGraphs, NegativeConstantIndicesOfAGatherCountFromTheEnd) {
  graph::Builder b("gather");
  const TensorId x = b.input("x", Dtype::f32, {3, 5, 4});
  expect_agreement(
      b, b.add(OpKind::Gather, {x, b.integers("i", Integers{-1, 2, -5})}, {{"axis", int64_t{1}}}),
      {"cpu", "sm_90a"}, 1);
}

TEST(FoundGraphs, AConvolutionOfOneChannelOverARow) {
  graph::Builder b("conv");
  const TensorId x = b.input("x", Dtype::f32, {3, 1, 4, 4});
  const TensorId w = b.input("w", Dtype::f32, {3, 1, 1, 3});
  const Integers pads = {0, 1, 0, 1};
  expect_agreement(b, b.add(OpKind::Conv, {x, w}, {{"pads", pads}}), {"cpu"}, 6);
}

TEST(FoundGraphs, AConvolutionOfOneChannelOverASignal) {
  graph::Builder b("signal");
  const TensorId x = b.input("x", Dtype::f32, {1, 1, 45});
  const TensorId w = b.input("w", Dtype::f32, {4, 1, 3});
  const Integers two = {2};
  const Integers pads = {2, 2};
  expect_agreement(
      b, b.add(OpKind::Conv, {x, w}, {{"pads", pads}, {"strides", two}, {"dilations", two}}),
      {"sm_90a"}, 8);
}

TEST(FoundGraphs, TheWeightsOfATransposedConvolutionAreReadBackwards) {
  graph::Builder b("transposed");
  const TensorId x = b.input("x", Dtype::f32, {2, 1, 3, 6, 3});
  const TensorId w = b.input("w", Dtype::f32, {1, 4, 5, 3, 3});
  expect_agreement(b, b.add(OpKind::ConvTranspose, {x, w}), {"cpu"}, 8);
}
}  // namespace
}  // namespace warploom
