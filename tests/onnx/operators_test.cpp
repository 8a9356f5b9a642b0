// What operators of ONNX make of numbers, of integers to the ends of their types and of tensors
// without elements.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
using Numbers = std::vector<double>;
using Wholes = std::vector<int64_t>;

void expect_near(const Numbers& found, const Numbers& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(found[i])) << i;
    else
      EXPECT_NEAR(found[i], wanted[i], 1e-12 * std::max(1.0, std::fabs(wanted[i]))) << i;
  }
}

// op(x) of f32.
Numbers made_by(const std::string& op, const std::vector<float>& x, const std::string& more = "",
                int opset = 24) {
  return made_of(
      model_text(node_text(op, {"x"}, {"y"}, more) + input_text("x", {std::to_string(x.size())}),
                 opset),
      {x});
}

TEST(Operators, InverseTrigonometryReachesItsEnds) {
  const std::vector<float> x = {-1, -0.5, 0, 1e-20F, 0.25, 1};
  Numbers sines;
  Numbers cosines;
  Numbers tangents;
  for (const float one : x) {
    sines.push_back(std::asin(static_cast<double>(one)));
    cosines.push_back(std::acos(static_cast<double>(one)));
    tangents.push_back(std::atan(static_cast<double>(one)));
  }
  expect_near(made_by("Asin", x), sines);
  expect_near(made_by("Acos", x), cosines);
  expect_near(made_by("Atan", x), tangents);
  EXPECT_TRUE(std::isnan(made_by("Asin", {1.5F})[0]));
  expect_near(made_by("Atan", {1e30F, -HUGE_VALF}), {std::atan(1e30), std::atan(-HUGE_VAL)});
}

TEST(Operators, SwishAndShrinkTakeTheirAttributes) {
  expect_near(made_by("Swish", {2, -3}), {2 / (1 + std::exp(-2.0)), -3 / (1 + std::exp(3.0))});
  expect_near(made_by("Swish", {2}, real_text("alpha", 0.5)), {2 / (1 + std::exp(-1.0))});
  expect_near(made_by("Shrink", {-2, -0.25, 2}), {-2, 0, 2});
  expect_near(made_by("Shrink", {-2, 1, 2}, real_text("lambd", 1) + real_text("bias", 0.5)),
              {-1.5, 0, 1.5});
}

TEST(Operators, BatchNormalizationInTrainingTakesTheBatchsOwnStatistics) {
  const auto trained = [](int output) {
    std::vector<std::string> outputs(3);
    outputs[0] = "first";
    outputs[static_cast<size_t>(output)] = "y";
    return made_of(
        model_text(node_text("BatchNormalization", {"x", "s", "b", "m", "v"}, outputs,
                             integer_text("training_mode", 1) + real_text("epsilon", 0) +
                                 real_text("momentum", 0.75)) +
                       input_text("x", {"2", "1", "2"}) + input_text("s", {"1"}) +
                       input_text("b", {"1"}) + input_text("m", {"1"}) + input_text("v", {"1"}),
                   15),
        {{1, 1, 5, 5}, {3}, {10}, {8}, {16}});
  };
  expect_near(trained(0), {7, 7, 13, 13});
  expect_near(trained(1), {0.75 * 8 + 0.25 * 3});
  expect_near(trained(2), {0.75 * 16 + 0.25 * 4});
}

TEST(Operators, DropoutThatDropsNothingMayTrain) {
  const std::string flags =
      "initializer { name: \"r\" data_type: 1 float_data: 0 } "
      "initializer { name: \"half\" data_type: 1 float_data: 0.5 } "
      "initializer { name: \"t\" data_type: 9 int32_data: 1 } ";
  const auto dropout = [&](const std::string& ratio) {
    return model_text(node_text("Dropout", {"x", ratio, "t"}, {"y"}) + input_text("x", {"2"}) +
                      flags);
  };
  expect_near(made_of(dropout("r"), {{1, 2}}), {1, 2});
  EXPECT_EQ(refusal_of(dropout("half")).code, ErrorCode::kOnnxAttribute);
}

TEST(Operators, ModOfFloatsIsExact) {
  const auto of = [](int fmod, const std::vector<float>& a, const std::vector<float>& b) {
    const std::string size = std::to_string(a.size());
    return made_of(model_text(node_text("Mod", {"a", "b"}, {"y"}, integer_text("fmod", fmod)) +
                              input_text("a", {size}) + input_text("b", {size})),
                   {a, b});
  };
  EXPECT_EQ(of(1, {-7.5, 7.5, 1e30F, 5}, {2, -2, 3, HUGE_VALF}),
            (Numbers{-1.5, 1.5, std::fmod(static_cast<double>(1e30F), 3), 5}));
  EXPECT_EQ(of(0, {-7.5, 7.5, 6}, {2, -2, 3}), (Numbers{0.5, -0.5, 0}));
}

TEST(Operators, HardmaxTakesTheFirstOfTheLargest) {
  EXPECT_EQ(made_of(model_text(node_text("Hardmax", {"x"}, {"y"}) + input_text("x", {"2", "3"})),
                    {{1, 5, 5, 9, 2, 9}}),
            (Numbers{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(made_of(model_text(node_text("Hardmax", {"x"}, {"y"}, integer_text("axis", 0)) +
                               input_text("x", {"2", "3"})),
                    {{1, 5, 5, 9, 2, 9}}),
            (Numbers{0, 1, 0, 1, 0, 1}));
}

TEST(Operators, OneHotAndEyeLikeComparePlaces) {
  const std::string values =
      "initializer { name: \"d\" data_type: 7 int64_data: 3 } "
      "initializer { name: \"v\" data_type: 1 dims: 2 float_data: [-1, 4] } ";
  EXPECT_EQ(made_of(model_text(node_text("OneHot", {"x", "d", "v"}, {"y"}) + values +
                               input_text("x", {"3"})),
                    {{0, 2, -2}}),
            (Numbers{4, -1, -1, -1, -1, 4, -1, 4, -1}));
  EXPECT_EQ(made_of(model_text(node_text("EyeLike", {"x"}, {"y"}, integer_text("k", 1)) +
                               input_text("x", {"2", "3"})),
                    {{9, 9, 9, 9, 9, 9}}),
            (Numbers{0, 1, 0, 0, 0, 1}));
}

// op of integers of one type, as the reference has them.
Wholes whole_of(const std::string& op, Dtype dtype, const std::vector<Wholes>& inputs,
                const std::string& more = "", const std::string& constants = "",
                const std::vector<std::string>& further = {}) {
  std::vector<std::string> names;
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(fmt::format("x{}", i));
    text += input_text(names.back(), {std::to_string(inputs[i].size())}, onnx_type_of(dtype));
  }
  names.insert(names.end(), further.begin(), further.end());
  const auto graph = parse_onnx(model_text(node_text(op, names, {"y"}, more) + text + constants));
  if (!graph) {
    ADD_FAILURE() << describe(graph.error());
    return {};
  }
  std::vector<std::vector<std::byte>> data;
  for (const Wholes& input : inputs) {
    data.emplace_back(input.size() * static_cast<size_t>(bytes_of(dtype)));
    for (size_t i = 0; i < input.size(); ++i)
      store_integer(dtype, data.back().data(), static_cast<int64_t>(i), input[i]);
  }
  const auto made =
      graph::evaluate_exactly(*graph, std::vector<graph::Bytes>(data.begin(), data.end()));
  return made ? (*made)[0].integers : Wholes{};
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

TEST(Integers, AreExactBeyondWhatADoubleHolds) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(whole_of("Add", Dtype::i64, {{odd, kMost}, {0, 1}}), (Wholes{odd, kLeast}));
  EXPECT_EQ(whole_of("Mul", Dtype::i64, {{odd, 3037000500}, {3, 3037000500}}),
            (Wholes{3 * odd, -9223372036709301616}));
  EXPECT_EQ(whole_of("Equal", Dtype::i64, {{odd}, {odd - 1}}), (Wholes{0}));
  EXPECT_EQ(whole_of("Max", Dtype::i64, {{odd}, {odd - 1}}), (Wholes{odd}));
  EXPECT_EQ(whole_of("Abs", Dtype::i64, {{kLeast, -odd}}), (Wholes{kLeast, odd}));
}

TEST(Integers, WrapAsTheirTypesDo) {
  EXPECT_EQ(whole_of("Add", Dtype::i32, {{2147483647}, {1}}), (Wholes{-2147483648}));
  EXPECT_EQ(whole_of("Mul", Dtype::i32, {{65536, 123456789}, {65536, 987654321}}),
            (Wholes{0, -67153019}));
  EXPECT_EQ(whole_of("Add", Dtype::u8, {{200}, {100}}), (Wholes{44}));
  EXPECT_EQ(whole_of("Sub", Dtype::i8, {{-100}, {100}}), (Wholes{56}));
  EXPECT_EQ(whole_of("Neg", Dtype::i32, {{-2147483648}}), (Wholes{-2147483648}));
}

TEST(Integers, QuotientsAreCutAndRestsHaveTheirSigns) {
  const Wholes a = {-7, 7, -7, 7, kLeast};
  const Wholes b = {2, -2, -2, 2, 3};
  EXPECT_EQ(whole_of("Div", Dtype::i64, {a, b}), (Wholes{-3, -3, 3, 3, kLeast / 3}));
  EXPECT_EQ(whole_of("Mod", Dtype::i64, {a, b}), (Wholes{1, -1, -1, 1, 1}));
  EXPECT_EQ(whole_of("Mod", Dtype::i64, {a, b}, integer_text("fmod", 1)),
            (Wholes{-1, 1, -1, 1, kLeast % 3}));
}

TEST(Integers, AreCastToEachOtherByWrapping) {
  const auto cast_to = [](Dtype to, Dtype from, const Wholes& x) {
    return whole_of("Cast", from, {x}, integer_text("to", onnx_type_of(to)));
  };
  EXPECT_EQ(cast_to(Dtype::i32, Dtype::i64, {(int64_t{1} << 40) + 5, kMost}), (Wholes{5, -1}));
  EXPECT_EQ(cast_to(Dtype::i64, Dtype::i32, {-2147483648}), (Wholes{-2147483648}));
  EXPECT_EQ(cast_to(Dtype::u8, Dtype::i32, {-1, 256}), (Wholes{255, 0}));
  EXPECT_EQ(cast_to(Dtype::boolean, Dtype::i64, {0, 256}), (Wholes{0, 1}));
}

TEST(Integers, SumsAndExtremesAreExact) {
  const int64_t big = int64_t{1} << 60;
  EXPECT_EQ(whole_of("ReduceSum", Dtype::i64, {{big, 1, -big, 1}}), (Wholes{2}));
  EXPECT_EQ(whole_of("ReduceMin", Dtype::i64, {{kMost, kMost}}), (Wholes{kMost}));
  EXPECT_EQ(whole_of("ReduceMax", Dtype::i64, {{kLeast, kLeast}}), (Wholes{kLeast}));
  EXPECT_EQ(whole_of("CumSum", Dtype::i32, {{2147483647, 1, 5}}, "",
                     "initializer { name: \"axis\" data_type: 7 int64_data: 0 } ", {"axis"}),
            (Wholes{2147483647, -2147483648, -2147483643}));
}

TEST(Integers, OfTheModelAreFoldedExactly) {
  const std::string constants = fmt::format(
      "initializer {{ name: \"a\" data_type: 7 dims: 1 int64_data: {} }} "
      "initializer {{ name: \"b\" data_type: 7 dims: 1 int64_data: 1 }} ",
      (int64_t{1} << 53) + 1);
  const auto graph = parse_onnx(model_text(node_text("Add", {"a", "b"}, {"s"}) +
                                           node_text("Add", {"s", "x"}, {"y"}) + constants +
                                           input_text("x", {"1"}, 7)));
  ASSERT_TRUE(graph) << describe(graph.error());
  ASSERT_EQ(graph->nodes.size(), 1U);
  EXPECT_EQ(graph::constant_integers(*graph, graph->nodes[0].inputs[0]),
            (Wholes{(int64_t{1} << 53) + 2}));
}

graph::Graph graph_of(const std::string& text) {
  auto graph = parse_onnx(text);
  EXPECT_TRUE(graph) << describe(graph.error());
  return graph ? *graph : graph::Graph{};
}

TEST(NoElements, ReductionsGiveWhatChangesNothing) {
  for (const auto& [op, identity] :
       {std::pair("ReduceSum", 0.0), std::pair("ReduceProd", 1.0),
        std::pair("ReduceMax", -HUGE_VAL), std::pair("ReduceMin", HUGE_VAL)}) {
    const std::string text = model_text(
        node_text(op, {"x"}, {"y"}, integer_text("keepdims", 0) + integers_text("axes", {0})) +
            input_text("x", {"0", "2"}),
        13);
    EXPECT_EQ(made_of(text, {{}}), (Numbers{identity, identity})) << op;
  }
}

TEST(NoElements, ProductsOverNothingAreZero) {
  EXPECT_EQ(made_of(model_text(node_text("MatMul", {"a", "b"}, {"y"}) +
                               input_text("a", {"2", "0"}) + input_text("b", {"0", "1"})),
                    {{}, {}}),
            (Numbers{0, 0}));
}

TEST(NoElements, NodesThatMakeNothingAreKnown) {
  const graph::Graph graph =
      graph_of(model_text(node_text("Relu", {"e"}, {"r"}) +
                          node_text("Concat", {"r", "x"}, {"y"}, integer_text("axis", 0)) +
                          input_text("e", {"0", "3"}) + input_text("x", {"2", "3"})));
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (graph::Shape{2, 3}));
  const auto is_relu = [](const graph::Node& node) { return node.op == graph::OpKind::Relu; };
  EXPECT_TRUE(std::ranges::none_of(graph.nodes, is_relu));
}
}  // namespace
}  // namespace warploom
