// Dimensions that a model leaves open.
#include <filesystem>
#include <string>
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
const std::string kModel =
    model_text(node_text("Add", {"x", "z"}, {"y"}) + input_text("x", {"batch", "3", "?"}) +
               input_text("z", {"batch", "1", "1"}));

graph::Shape shape_of(const ModelOptions& options) {
  const auto graph = parse_onnx(kModel, "model", options);
  if (graph) return graph->tensor(graph->outputs[0]).shape;
  ADD_FAILURE() << describe(graph.error());
  return {};
}

TEST(Dims, GetTheirSizesByNameAndByPlace) {
  EXPECT_EQ(shape_of({.dims = {"batch=4", "x.2=5"}}), (graph::Shape{4, 3, 5}));
  EXPECT_EQ(shape_of({.dims = {"z.0=4", "x.2=5"}}), (graph::Shape{4, 3, 5}));
  EXPECT_EQ(shape_of({.dims = {"batch=4", "batch=4", "x.0=4", "x.2=0"}}), (graph::Shape{4, 3, 0}));
}

TEST(Dims, ThatAreOpenAreListedWithTheFlagsToGive) {
  const Error all = refusal_of(kModel);
  EXPECT_EQ(all.code, ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(all.remedy, "give them: --dim batch=SIZE --dim x.2=SIZE");
  const Error one = refusal_of(kModel, {.dims = {"batch=4"}});
  EXPECT_EQ(one.code, ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(one.remedy, "give it: --dim x.2=SIZE");
}

TEST(Dims, OfAwkwardNamesAreQuotedForAShell) {
  const std::string text =
      model_text(node_text("Relu", {"x"}, {"y"}) + input_text("x", {"past's + 1"}));
  EXPECT_EQ(refusal_of(text).remedy, "give it: --dim 'past'\\''s + 1'=SIZE");
  EXPECT_TRUE(parse_onnx(text, "model", {.dims = {"past's + 1=4"}}));
}

TEST(Dims, ThatTheModelLacksAreRefusedWithThoseThatItHas) {
  const Error error = refusal_of(kModel, {.dims = {"bacth=4"}});
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_EQ(error.expected, "one of batch, x.2");
  EXPECT_NE(error.remedy.find("batch"), std::string::npos);
  EXPECT_EQ(refusal_of(kModel, {.dims = {"x.1=3"}}).code, ErrorCode::kUsage);
}

TEST(Dims, OfNoFormAreRefused) {
  for (const char* wrong : {"batch", "batch=", "=4", "batch=-1", "batch=4x", "batch=1.5", ""})
    EXPECT_EQ(refusal_of(kModel, {.dims = {wrong}}).code, ErrorCode::kUsage) << wrong;
  EXPECT_EQ(refusal_of(kModel, {.dims = {"batch=99999999999999999999"}}).code, ErrorCode::kUsage);
}

TEST(Dims, OfTwoSizesAreRefused) {
  for (const char* other : {"batch=5", "x.0=5"})
    EXPECT_EQ(refusal_of(kModel, {.dims = {"batch=4", other}}).code, ErrorCode::kFlagsContradict);
}

TEST(Dims, DecideWhatDependsOnShapes) {
  const std::string text =
      model_text(node_text("Shape", {"x"}, {"s"}) +
                 node_text("Constant", {}, {"zero"}, integer_text("value_int", 0)) +
                 node_text("Gather", {"s", "zero"}, {"n"}, integer_text("axis", 0)) +
                 node_text("Constant", {}, {"axis"}, integers_text("value_ints", {0})) +
                 node_text("Unsqueeze", {"n", "axis"}, {"rows"}) +
                 node_text("Constant", {}, {"rest"}, integers_text("value_ints", {-1})) +
                 node_text("Concat", {"rows", "rest"}, {"to"}, integer_text("axis", 0)) +
                 node_text("Reshape", {"x", "to"}, {"y"}) + input_text("x", {"batch", "2", "3"}));
  const auto graph = parse_onnx(text, "model", {.dims = {"batch=4"}});
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (graph::Shape{4, 6}));
  EXPECT_EQ(graph->nodes.size(), 1U);
}

TEST(Dims, GoAlongIntoTheText) {
  const ScratchFolder scratch("dims");
  const std::filesystem::path file = scratch.path() / "m.textproto";
  ASSERT_TRUE(write_file(file, kModel));
  const ModelOptions options{.dims = {"batch=4", "x.2=5"}};
  const auto text = onnx_text(file, options);
  ASSERT_TRUE(text) << describe(text.error());
  EXPECT_EQ(to_text(*parse_onnx(*text)), to_text(*load_onnx(file, options)));
}
}  // namespace
}  // namespace warploom
