// Operators of operator sets 7 to 12, whose forms those from 13 on have changed.
#include <cmath>
#include <string>
#include <vector>
#include "base/error.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
using Numbers = std::vector<double>;

TEST(Conversion, SoftmaxFlattensAllFromItsAxisOn) {
  const std::string x = input_text("x", {"1", "2", "2"});
  const double share = 1 / (1 + std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0));
  for (const std::string& axis : {std::string(), integer_text("axis", 1)}) {
    const Numbers y =
        made_of(model_text(node_text("Softmax", {"x"}, {"y"}, axis) + x, 11), {{0, 1, 2, 3}});
    ASSERT_EQ(y.size(), 4U);
    EXPECT_NEAR(y[3], share, 1e-12);
    const auto graph = parse_onnx(model_text(node_text("Softmax", {"x"}, {"y"}, axis) + x, 11));
    EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (graph::Shape{1, 2, 2}));
  }
  const Numbers last =
      made_of(model_text(node_text("Softmax", {"x"}, {"y"}, integer_text("axis", -1)) + x, 11),
              {{0, 1, 2, 3}});
  EXPECT_NEAR(last[3], 1 / (1 + std::exp(-1.0)), 1e-12);
  const Numbers present =
      made_of(model_text(node_text("Softmax", {"x"}, {"y"}, integer_text("axis", 1)) + x, 13),
              {{0, 1, 2, 3}});
  EXPECT_NEAR(present[3], 1 / (1 + std::exp(-2.0)), 1e-12);
}

TEST(Conversion, AxesAndSplitsOnceWereAttributes) {
  EXPECT_EQ(
      made_of(model_text(node_text("Unsqueeze", {"x"}, {"u"}, integers_text("axes", {0, 2})) +
                             node_text("Squeeze", {"u"}, {"s"}, integers_text("axes", {2})) +
                             node_text("ReduceSum", {"s"}, {"y"}, integers_text("axes", {1})) +
                             input_text("x", {"3"}),
                         11),
              {{1, 2, 4}}),
      (Numbers{7}));
  EXPECT_EQ(made_of(model_text(node_text("Split", {"x"}, {"a", "y"},
                                         integers_text("split", {1, 2}) + integer_text("axis", 0)) +
                                   input_text("x", {"3"}),
                               9),
                    {{1, 2, 4}}),
            (Numbers{2, 4}));
}

TEST(Conversion, BoundsOfClipOnceWereAttributes) {
  const std::string x = input_text("x", {"3"});
  EXPECT_EQ(
      made_of(
          model_text(
              node_text("Clip", {"x"}, {"y"}, real_text("min", -1) + real_text("max", 6)) + x, 7),
          {{-3, 2, 9}}),
      (Numbers{-1, 2, 6}));
  EXPECT_EQ(made_of(model_text(node_text("Clip", {"x"}, {"y"}, real_text("max", 6)) + x, 10),
                    {{-3, 2, 9}}),
            (Numbers{-3, 2, 6}));
  EXPECT_EQ(made_of(model_text(node_text("Clip", {"x"}, {"y"}) + x, 7), {{-3, 2, 9}}),
            (Numbers{-3, 2, 9}));
  const auto half = parse_onnx(model_text(
      node_text("Clip", {"x"}, {"y"}, real_text("max", 6)) + input_text("x", {"3"}, 10), 8));
  EXPECT_TRUE(half) << describe(half.error());
}

TEST(Conversion, PadsAndSlicesOnceWereAttributes) {
  EXPECT_EQ(made_of(model_text(node_text("Pad", {"x"}, {"y"},
                                         integers_text("pads", {1, 1}) + real_text("value", 7)) +
                                   input_text("x", {"2"}),
                               10),
                    {{1, 2}}),
            (Numbers{7, 1, 2, 7}));
  EXPECT_EQ(made_of(model_text(node_text("Slice", {"x"}, {"y"},
                                         integers_text("starts", {1}) +
                                             integers_text("ends", {9223372036854775807})) +
                                   input_text("x", {"3"}),
                               9),
                    {{1, 2, 4}}),
            (Numbers{2, 4}));
}

TEST(Conversion, UpsampleAndTheFirstResizeRoundDown) {
  const std::string x = input_text("x", {"1", "1", "1", "3"});
  const std::string scales =
      "initializer { name: \"s\" data_type: 1 dims: 4 float_data: [1, 1, 1, 2] } ";
  const Numbers twice = {1, 1, 2, 2, 4, 4};
  EXPECT_EQ(made_of(model_text(node_text("Upsample", {"x"}, {"y"},
                                         "attribute { name: \"scales\" type: FLOATS floats: [1, 1, "
                                         "1, 2] } ") +
                                   x,
                               7),
                    {{1, 2, 4}}),
            twice);
  EXPECT_EQ(
      made_of(model_text(node_text("Upsample", {"x", "s"}, {"y"}) + x + scales, 9), {{1, 2, 4}}),
      twice);
  EXPECT_EQ(
      made_of(model_text(node_text("Resize", {"x", "s"}, {"y"},
                                   "attribute { name: \"mode\" type: STRING s: \"linear\" } ") +
                             x + scales,
                         10),
              {{1, 2, 4}}),
      (Numbers{1, 1.5, 2, 3, 4, 4}));
}

TEST(Conversion, WhatSaysSomethingInTrainingAloneGoes) {
  EXPECT_EQ(made_of(model_text(node_text("Dropout", {"x"}, {"d"}, real_text("ratio", 0.5)) +
                                   node_text("Relu", {"d"}, {"y"}) + input_text("x", {"2"}),
                               7),
                    {{-1, 2}}),
            (Numbers{0, 2}));
  const std::string statistics =
      "initializer { name: \"o\" data_type: 1 dims: 1 float_data: 1 } "
      "initializer { name: \"z\" data_type: 1 dims: 1 float_data: 0 } ";
  const auto normalized = [&](int spatial) {
    return model_text(node_text("BatchNormalization", {"x", "o", "z", "z", "o"}, {"y"},
                                integer_text("spatial", spatial) + real_text("epsilon", 0)) +
                          input_text("x", {"2", "1"}) + statistics,
                      7);
  };
  EXPECT_EQ(made_of(normalized(1), {{-1, 2}}), (Numbers{-1, 2}));
  EXPECT_EQ(refusal_of(normalized(0)).code, ErrorCode::kOnnxAttribute);
}

TEST(Conversion, TouchesNothingOfPresentOperatorSets) {
  const std::string text =
      model_text(node_text("Clip", {"x"}, {"y"}, real_text("max", 6)) + input_text("x", {"3"}), 13);
  EXPECT_EQ(refusal_of(text).code, ErrorCode::kOnnxAttribute);
}
}  // namespace
}  // namespace warploom
