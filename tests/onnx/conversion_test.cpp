// Operators of operator sets 1 to 12, whose forms those from 13 on have changed.
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
}

TEST(Conversion, StatisticsOnceWereOfEachElement) {
  const std::string statistics =
      "initializer { name: \"s\" data_type: 1 dims: 2 float_data: [2, 3] } "
      "initializer { name: \"b\" data_type: 1 dims: 2 float_data: [10, 20] } "
      "initializer { name: \"m\" data_type: 1 dims: 2 float_data: [1, 2] } "
      "initializer { name: \"v\" data_type: 1 dims: 2 float_data: [4, 16] } ";
  EXPECT_EQ(made_of(model_text(node_text("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"},
                                         integer_text("spatial", 0) + real_text("epsilon", 0)) +
                                   input_text("x", {"2", "2"}) + statistics,
                               8),
                    {{3, 6, 5, -2}}),
            (Numbers{12, 23, 14, 17}));
}

TEST(Conversion, ScatterIsScatterElementsByItsFirstName) {
  const std::string places = "initializer { name: \"i\" data_type: 7 dims: 2 int64_data: [2, 0] } ";
  EXPECT_EQ(made_of(model_text(node_text("Scatter", {"x", "i", "u"}, {"y"}) + places +
                                   input_text("x", {"3"}) + input_text("u", {"2"}),
                               10),
                    {{1, 2, 4}, {7, 8}}),
            (Numbers{8, 2, 7}));
}

TEST(Conversion, MasksOfDropoutOnceWereNumbers) {
  EXPECT_EQ(made_of(model_text(node_text("Dropout", {"x"}, {"d", "mask"}) +
                                   node_text("Add", {"d", "mask"}, {"y"}) + input_text("x", {"2"}),
                               7),
                    {{-1, 2}}),
            (Numbers{0, 3}));
}

// Operator sets 1 to 6.
std::string first_text(const std::string& body, int opset) {
  return model_text(body, opset);
}

TEST(FirstOperatorSets, OperandsStretchFromAnAxisOn) {
  const std::string inputs = input_text("a", {"2", "3", "1"}) + input_text("b", {"3"});
  const std::string named = integer_text("broadcast", 1) + integer_text("axis", 1);
  EXPECT_EQ(made_of(first_text(node_text("Add", {"a", "b"}, {"y"}, named) + inputs, 6),
                    {{1, 2, 3, 4, 5, 6}, {10, 20, 30}}),
            (Numbers{11, 22, 33, 14, 25, 36}));
  const std::string consumed = integers_text("consumed_inputs", {0, 0});
  EXPECT_EQ(made_of(first_text(node_text("Mul", {"a", "b"}, {"y"},
                                         integer_text("broadcast", 1) + integer_text("axis", -2) +
                                             consumed) +
                                   inputs,
                               1),
                    {{1, 2, 3, 4, 5, 6}, {10, 20, 30}}),
            (Numbers{10, 40, 90, 40, 100, 180}));
  EXPECT_EQ(
      refusal_of(first_text(node_text("Add", {"a", "b"}, {"y"},
                                      integer_text("broadcast", 1) + integer_text("axis", 3)) +
                                inputs,
                            6))
          .code,
      ErrorCode::kOnnxAttribute);
}

TEST(FirstOperatorSets, AnOperandMayBeMadeByNodes) {
  EXPECT_EQ(
      made_of(first_text(node_text("Neg", {"b"}, {"n"}) +
                             node_text("Sub", {"a", "n"}, {"y"},
                                       integer_text("broadcast", 1) + integer_text("axis", 0)) +
                             input_text("a", {"2", "2"}) + input_text("b", {"2"}),
                         6),
              {{1, 2, 3, 4}, {10, 20}}),
      (Numbers{11, 12, 23, 24}));
}

TEST(FirstOperatorSets, ShapesAndRepeatsWereAttributesOrOfOneAxis) {
  const std::string x = input_text("x", {"2", "2"});
  EXPECT_EQ(
      parse_onnx(
          first_text(node_text("Reshape", {"x"}, {"y"}, integers_text("shape", {4, -1})) + x, 4))
          ->tensors.back()
          .shape,
      (graph::Shape{4, 1}));
  const std::string constants =
      "initializer { name: \"t\" data_type: 1 float_data: 2 } "
      "initializer { name: \"a\" data_type: 1 float_data: 1 } ";
  EXPECT_EQ(made_of(first_text(node_text("Tile", {"x", "t", "a"}, {"y"}) + x + constants, 5),
                    {{1, 2, 3, 4}}),
            (Numbers{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(refusal_of(first_text(node_text("Tile", {"x", "t", "a"}, {"y"}) + x +
                                      input_text("t", {}) + input_text("a", {}),
                                  5))
                .code,
            ErrorCode::kOnnxDynamicShape);
}

TEST(FirstOperatorSets, TypesHadNames) {
  const auto cast = [](const std::string& to) {
    return first_text(node_text("Cast", {"x"}, {"y"},
                                "attribute { name: \"to\" type: STRING s: \"" + to + "\" } ") +
                          input_text("x", {"2"}),
                      5);
  };
  EXPECT_EQ(made_of(cast("INT32"), {{1.5, -2.5}}), (Numbers{1, -2}));
  EXPECT_EQ(refusal_of(cast("WORD")).code, ErrorCode::kOnnxAttribute);
}

TEST(FirstOperatorSets, SlopesAreOfChannels) {
  EXPECT_EQ(made_of(first_text(node_text("PRelu", {"x", "s"}, {"y"}) +
                                   input_text("x", {"1", "2", "2"}) + input_text("s", {"2"}),
                               6),
                    {{-1, 1, -1, -2}, {10, 20}}),
            (Numbers{-10, 1, -20, -40}));
}

TEST(FirstOperatorSets, DefaultsWereOthers) {
  const std::string x = input_text("x", {"1", "2"});
  EXPECT_EQ(
      parse_onnx(first_text(node_text("Concat", {"x", "x"}, {"y"}) + x, 3))->tensors.back().shape,
      (graph::Shape{1, 4}));
  const Numbers selu = made_of(first_text(node_text("Selu", {"x"}, {"y"}) + x, 1), {{1, 2}});
  EXPECT_DOUBLE_EQ(selu[0], static_cast<double>(1.0507F));
}

TEST(FirstOperatorSets, ImagesGrowByTwoScales) {
  const auto scaled = [](const std::string& mode) {
    return first_text(
        node_text("Upsample", {"x"}, {"y"},
                  real_text("height_scale", 1) + real_text("width_scale", 2) +
                      "attribute { name: \"mode\" type: STRING s: \"" + mode + "\" } ") +
            input_text("x", {"1", "1", "1", "2"}),
        1);
  };
  EXPECT_EQ(made_of(scaled("nearest"), {{1, 3}}), (Numbers{1, 1, 3, 3}));
  EXPECT_EQ(made_of(scaled("bilinear"), {{1, 3}}), (Numbers{1, 2, 3, 3}));
}

TEST(FirstOperatorSets, PaddingsAndPowersHadOtherNamesAndKinds) {
  const std::string x = input_text("x", {"1", "1", "2"});
  EXPECT_EQ(
      made_of(
          first_text(
              node_text("Pad", {"x"}, {"y"}, integers_text("paddings", {0, 0, 1, 0, 0, 0})) + x, 1),
          {{1, 2}}),
      (Numbers{0, 1, 2}));
  EXPECT_EQ(made_of(first_text(node_text("GlobalLpPool", {"x"}, {"y"}, real_text("p", 1)) + x, 1),
                    {{1, -2}}),
            (Numbers{3}));
  EXPECT_EQ(
      refusal_of(first_text(node_text("GlobalLpPool", {"x"}, {"y"}, real_text("p", 1.5)) + x, 1))
          .code,
      ErrorCode::kOnnxAttribute);
}

TEST(FirstOperatorSets, TrainingIsRefused) {
  const std::string x = input_text("x", {"2"});
  const auto dropout = [&](const std::string& more) {
    return first_text(node_text("Dropout", {"x"}, {"y"}, more) + x, 6);
  };
  EXPECT_EQ(made_of(dropout(integer_text("is_test", 1)), {{1, 2}}), (Numbers{1, 2}));
  EXPECT_EQ(refusal_of(dropout("")).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal_of(dropout(integer_text("is_test", 0))).code, ErrorCode::kOnnxAttribute);
}

TEST(FirstOperatorSets, ModelsOfTheFirstFilesNameNone) {
  const std::string body = node_text("Relu", {"x"}, {"y"}, integers_text("consumed_inputs", {0})) +
                           input_text("x", {"2"}) + "output { name: \"y\" } ";
  EXPECT_EQ(made_of("ir_version: 2 graph { name: \"g\" " + body + "}", {{-1, 2}}), (Numbers{0, 2}));
  EXPECT_EQ(refusal_of("ir_version: 3 graph { name: \"g\" " + body + "}").code,
            ErrorCode::kOnnxOpset);
}

TEST(Conversion, TouchesNothingOfPresentOperatorSets) {
  const std::string text =
      model_text(node_text("Clip", {"x"}, {"y"}, real_text("max", 6)) + input_text("x", {"3"}), 13);
  EXPECT_EQ(refusal_of(text).code, ErrorCode::kOnnxAttribute);
}
}  // namespace
}  // namespace warploom
