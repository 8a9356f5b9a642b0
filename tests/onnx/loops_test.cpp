// Loop, Scan and SequenceMap, a body once for each step.
#include <fmt/format.h>
#include <cstdint>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
using Numbers = std::vector<double>;

const std::string kX = input_text("x", {"2"});

std::string value_text(const std::string& name, const std::string& direction = "input") {
  return fmt::format("{} {{ name: \"{}\" }} ", direction, name);
}

std::string body_text(const std::vector<std::string>& inputs, const std::string& nodes,
                      const std::vector<std::string>& outputs) {
  std::string text = "attribute { name: \"body\" type: GRAPH g { name: \"body\" ";
  for (const std::string& input : inputs)
    text += value_text(input);
  text += nodes;
  for (const std::string& output : outputs)
    text += value_text(output, "output");
  return text + "} } ";
}

std::string whole_text(const std::string& name, int64_t value, int type = 7) {
  const std::string field = type == 7 ? "int64_data" : "int32_data";
  return fmt::format("initializer {{ name: \"{}\" data_type: {} {}: {} }} ", name, type, field,
                     value);
}

// v' = 2·v, and v of each step.
const std::string kDoubling =
    body_text({"i", "c", "v"},
              node_text("Identity", {"c"}, {"c_out"}) + node_text("Add", {"v", "v"}, {"v_out"}) +
                  node_text("Identity", {"v"}, {"seen"}),
              {"c_out", "v_out", "seen"});

TEST(Loops, GoOnAsOftenAsTheModelSays) {
  const auto loop = [](int64_t count, const std::string& condition) {
    return model_text(node_text("Loop", {"m", condition, "x"}, {"y"}, kDoubling) + kX +
                      whole_text("m", count) + whole_text("t", 1, 9) + whole_text("f", 0, 9));
  };
  EXPECT_EQ(made_of(loop(3, ""), {{1, -2}}), (Numbers{8, -16}));
  EXPECT_EQ(made_of(loop(3, "t"), {{1, -2}}), (Numbers{8, -16}));
  EXPECT_EQ(made_of(loop(3, "f"), {{1, -2}}), (Numbers{1, -2}));
  EXPECT_EQ(made_of(loop(0, ""), {{1, -2}}), (Numbers{1, -2}));
}

TEST(Loops, StackWhatEachStepMakes) {
  const std::string text = model_text(node_text("Loop", {"m", "", "x"}, {"last", "y"}, kDoubling) +
                                      kX + whole_text("m", 3));
  EXPECT_EQ(made_of(text, {{1, -2}}), (Numbers{1, -2, 2, -4, 4, -8}));
  EXPECT_EQ(parse_onnx(text)->tensor(parse_onnx(text)->outputs[0]).shape, (graph::Shape{3, 2}));
}

TEST(Loops, EndWhereAConditionOfTheModelDoes) {
  // while (i < 4): v += x, with names from around the loop
  const std::string body = body_text(
      {"i", "c", "v"},
      node_text("Add", {"v", "x"}, {"v_out"}) + node_text("Less", {"i", "most"}, {"c_out"}),
      {"c_out", "v_out"});
  const std::string text = model_text(node_text("Loop", {"m", "t", "x"}, {"y"}, body) + kX +
                                      whole_text("m", 9223372036854775807) + whole_text("t", 1, 9) +
                                      whole_text("most", 4));
  EXPECT_EQ(made_of(text, {{1, -2}}), (Numbers{6, -12}));
}

TEST(Loops, CountTheirStepsAndLieWithinEachOther) {
  const std::string inner = body_text({"j", "d", "w"},
                                      node_text("Cast", {"j"}, {"jf"}, integer_text("to", 1)) +
                                          node_text("Add", {"w", "jf"}, {"w_out"}) +
                                          node_text("Identity", {"d"}, {"d_out"}),
                                      {"d_out", "w_out"});
  const std::string outer = body_text({"i", "c", "v"},
                                      node_text("Loop", {"i", "c", "v"}, {"v_out"}, inner) +
                                          node_text("Identity", {"c"}, {"c_out"}),
                                      {"c_out", "v_out"});
  // Σ over i < 4 of Σ over j < i of j: 0 + 0 + 1 + 3
  EXPECT_EQ(made_of(model_text(node_text("Loop", {"m", "t", "x"}, {"y"}, outer) + kX +
                               whole_text("m", 4) + whole_text("t", 1, 9)),
                    {{1, -2}}),
            (Numbers{5, 2}));
}

TEST(Loops, MayCarrySequences) {
  const std::string body = body_text(
      {"i", "c", "s"},
      node_text("SequenceInsert", {"s", "x"}, {"s_out"}) + node_text("Identity", {"c"}, {"c_out"}),
      {"c_out", "s_out"});
  EXPECT_EQ(
      made_of(model_text(node_text("SequenceEmpty", {}, {"s"}) +
                         node_text("Loop", {"m", "", "s"}, {"all"}, body) +
                         node_text("ConcatFromSequence", {"all"}, {"y"}, integer_text("axis", 0)) +
                         kX + whole_text("m", 2)),
              {{1, -2}}),
      (Numbers{1, -2, 1, -2}));
}

TEST(Loops, WithoutStepsMakeNothingOfTheDeclaredSizes) {
  const std::string body =
      "attribute { name: \"body\" type: GRAPH g { name: \"b\" input { name: \"i\" } input { name: "
      "\"c\" } " +
      node_text("Identity", {"c"}, {"c_out"}) + node_text("Identity", {"x"}, {"seen"}) +
      "output { name: \"c_out\" } output { name: \"seen\" type { tensor_type { elem_type: 1 shape "
      "{ "
      "dim { dim_value: 2 } } } } } } } ";
  const auto graph =
      parse_onnx(model_text(node_text("Loop", {"m", ""}, {"y"}, body) + kX + whole_text("m", 0)));
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (graph::Shape{0, 2}));
  EXPECT_EQ(refusal_of(model_text(node_text("Loop", {"m", "", "x"}, {"v", "y"}, kDoubling) + kX +
                                  whole_text("m", 0)))
                .code,
            ErrorCode::kOnnxDynamicShape);
}

TEST(Loops, ThatInputsDecideAreRefusedByName) {
  const Error count = refusal_of(
      model_text(node_text("Loop", {"m", "", "x"}, {"y"}, kDoubling + "name: \"steps\"") + kX +
                 input_text("m", {}, 7)));
  EXPECT_EQ(count.code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(count.message.find("number of steps"), std::string::npos);
  EXPECT_NE(count.place.find("steps"), std::string::npos);
  EXPECT_EQ(count.found, "m");
  const Error condition =
      refusal_of(model_text(node_text("Loop", {"m", "t", "x"}, {"y"}, kDoubling) + kX +
                            whole_text("m", 3) + input_text("t", {}, 9)));
  EXPECT_EQ(condition.code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(condition.message.find("condition"), std::string::npos);
}

TEST(Loops, WithoutEndAreRefused) {
  EXPECT_EQ(refusal_of(model_text(node_text("Loop", {"", "", "x"}, {"y"}, kDoubling) + kX)).code,
            ErrorCode::kOnnxTooLarge);
  const std::string empty = body_text({"i", "c"}, node_text("Identity", {"c"}, {"o"}), {"o"});
  EXPECT_EQ(refusal_of(model_text(node_text("Loop", {"m", ""}, {"z"}, empty) + kX +
                                  whole_text("m", 1000000000)))
                .code,
            ErrorCode::kOnnxTooLarge);
}

TEST(Loops, WhoseBodiesDoNotFitAreRefused) {
  EXPECT_EQ(refusal_of(model_text(node_text("Loop", {"m", ""}, {"y"}, kDoubling) + kX +
                                  whole_text("m", 3)))
                .code,
            ErrorCode::kOnnxName);
  EXPECT_EQ(
      refusal_of(model_text(node_text("Loop", {"m", "", "x"}, {"y"}) + kX + whole_text("m", 3)))
          .code,
      ErrorCode::kOnnxAttribute);
}

// s' = s + a·b, of which each step gives s'.
const std::string kSumming =
    body_text({"s", "a", "b"},
              node_text("Mul", {"a", "b"}, {"ab"}) + node_text("Add", {"s", "ab"}, {"s_out"}) +
                  node_text("Identity", {"s_out"}, {"each"}),
              {"s_out", "each"});

const std::string kScanned = input_text("s", {}) + input_text("a", {"3"}) + input_text("b", {"3"});

TEST(Scans, GoThroughTheirInputs) {
  const auto scan = [](const std::vector<std::string>& outputs, const std::string& more) {
    return model_text(node_text("Scan", {"s", "a", "b"}, outputs,
                                kSumming + integer_text("num_scan_inputs", 2) + more) +
                      kScanned);
  };
  const std::vector<std::vector<float>> data = {{10}, {1, 2, 3}, {1, 10, 100}};
  EXPECT_EQ(made_of(scan({"y", "all"}, ""), data), (Numbers{331}));
  EXPECT_EQ(made_of(scan({"last", "y"}, ""), data), (Numbers{11, 31, 331}));
  EXPECT_EQ(made_of(scan({"last", "y"}, integers_text("scan_input_directions", {1, 1})), data),
            (Numbers{310, 330, 331}));
  EXPECT_EQ(made_of(scan({"last", "y"}, integers_text("scan_input_directions", {0, 1})), data),
            (Numbers{110, 130, 133}));
  EXPECT_EQ(made_of(scan({"last", "y"}, integers_text("scan_output_directions", {1})), data),
            (Numbers{331, 31, 11}));
}

TEST(Scans, GoAlongAnyAxes) {
  const std::string body = body_text(
      {"s", "a"}, node_text("Add", {"s", "a"}, {"s_out"}) + node_text("Neg", {"a"}, {"each"}),
      {"s_out", "each"});
  const std::string text = model_text(node_text("Scan", {"s", "a"}, {"last", "y"},
                                                body + integer_text("num_scan_inputs", 1) +
                                                    integers_text("scan_input_axes", {-1}) +
                                                    integers_text("scan_output_axes", {1})) +
                                      input_text("s", {"2"}) + input_text("a", {"2", "3"}));
  EXPECT_EQ(made_of(text, {{0, 0}, {1, 2, 3, 4, 5, 6}}), (Numbers{-1, -2, -3, -4, -5, -6}));
}

TEST(Scans, OfOperatorSet8AreOfEachOfABatch) {
  const std::string body = body_text(
      {"s", "a"},
      node_text("Add", {"s", "a"}, {"s_out"}) + node_text("Identity", {"s_out"}, {"each"}),
      {"s_out", "each"});
  const auto scan = [&](const std::string& lengths, const std::string& more) {
    return model_text(node_text("Scan", {lengths, "s", "a"}, {"last", "y"},
                                body + integer_text("num_scan_inputs", 1) + more) +
                          input_text("s", {"2", "1"}) + input_text("a", {"2", "3", "1"}) +
                          "initializer { name: \"l\" data_type: 7 dims: 2 int64_data: [3, 2] } ",
                      8);
  };
  const std::vector<std::vector<float>> data = {{0, 10}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(made_of(scan("", ""), data), (Numbers{1, 3, 6, 14, 19, 25}));
  EXPECT_EQ(made_of(scan("", integers_text("directions", {1})), data),
            (Numbers{3, 5, 6, 16, 21, 25}));
  EXPECT_EQ(refusal_of(scan("l", "")).code, ErrorCode::kOnnxUnknownOperator);
}

TEST(Scans, OfUnfitInputsAreRefused) {
  const auto scan = [](int inputs, const std::string& size) {
    return refusal_of(model_text(node_text("Scan", {"s", "a", "b"}, {"last", "y"},
                                           kSumming + integer_text("num_scan_inputs", inputs)) +
                                 input_text("s", {}) + input_text("a", {"3"}) +
                                 input_text("b", {size})))
        .code;
  };
  EXPECT_EQ(scan(2, "4"), ErrorCode::kOnnxShape);
  EXPECT_EQ(scan(0, "3"), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(scan(4, "3"), ErrorCode::kOnnxAttribute);
}

TEST(Scans, OfTooManyStepsAreRefused) {
  EXPECT_EQ(refusal_of(model_text(node_text("Scan", {"s", "a", "b"}, {"last", "y"},
                                            kSumming + integer_text("num_scan_inputs", 2)) +
                                  input_text("s", {}) + input_text("a", {"100000"}) +
                                  input_text("b", {"100000"})))
                .code,
            ErrorCode::kOnnxTooLarge);
}

TEST(Maps, TakeSequencesStepByStep) {
  const std::string body = body_text({"a", "b"}, node_text("Mul", {"a", "b"}, {"ab"}), {"ab"});
  const auto map = [&](const std::string& second) {
    return model_text(node_text("SequenceConstruct", {"x", "z"}, {"s"}) +
                      node_text("SequenceConstruct", {"z", "x"}, {"t"}) +
                      node_text("SequenceConstruct", {"z"}, {"short"}) +
                      node_text("SequenceMap", {"s", second}, {"m"}, body) +
                      node_text("ConcatFromSequence", {"m"}, {"y"}, integer_text("axis", 0)) + kX +
                      input_text("z", {"2"}));
  };
  EXPECT_EQ(made_of(map("t"), {{1, 2}, {3, 5}}), (Numbers{3, 10, 3, 10}));
  EXPECT_EQ(made_of(map("z"), {{1, 2}, {3, 5}}), (Numbers{3, 10, 9, 25}));
  EXPECT_EQ(refusal_of(map("short")).code, ErrorCode::kOnnxShape);
}

// Each body maps all of `s` again and passes its element on: 2 to the power of the depth.
TEST(SequenceMaps, WithinEachOtherHaveTheirWorkCounted) {
  std::string body = body_text({"e"}, "", {"e"});
  for (int depth = 0; depth < 24; ++depth)
    body = body_text({"e"}, node_text("SequenceMap", {"s"}, {"m"}, body), {"e"});
  EXPECT_EQ(refusal_of(model_text(node_text("SequenceConstruct", {"x", "x"}, {"s"}) +
                                  node_text("SequenceMap", {"s"}, {"n"}, body) +
                                  node_text("Identity", {"x"}, {"y"}) + kX))
                .code,
            ErrorCode::kOnnxTooLarge);
}

TEST(Scans, OfNoStepsPutTheirAxisWhereItIsNamed) {
  const std::string body =
      "attribute { name: \"body\" type: GRAPH g { name: \"b\" input { name: \"a\" } " +
      node_text("Identity", {"x"}, {"each"}) +
      "output { name: \"each\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim "
      "{ "
      "dim_value: 3 } } } } } } } ";
  const auto scan = [&](int64_t axis) {
    return model_text(node_text("Scan", {"a"}, {"y"},
                                body + integer_text("num_scan_inputs", 1) +
                                    integers_text("scan_output_axes", {axis})) +
                      input_text("x", {"2", "3"}) + input_text("a", {"0"}));
  };
  const auto shape = [&](int64_t axis) {
    const auto graph = parse_onnx(scan(axis));
    return graph ? graph->tensor(graph->outputs[0]).shape : graph::Shape{};
  };
  EXPECT_EQ(shape(-1), (graph::Shape{2, 3, 0}));
  EXPECT_EQ(shape(-3), (graph::Shape{0, 2, 3}));
  EXPECT_EQ(shape(1), (graph::Shape{2, 0, 3}));
  EXPECT_EQ(refusal_of(scan(3)).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal_of(scan(-4)).code, ErrorCode::kOnnxAttribute);
}
}  // namespace
}  // namespace warploom
