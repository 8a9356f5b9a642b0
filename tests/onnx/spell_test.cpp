#include <gtest/gtest.h>
#include "onnx/load.h"

namespace warploom {
namespace {
std::string spelled(std::string_view expression, Dtype dtype = Dtype::f32) {
  const auto model = spell_onnx(expression, "m", dtype);
  return model ? graph::to_text(model->graph)
               : std::string(code_text(model.error().code)) + " " + model.error().place;
}

TEST(Spell, ReadsNestedOperatorsWithAttributesByName) {
  EXPECT_EQ(spelled("relu(Conv(x[1,3,8,8], w[4,3,3,3], pads=[1,1,1,1]))"),
            "graph m\n  input x f32 [1,3,8,8]\n  input w f32 [4,3,3,3]\n"
            "  t1 = Conv(x, w) group=1 pads=[1,1,1,1] : f32 [1,4,8,8]\n  y = Relu(t1) : f32 "
            "[1,4,8,8]\n  output y f32 [1,4,8,8]\n");
}

TEST(Spell, ReadsConstantsAbsentOperandsAndTypes) {
  const std::string text = spelled("clip(reducesum(x[4,8]:bf16, [1]), _, 6)", Dtype::bf16);
  EXPECT_NE(text.find("input x bf16 [4,8]"), text.npos) << text;
  EXPECT_NE(text.find("Clip(t1, _, c2)"), text.npos) << text;
}

TEST(Spell, NamesAnInputAgainWithoutItsShape) {
  const std::string text = spelled("mul(x[5], sigmoid(x))");
  EXPECT_NE(text.find("y = Mul(x, t1) : f32 [5]"), text.npos) << text;
}

TEST(Spell, BothFormsReadAsTheSameGraph) {
  const auto model = spell_onnx("softmax(x[4,8], axis=0)", "m", Dtype::f32);
  ASSERT_TRUE(model);
  EXPECT_EQ(graph::to_text(*parse_onnx(model->binary)), graph::to_text(model->graph));
  EXPECT_EQ(graph::to_text(*parse_onnx(model->text)), graph::to_text(model->graph));
}

TEST(Spell, ErrorsNameTheColumn) {
  EXPECT_EQ(spelled("relu(x)"), "usage EXPRESSION, column 6");
  EXPECT_EQ(spelled("relu(x[3)"), "usage EXPRESSION, column 9");
  EXPECT_EQ(spelled("nothing(x[3])"), "usage EXPRESSION, column 1");
  EXPECT_EQ(spelled("relu(x[3])z"), "usage EXPRESSION, column 11");
  EXPECT_EQ(spelled("softmax(x[3], depth=1)"), "usage EXPRESSION, column 21");
  EXPECT_EQ(spelled(""), "usage EXPRESSION, column 1");
  EXPECT_EQ(spelled("x[3]"), "usage EXPRESSION, column 5");
  EXPECT_EQ(spelled("relu(y[3])"), "usage EXPRESSION, column 6");
  EXPECT_EQ(spelled("add(x[3], t1[3])"), "usage EXPRESSION, column 11");
  EXPECT_EQ(spelled("relu(x[99999999999999])").substr(0, 14), "onnx-too-large");
  EXPECT_EQ(spelled("add(x[3], z[4])").substr(0, 10), "onnx-shape");
}

TEST(Spell, ManyConstantsBesideEachOtherAreNotDeep) {
  std::string text = "sum(x[4]";
  for (int i = 0; i < 300; ++i) text += ", 1";
  EXPECT_TRUE(spell_onnx(text + ")", "m", Dtype::f32));
}

TEST(Spell, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "relu(";
  EXPECT_EQ(spelled(text).substr(0, 5), "usage");
}
}  // namespace
}  // namespace warploom
