// Composites as primitives: what becomes of them, and the code of every refusal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using I = int64_t;
using Attributes = std::map<std::string, Attribute>;

// y = op(x, ...) with f32 inputs of these shapes.
Result<Graph> graph_of(OpKind op, const std::vector<Shape>& shapes,
                       const Attributes& attributes = {}, Dtype dtype = Dtype::f32) {
  Builder b("t");
  std::vector<TensorId> ids;
  for (size_t i = 0; i < shapes.size(); ++i)
    ids.push_back(b.input(fmt::format("x{}", i), dtype, shapes[i]));
  b.output(b.add(op, ids, attributes));
  return b.finish();
}

std::vector<OpKind> kinds(const Graph& graph) {
  std::vector<OpKind> list;
  for (const Node& node : graph.nodes)
    list.push_back(node.op);
  return list;
}

ErrorCode code(OpKind op, const std::vector<Shape>& shapes, const Attributes& attributes = {}) {
  const auto graph = graph_of(op, shapes, attributes);
  return graph ? ErrorCode::kInternal : graph.error().code;
}

TEST(Decompose, SoftmaxIsMaxExpSumAndAProduct) {
  const auto graph = decompose(*graph_of(OpKind::Softmax, {{4, 8}}));
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(kinds(*graph),
            (std::vector<OpKind>{OpKind::ReduceMax, OpKind::Sub, OpKind::Exp, OpKind::ReduceSum,
                                 OpKind::Reciprocal, OpKind::Mul}));
  EXPECT_TRUE(graph->tensor_named("Softmax_0/max"));
  EXPECT_EQ(graph->tensor(graph->outputs[0]).name, "Softmax_0_out");
  EXPECT_EQ(graph->nodes[0].integers("axes"), (std::vector<I>{1}));
}

TEST(Decompose, APrimitiveGraphComesBackAsItIs) {
  const auto once = *decompose(*graph_of(OpKind::LayerNormalization, {{4, 8}, {8}, {8}}));
  const auto twice = *decompose(once);
  EXPECT_TRUE(is_primitive(once));
  EXPECT_EQ(to_text(once), to_text(twice));
  const auto again = infer(once);
  ASSERT_TRUE(again);
  EXPECT_TRUE(is_primitive(*again));
}

TEST(Decompose, SixteenBitsAreComputedInF32) {
  const auto graph =
      *decompose(*graph_of(OpKind::RMSNormalization, {{4, 8}, {8}}, {}, Dtype::bf16));
  EXPECT_EQ(graph.nodes.front().op, OpKind::Cast);
  EXPECT_EQ(graph.nodes.back().op, OpKind::Cast);
  for (const Node& node : graph.nodes)
    if (node.op != OpKind::Cast) {
      EXPECT_EQ(graph.tensor(node.outputs[0]).dtype, Dtype::f32);
    }
}

TEST(Decompose, ConstantStatisticsLeaveAProductAndASum) {
  Builder b("t");
  std::vector<TensorId> ids = {b.input("x", Dtype::f32, {2, 3, 4, 4})};
  for (const char* name : {"scale", "bias", "mean", "variance"})
    ids.push_back(b.constant(name, Dtype::f32, {3}, std::vector<double>{1, 2, 3}));
  b.output(b.add(OpKind::BatchNormalization, ids));
  EXPECT_EQ(kinds(*decompose(*b.finish())), (std::vector<OpKind>{OpKind::Mul, OpKind::Add}));
}

TEST(Decompose, ConvolutionsAndPoolsSayAllTheirChoices) {
  const auto conv = *decompose(*graph_of(OpKind::Conv, {{2, 3, 8, 8}, {5, 3, 3, 3}, {5}},
                                         {{"auto_pad", std::string("SAME_UPPER")}}));
  ASSERT_EQ(kinds(conv), (std::vector<OpKind>{OpKind::Conv, OpKind::Reshape, OpKind::Add}));
  EXPECT_EQ(conv.nodes[0].integers("pads"), (std::vector<I>{1, 1, 1, 1}));
  EXPECT_EQ(conv.nodes[0].integers("strides"), (std::vector<I>{1, 1}));
  EXPECT_EQ(conv.nodes[0].inputs.size(), 2u);
  const Attributes ceil = {{"kernel_shape", std::vector<I>{3, 3}},
                           {"strides", std::vector<I>{2, 2}},
                           {"ceil_mode", I{1}}};
  const auto pool = *decompose(*graph_of(OpKind::MaxPool, {{1, 1, 8, 8}}, ceil));
  EXPECT_EQ(pool.nodes[0].integers("pads"), (std::vector<I>{0, 0, 1, 1}));
  const auto average = *decompose(*graph_of(OpKind::AveragePool, {{1, 1, 8, 8}}, ceil));
  EXPECT_EQ(kinds(average), (std::vector<OpKind>{OpKind::SumPool, OpKind::Mul}));
  EXPECT_EQ(average.tensor(average.nodes[1].inputs[1]).shape, (Shape{1, 1, 4, 4}))
      << "the last windows count fewer";
}

TEST(Decompose, StatisticsOfALayerNormalizationAreOutputs) {
  Graph g;
  for (const char* name : {"x", "s", "y", "mean", "inverse"})
    g.add_tensor({{name, Dtype::f32, {2, 4}}, std::nullopt});
  g.tensor(1).shape = {4};
  g.inputs = {0, 1};
  g.outputs = {2, 4};
  g.nodes = {{OpKind::LayerNormalization, "norm", {0, 1}, {2, 3, 4}, {}}};
  const auto graph = simplify(*infer(g));
  const std::vector<float> x = {1, 2, 3, 4, 0, 0, 0, 8};
  const std::vector<float> s = {1, 1, 1, 1};
  const auto values = evaluate(
      *graph, std::vector<Bytes>{std::as_bytes(std::span(x)), std::as_bytes(std::span(s))});
  ASSERT_TRUE(values) << describe(values.error());
  EXPECT_EQ(graph->tensor(graph->outputs[1]).shape, (Shape{2, 1}));
  EXPECT_NEAR((*values)[1][0], 1 / std::sqrt(1.25 + 1e-5), 1e-6);
}

TEST(Decompose, TheLargestIntegerSurvivesACastToItsOwnType) {
  Builder b("slice");
  const auto number = [&](const char* name, int64_t value) {
    return b.integers(name, std::array{value});
  };
  const TensorId end = b.add(OpKind::Cast, {number("most", std::numeric_limits<int64_t>::max())},
                             {{"to", int64_t{7}}});
  b.output(b.add(OpKind::Slice,
                 {b.input("x", Dtype::f32, {5}), number("begin", 1), end, number("axis", 0)}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (Shape{4}));
}

TEST(Decompose, SplitsOfConstantsAreFolded) {
  Graph g;
  g.add_tensor({{"x", Dtype::f32, {6, 4}}, std::nullopt});
  for (const char* name : {"shape", "a", "b", "y"})
    g.add_tensor({{name, Dtype::f32, {}}, std::nullopt});
  g.inputs = {0};
  g.outputs = {4};
  g.nodes = {{OpKind::Shape, "s", {0}, {1}, {}},
             {OpKind::Split, "p", {1}, {2, 3}, {}},
             {OpKind::Expand, "e", {0, 3}, {4}, {}}};
  const auto graph = infer(g);
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(simplify(*graph)->nodes.size(), 1u);
}

TEST(Decompose, InfinitiesPassThroughALogOfSumsOfPowers) {
  const auto graph = *graph_of(OpKind::ReduceLogSumExp, {{2, 2}}, {{"axes", std::vector<I>{1}}});
  const float inf = INFINITY;
  const float x[] = {-inf, -inf, inf, 1};
  const auto values = *evaluate(graph, std::vector<Bytes>{std::as_bytes(std::span(x))});
  EXPECT_EQ(values[0], (std::vector<double>{-INFINITY, INFINITY}));
}

TEST(Refused, WindowsThatDoNotFit) {
  const Shape x = {1, 2, 8, 8};
  const std::vector<I> two = {2, 2};
  for (OpKind op : {OpKind::MaxPool, OpKind::AveragePool, OpKind::LpPool}) {
    EXPECT_EQ(code(op, {x}), ErrorCode::kOnnxAttribute) << "no kernel_shape";
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", std::vector<I>{2}}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", std::vector<I>{0, 2}}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", std::vector<I>{9, 9}}}), ErrorCode::kOnnxShape);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", std::vector<I>{1 << 20, 1 << 20}}}),
              ErrorCode::kOnnxTooLarge);
    EXPECT_EQ(code(op, {{8, 8}}, {{"kernel_shape", two}}), ErrorCode::kOnnxShape);
    for (const char* name : {"strides", "dilations"})
      EXPECT_EQ(code(op, {x}, {{"kernel_shape", two}, {name, std::vector<I>{0, 1}}}),
                ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", two}, {"pads", two}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", two}, {"pads", std::vector<I>{0, 0, -1, 0}}}),
              ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {x}, {{"kernel_shape", two}, {"auto_pad", std::string("SOME")}}),
              ErrorCode::kOnnxAttribute);
  }
  EXPECT_EQ(code(OpKind::MaxPool, {x}, {{"kernel_shape", two}, {"storage_order", I{1}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::LpPool, {x}, {{"kernel_shape", two}, {"p", I{0}}}),
            ErrorCode::kOnnxAttribute);
}

TEST(Refused, ConvolutionsThatDoNotFit) {
  const Shape x = {1, 4, 8, 8};
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 3, 3, 3}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 4, 3}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 2, 3, 3}}, {{"group", I{4}}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 4, 3, 3}}, {{"group", I{0}}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 4, 3, 3}, {5}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Conv, {x, {6, 4, 3, 3}}, {{"kernel_shape", std::vector<I>{3, 2}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::Conv, {{4, 8}, {4, 8}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::ConvTranspose, {x, {3, 4, 3, 3}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::ConvTranspose, {x, {4, 2, 3, 3}}, {{"pads", std::vector<I>{9, 9, 9, 9}}}),
            ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::ConvTranspose, {x, {4, 2, 3, 3}}, {{"output_padding", std::vector<I>{1}}}),
            ErrorCode::kOnnxAttribute);
}

TEST(Refused, ReductionsOverAxesThatAreNotThere) {
  for (OpKind op : {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceL2,
                    OpKind::ReduceLogSumExp}) {
    EXPECT_EQ(code(op, {{2, 3}}, {{"axes", std::vector<I>{2}}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {{2, 3}}, {{"axes", std::vector<I>{0, -2}}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {{2, 3}}, {{"axes", I{0}}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {{2, 3}}, {{"keepdims", 1.0}}), ErrorCode::kOnnxAttribute);
    EXPECT_EQ(code(op, {{2, 3}, {1}}), ErrorCode::kOnnxType) << "axes are integers";
  }
  EXPECT_EQ(code(OpKind::ArgMax, {{2, 3}}, {{"axis", I{2}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::ArgMin, {{2, 0}}, {{"axis", I{1}}}), ErrorCode::kOnnxShape);
}

TEST(Refused, NormalizationsThatDoNotFit) {
  const Shape x = {2, 6, 4};
  EXPECT_EQ(code(OpKind::LayerNormalization, {x, {5}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::LayerNormalization, {x, {4}}, {{"axis", I{3}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::LayerNormalization, {x, {4}}, {{"stash_type", I{11}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::RMSNormalization, {x, {2, 4}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::BatchNormalization, {x, {6}, {6}, {6}, {4}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::InstanceNormalization, {x, {4}, {6}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::InstanceNormalization, {{6}, {6}, {6}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::GroupNormalization, {x, {6}, {6}}), ErrorCode::kOnnxAttribute)
      << "no num_groups";
  EXPECT_EQ(code(OpKind::GroupNormalization, {x, {6}, {6}}, {{"num_groups", I{4}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::LpNormalization, {x}, {{"p", I{3}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::MeanVarianceNormalization, {x}), ErrorCode::kOnnxAttribute)
      << "axis 3 by default";
}

TEST(Refused, MovementThatDoesNotFit) {
  const Shape x = {1, 4, 6, 6};
  EXPECT_EQ(code(OpKind::DepthToSpace, {x}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::DepthToSpace, {x}, {{"blocksize", I{3}}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::DepthToSpace, {x}, {{"blocksize", I{2}}, {"mode", std::string("XYZ")}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::SpaceToDepth, {x}, {{"blocksize", I{4}}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Trilu, {{4}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(OpKind::Split, {{4}}, {{"axis", I{1}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::Split, {{4}}, {{"num_outputs", I{3}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(OpKind::Range, {{}, {}, {}}), ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(code(OpKind::PRelu, {{4}, {3, 4}}), ErrorCode::kOnnxShape);
  const auto padded = [](const std::vector<I>& pads, const Attributes& attributes) {
    Builder b("t");
    b.output(
        b.add(OpKind::Pad, {b.input("x", Dtype::f32, {4, 4}), b.integers("p", pads)}, attributes));
    const auto graph = b.finish();
    return graph ? ErrorCode::kInternal : graph.error().code;
  };
  EXPECT_EQ(padded({1, 1, 1}, {}), ErrorCode::kOnnxShape);
  EXPECT_EQ(padded({-3, 0, -2, 0}, {}), ErrorCode::kOnnxShape);
  EXPECT_EQ(padded({1, 1, 1, 1}, {{"mode", std::string("mirror")}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(padded({I{1} << 62, 0, 0, 0}, {}), ErrorCode::kOnnxTooLarge);
  const auto tiled = [](const std::vector<I>& repeats) {
    Builder b("t");
    b.output(b.add(OpKind::Tile, {b.input("x", Dtype::f32, {4, 4}), b.integers("r", repeats)}));
    const auto graph = b.finish();
    return graph ? ErrorCode::kInternal : graph.error().code;
  };
  EXPECT_EQ(tiled({2}), ErrorCode::kOnnxShape);
  EXPECT_EQ(tiled({2, -1}), ErrorCode::kOnnxShape);
  EXPECT_EQ(tiled({I{1} << 40, I{1} << 40}), ErrorCode::kOnnxTooLarge);
}

TEST(Refused, TypesThatAnOperatorDoesNotTake) {
  const auto code = [](OpKind op, Dtype dtype, int count = 1, const Attributes& attributes = {}) {
    const auto graph = graph_of(
        op, std::vector<Shape>(static_cast<size_t>(count), Shape{1, 2, 3, 3}), attributes, dtype);
    return graph ? ErrorCode::kInternal : graph.error().code;
  };
  EXPECT_EQ(code(OpKind::BitwiseNot, Dtype::f32), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::And, Dtype::f32, 2), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::Not, Dtype::i32), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::IsNaN, Dtype::i32), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::LessOrEqual, Dtype::boolean, 2), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::ReduceMean, Dtype::i32), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::ReduceSum, Dtype::boolean), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::Conv, Dtype::i32, 2), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::GlobalMaxPool, Dtype::i32), ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::AveragePool, Dtype::u8, 1, {{"kernel_shape", std::vector<I>{2, 2}}}),
            ErrorCode::kOnnxType);
  EXPECT_EQ(code(OpKind::Softsign, Dtype::i32), ErrorCode::kOnnxType);
}
}  // namespace
}  // namespace warploom::graph
