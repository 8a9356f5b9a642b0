// Shapes, types, order and folding.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "builder.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
Result<Shape> shape_after(OpKind op, const std::vector<Shape>& shapes,
                          const std::map<std::string, Attribute>& attributes = {},
                          const std::vector<int64_t>& list = {}) {
  Builder b("t");
  std::vector<TensorId> ids;
  for (size_t i = 0; i < shapes.size(); ++i)
    ids.push_back(b.input(fmt::format("x{}", i), Dtype::f32, shapes[i]));
  if (!list.empty()) ids.push_back(b.integers("list", list));
  const TensorId out = b.add(op, ids, attributes);
  b.output(out);
  WARPLOOM_TRY(const Graph graph, b.finish());
  return graph.tensor(out).shape;
}

ErrorCode code_after(OpKind op, const std::vector<Shape>& shapes,
                     const std::map<std::string, Attribute>& attributes = {},
                     const std::vector<int64_t>& list = {}) {
  const auto shape = shape_after(op, shapes, attributes, list);
  return shape ? ErrorCode::kInternal : shape.error().code;
}

using I = int64_t;

TEST(Infer, MatMulBroadcastsBatches) {
  EXPECT_EQ(*shape_after(OpKind::MatMul, {{4, 8}, {8, 2}}), (Shape{4, 2}));
  EXPECT_EQ(*shape_after(OpKind::MatMul, {{3, 1, 4, 8}, {5, 8, 2}}), (Shape{3, 5, 4, 2}));
}

TEST(Infer, MatMulPromotesVectors) {
  EXPECT_EQ(*shape_after(OpKind::MatMul, {{8}, {8}}), (Shape{}));
  EXPECT_EQ(*shape_after(OpKind::MatMul, {{8}, {3, 8, 2}}), (Shape{3, 2}));
  EXPECT_EQ(*shape_after(OpKind::MatMul, {{3, 4, 8}, {8}}), (Shape{3, 4}));
}

TEST(Infer, MatMulRefusesDifferentInnerSizes) {
  EXPECT_EQ(code_after(OpKind::MatMul, {{4, 8}, {7, 2}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code_after(OpKind::MatMul, {{}, {7, 2}}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code_after(OpKind::MatMul, {{2, 4, 8}, {3, 8, 2}}), ErrorCode::kOnnxShape);
}

TEST(Infer, GemmTransposesAndChecksC) {
  EXPECT_EQ(*shape_after(OpKind::Gemm, {{8, 4}, {2, 8}, {2}}, {{"transA", I{1}}, {"transB", I{1}}}),
            (Shape{4, 2}));
  EXPECT_EQ(code_after(OpKind::Gemm, {{4, 8}, {8, 2}, {5, 4, 2}}), ErrorCode::kOnnxShape);
}

TEST(Infer, ElementwiseBroadcasts) {
  EXPECT_EQ(*shape_after(OpKind::Add, {{3, 1, 5}, {4, 1}}), (Shape{3, 4, 5}));
  EXPECT_EQ(code_after(OpKind::Add, {{3}, {4}}), ErrorCode::kOnnxShape);
}

TEST(Infer, ReshapeFillsInOneSize) {
  EXPECT_EQ(*shape_after(OpKind::Reshape, {{2, 3, 4}}, {}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(code_after(OpKind::Reshape, {{2, 3, 4}}, {}, {5, -1}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code_after(OpKind::Reshape, {{2, 3, 4}}, {}, {-1, -1}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code_after(OpKind::Reshape, {{2, 3}}, {}, {1, 1, 0}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code_after(OpKind::Reshape, {{2, 3}}, {}, {I{1} << 40, I{1} << 40}),
            ErrorCode::kOnnxTooLarge);
}

TEST(Infer, ViewsAndMovement) {
  EXPECT_EQ(*shape_after(OpKind::Unsqueeze, {{3, 4}}, {}, {0, -1}), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(*shape_after(OpKind::Squeeze, {{1, 3, 1}}, {}, {-1}), (Shape{1, 3}));
  EXPECT_EQ(*shape_after(OpKind::Squeeze, {{1, 3, 1}}), (Shape{3}));
  EXPECT_EQ(*shape_after(OpKind::Flatten, {{2, 3, 4}}, {{"axis", I{2}}}), (Shape{6, 4}));
  EXPECT_EQ(*shape_after(OpKind::Transpose, {{2, 3, 4}}), (Shape{4, 3, 2}));
  EXPECT_EQ(*shape_after(OpKind::Transpose, {{2, 3, 4}}, {{"perm", std::vector<I>{1, 0, 2}}}),
            (Shape{3, 2, 4}));
  EXPECT_EQ(*shape_after(OpKind::Expand, {{3, 1}}, {}, {2, 1, 6}), (Shape{2, 3, 6}));
  EXPECT_EQ(*shape_after(OpKind::Concat, {{2, 3}, {2, 5}}, {{"axis", I{-1}}}), (Shape{2, 8}));
}

TEST(Infer, BadAxesAreAttributeErrors) {
  EXPECT_EQ(code_after(OpKind::Softmax, {{2, 3}}, {{"axis", I{2}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code_after(OpKind::Transpose, {{2, 3}}, {{"perm", std::vector<I>{0, 0}}}),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code_after(OpKind::Unsqueeze, {{2, 3}}, {}, {0, 0}), ErrorCode::kOnnxAttribute);
}

TEST(Infer, AttributesAreCheckedAndCompleted) {
  EXPECT_EQ(code_after(OpKind::Softmax, {{2, 3}}, {{"axis", 1.0}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code_after(OpKind::Relu, {{2, 3}}, {{"axis", I{1}}}), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code_after(OpKind::Gelu, {{2}}, {{"approximate", std::string("fast")}}),
            ErrorCode::kOnnxAttribute);
  Builder b("t");
  b.output(b.add(OpKind::Gelu, {b.input("x", Dtype::f32, {4})}));
  EXPECT_EQ(b.finish()->nodes[0].text("approximate"), "none");
}

TEST(Infer, TypesMustAgree) {
  Builder b("t");
  b.output(b.add(OpKind::Add, {b.input("x", Dtype::f32, {4}), b.input("y", Dtype::f16, {4})}));
  EXPECT_EQ(b.finish().error().code, ErrorCode::kOnnxType);
  Builder c("t");
  c.output(c.add(OpKind::Exp, {c.input("x", Dtype::i32, {4})}));
  EXPECT_EQ(c.finish().error().code, ErrorCode::kOnnxType);
}

TEST(Infer, DequantizeLinearWantsScalesThatFit) {
  const auto code = [](Dtype narrow, Dtype wide, Shape scales,
                       std::map<std::string, Attribute> attributes = {}) {
    Builder b("t");
    b.output(b.add(OpKind::DequantizeLinear,
                   {b.input("x", narrow, {4, 6}), b.input("s", wide, std::move(scales))},
                   std::move(attributes)));
    const auto graph = b.finish();
    return graph ? std::nullopt : std::optional(graph.error().code);
  };
  EXPECT_EQ(code(Dtype::e4m3, Dtype::f32, {6}), std::nullopt);
  EXPECT_EQ(code(Dtype::e4m3, Dtype::f32, {}), std::nullopt);
  EXPECT_EQ(code(Dtype::e4m3, Dtype::f32, {4}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(Dtype::f32, Dtype::f32, {}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::boolean, Dtype::f32, {}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::i64, Dtype::f32, {}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::i8, Dtype::i32, {}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::i8, Dtype::f32, {6}, {{"output_dtype", I{16}}}), ErrorCode::kOnnxAttribute);
}

TEST(Infer, DequantizeLinearWantsWholeBlocksAlongItsAxis) {
  const auto code = [](Shape scales, I axis, I block) {
    Builder b("t");
    b.output(b.add(OpKind::DequantizeLinear,
                   {b.input("x", Dtype::e4m3, {4, 6}), b.input("s", Dtype::f32, std::move(scales))},
                   {{"axis", axis}, {"block_size", block}}));
    const auto graph = b.finish();
    return graph ? std::nullopt : std::optional(graph.error().code);
  };
  EXPECT_EQ(code({4, 3}, 1, 2), std::nullopt);
  EXPECT_EQ(code({2, 6}, 0, 2), std::nullopt);
  EXPECT_EQ(code({4, 6}, 1, 1), std::nullopt);
  for (const auto& [scales, axis, block] : std::vector<std::tuple<Shape, I, I>>{{{6}, 1, 2},
                                                                                {{4, 2}, 1, 2},
                                                                                {{4, 2}, 1, 4},
                                                                                {{3, 6}, 1, 2},
                                                                                {{4, 0}, 1, 7},
                                                                                {{4, 1}, 1, 7}})
    EXPECT_EQ(code(scales, axis, block), ErrorCode::kOnnxShape) << to_text(scales);
  EXPECT_EQ(code({4, 3}, 1, -2), ErrorCode::kOnnxAttribute);
}

TEST(Infer, DequantizeLinearWantsZeroPointsWhereItsScalesAre) {
  const auto code = [](Shape scales, Shape zeros) {
    Builder b("t");
    b.output(b.add(OpKind::DequantizeLinear,
                   {b.input("x", Dtype::i8, {4, 8}), b.input("s", Dtype::f32, std::move(scales)),
                    b.input("z", Dtype::i8, std::move(zeros))},
                   {{"axis", I{1}}, {"block_size", I{4}}}));
    const auto graph = b.finish();
    return graph ? std::nullopt : std::optional(graph.error().code);
  };
  EXPECT_EQ(code({4, 2}, {4, 2}), std::nullopt);
  EXPECT_EQ(code({4, 2}, {2, 4}), ErrorCode::kOnnxShape);
}

TEST(Infer, ScaledMatMulWantsScalesOfBlocks) {
  const auto code = [](Dtype type, Shape a_scales, Shape b_scales, Dtype scales = Dtype::f32,
                       I to = 16) {
    Builder b("t");
    b.output(b.add(
        OpKind::ScaledMatMul,
        {b.input("a", type, {4, 8}), b.input("b", type, {8, 6}),
         b.input("sa", scales, std::move(a_scales)), b.input("sb", scales, std::move(b_scales))},
        {{"output_dtype", to}}));
    const auto graph = b.finish();
    return graph ? std::nullopt : std::optional(graph.error().code);
  };
  EXPECT_EQ(code(Dtype::e4m3, {4, 2}, {2, 3}), std::nullopt);
  EXPECT_EQ(code(Dtype::e5m2, {1, 1}, {8, 6}), std::nullopt);
  EXPECT_EQ(code(Dtype::e4m3, {3, 2}, {2, 3}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(Dtype::e4m3, {4}, {2, 3}), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(Dtype::f32, {4, 2}, {2, 3}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::u8, {4, 2}, {2, 3}), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::e4m3, {4, 2}, {2, 3}, Dtype::bf16), ErrorCode::kOnnxType);
  EXPECT_EQ(code(Dtype::e4m3, {4, 2}, {2, 3}, Dtype::f32, 6), ErrorCode::kOnnxAttribute);
}

TEST(Infer, UnknownNewShapeIsDynamic) {
  Builder b("t");
  b.output(
      b.add(OpKind::Reshape, {b.input("x", Dtype::f32, {4}), b.input("shape", Dtype::i64, {2})}));
  EXPECT_EQ(b.finish().error().code, ErrorCode::kOnnxDynamicShape);
}

TEST(Infer, CirclesAndUndefinedTensorsAreRefused) {
  Graph g;
  for (const char* name : {"x", "a", "b"})
    g.add_tensor({{name, Dtype::f32, {4}}, std::nullopt});
  g.inputs = {0};
  g.outputs = {2};
  g.nodes = {{OpKind::Add, "one", {0, 2}, {1}, {}}, {OpKind::Relu, "two", {1}, {2}, {}}};
  EXPECT_EQ(infer(g).error().code, ErrorCode::kOnnxCyclic);
  g.nodes.pop_back();
  EXPECT_EQ(infer(g).error().code, ErrorCode::kOnnxName);
  g.nodes = {{OpKind::Relu, "one", {0}, {2}, {}}, {OpKind::Relu, "two", {0}, {2}, {}}};
  EXPECT_EQ(infer(g).error().code, ErrorCode::kOnnxName);
}

TEST(Infer, AnOutputThatIsAnInputIsRefused) {
  Builder b("t");
  const TensorId x = b.input("x", Dtype::f32, {4});
  b.output(b.add(OpKind::Relu, {x}));
  b.output(x);
  EXPECT_EQ(b.finish().error().code, ErrorCode::kOnnxName);
}

TEST(Infer, NodesAreSortedSoThatTheyCanRun) {
  Graph g;
  for (const char* name : {"x", "a", "b"})
    g.add_tensor({{name, Dtype::f32, {4}}, std::nullopt});
  g.inputs = {0};
  g.outputs = {2};
  g.nodes = {{OpKind::Relu, "second", {1}, {2}, {}}, {OpKind::Exp, "first", {0}, {1}, {}}};
  EXPECT_EQ(infer(g)->nodes[0].name, "first");
}

TEST(Infer, SliceFollowsOnnxClamping) {
  const auto sliced = [](std::vector<I> starts, std::vector<I> ends, std::vector<I> axes,
                         std::vector<I> steps) {
    Builder b("t");
    const TensorId x = b.input("x", Dtype::f32, {20, 10, 5});
    const TensorId out = b.add(OpKind::Slice, {x, b.integers("s", starts), b.integers("e", ends),
                                               b.integers("a", axes), b.integers("t", steps)});
    b.output(out);
    return b.finish()->tensor(out).shape;
  };
  EXPECT_EQ(sliced({0, 0}, {3, 10}, {0, 1}, {1, 1}), (Shape{3, 10, 5}));
  EXPECT_EQ(sliced({1}, {1000}, {1}, {1}), (Shape{20, 9, 5}));
  EXPECT_EQ(sliced({0}, {-1}, {1}, {1}), (Shape{20, 9, 5}));
  EXPECT_EQ(sliced({20, 10, 4}, {0, 0, 1}, {0, 1, 2}, {-1, -3, -2}), (Shape{19, 3, 2}));
  EXPECT_EQ(sliced({1000}, {1000}, {1}, {1}), (Shape{20, 0, 5}));
  EXPECT_EQ(sliced({-1}, {INT64_MIN}, {1}, {-1}), (Shape{20, 10, 5}));
}

TEST(Simplify, ShapeArithmeticDisappears) {
  Builder b("t");
  const TensorId x = b.input("x", Dtype::f32, {6, 4});
  const TensorId shape = b.add(OpKind::Shape, {x});
  const TensorId first =
      b.add(OpKind::Gather, {shape, b.integers("i", std::vector<I>{0})}, {{"axis", I{0}}});
  const TensorId wanted =
      b.add(OpKind::Concat, {first, b.integers("two", std::vector<I>{2, 2})}, {{"axis", I{0}}});
  const TensorId y = b.add(OpKind::Reshape, {x, wanted});
  b.output(b.add(OpKind::Relu, {y}));
  const auto graph = simplify(*b.finish());
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ(graph->nodes[0].op, OpKind::Reshape);
  EXPECT_EQ(graph->tensor(graph->nodes[0].outputs[0]).shape, (Shape{6, 2, 2}));
}

TEST(Simplify, IdentityAndDropoutAreBypassed) {
  Builder b("t");
  const TensorId x = b.input("x", Dtype::f32, {6, 4});
  b.output(b.add(OpKind::Dropout, {b.add(OpKind::Relu, {b.add(OpKind::Identity, {x})})}));
  const auto graph = simplify(*b.finish());
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].op, OpKind::Relu);
  EXPECT_EQ(graph->nodes[0].inputs[0], graph->inputs[0]);
  EXPECT_EQ(graph->nodes[0].outputs[0], graph->outputs[0]);
}

TEST(Simplify, ASecondResultThatOthersReadTooBecomesTheOutput) {
  Graph given;
  for (const char* name : {"x", "a", "b", "y", "z"})
    given.add_tensor({{name, Dtype::f32, {6}}, std::nullopt});
  given.inputs = {0};
  given.outputs = {3, 4};
  given.nodes = {{OpKind::Split, "split", {0}, {1, 2}, {{"axis", int64_t{0}}}},
                 {OpKind::Identity, "same", {2}, {3}, {}},
                 {OpKind::Add, "sum", {1, 2}, {4}, {}}};
  const auto graph = simplify(*infer(given));
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->nodes.size(), 2u);
  const Node& split = graph->nodes[0];
  const Node& sum = graph->nodes[1];
  EXPECT_EQ(split.outputs, (std::vector{sum.inputs[0], graph->outputs[0]}));
  EXPECT_EQ(sum.inputs[1], graph->outputs[0]);
  EXPECT_EQ(graph->tensor(graph->outputs[0]).name, "y");
}

TEST(Simplify, AnOutputThatIsAnInputKeepsItsIdentity) {
  Builder b("t");
  b.output(b.add(OpKind::Identity, {b.input("x", Dtype::f32, {6})}));
  const auto graph = simplify(*b.finish());
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].op, OpKind::Identity);
}

TEST(Simplify, PartsOfASplitThatNobodyReadsStillCount) {
  Graph given;
  for (const char* name : {"x", "y", "z"})
    given.add_tensor({{name, Dtype::f32, {6}}, std::nullopt});
  given.inputs = {0};
  given.outputs = {1};
  for (const bool said : {true, false}) {
    given.nodes = {{OpKind::Split, "split", {0}, {1, 2}, {{"axis", I{0}}}}};
    if (said) given.nodes[0].attributes["num_outputs"] = I{2};
    const auto graph = decompose(*simplify(*infer(given)));
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (Shape{3}));
  }
}

TEST(Simplify, AnOutputThatIsKnownIsWrittenFromAConstant) {
  Builder b("t");
  const TensorId x = b.input("x", Dtype::f32, {6});
  const TensorId six = b.add(OpKind::Shape, {x});
  b.output(six);
  b.output(b.add(OpKind::Reshape, {x, six}));
  const auto once = simplify(*b.finish());
  for (const Graph& graph : {*once, *decompose(*once)}) {
    ASSERT_EQ(graph.nodes.size(), 2u) << to_text(graph);
    const Node& view = graph.nodes[0];
    const Node& known = graph.nodes[1];
    EXPECT_EQ(known.op, OpKind::Identity);
    EXPECT_EQ(known.outputs[0], graph.outputs[0]);
    EXPECT_FALSE(graph.tensor(graph.outputs[0]).constant);
    EXPECT_TRUE(graph.tensor(known.inputs[0]).constant);
    EXPECT_EQ(view.op, OpKind::Identity);
  }
}
}  // namespace
}  // namespace warploom::graph
