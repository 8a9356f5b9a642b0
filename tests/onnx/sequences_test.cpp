// Sequences and optionals, of which nothing is left but their tensors.
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

const std::string kInputs = input_text("x", {"2"}) + input_text("z", {"2"});
const std::string kPair = node_text("SequenceConstruct", {"x", "z"}, {"s"});
const std::vector<std::vector<float>> kData = {{1, 2}, {3, 5}};

std::string place_text(const std::string& name, int64_t value) {
  return node_text("Constant", {}, {name}, integer_text("value_int", value));
}

std::string joined_text(const std::string& sequence) {
  return node_text("ConcatFromSequence", {sequence}, {"y"}, integer_text("axis", 0));
}

TEST(Sequences, GiveTheirTensorsBack) {
  const auto at = [](int64_t place) {
    return model_text(kPair + place_text("p", place) + node_text("SequenceAt", {"s", "p"}, {"y"}) +
                      kInputs);
  };
  EXPECT_EQ(made_of(at(0), kData), (Numbers{1, 2}));
  EXPECT_EQ(made_of(at(-1), kData), (Numbers{3, 5}));
  for (const int64_t outside : {2, -3})
    EXPECT_EQ(refusal_of(at(outside)).code, ErrorCode::kOnnxShape);
}

TEST(Sequences, AreInsertedIntoAndErasedFrom) {
  const std::string more = place_text("p", 1) + kPair;
  EXPECT_EQ(made_of(model_text(more + node_text("SequenceInsert", {"s", "x", "p"}, {"t"}) +
                               joined_text("t") + kInputs),
                    kData),
            (Numbers{1, 2, 1, 2, 3, 5}));
  EXPECT_EQ(made_of(model_text(more + node_text("SequenceInsert", {"s", "x"}, {"t"}) +
                               joined_text("t") + kInputs),
                    kData),
            (Numbers{1, 2, 3, 5, 1, 2}));
  EXPECT_EQ(made_of(model_text(more + node_text("SequenceErase", {"s", "p"}, {"t"}) +
                               joined_text("t") + kInputs),
                    kData),
            (Numbers{1, 2}));
  EXPECT_EQ(made_of(model_text(more + node_text("SequenceErase", {"s"}, {"t"}) + joined_text("t") +
                               kInputs),
                    kData),
            (Numbers{1, 2}));
  EXPECT_EQ(
      refusal_of(model_text(node_text("SequenceEmpty", {}, {"s"}) +
                            node_text("SequenceErase", {"s"}, {"t"}) + joined_text("t") + kInputs))
          .code,
      ErrorCode::kOnnxShape);
}

TEST(Sequences, KnowTheirLength) {
  EXPECT_EQ(made_of(model_text(kPair + node_text("SequenceLength", {"s"}, {"n"}) +
                               node_text("Cast", {"n"}, {"f"}, integer_text("to", 1)) +
                               node_text("Mul", {"x", "f"}, {"y"}) + kInputs),
                    kData),
            (Numbers{2, 4}));
}

TEST(Sequences, AreSplitFromTensors) {
  const std::string x = input_text("x", {"5"});
  const std::vector<std::vector<float>> data = {{1, 2, 3, 4, 5}};
  const auto split = [&](const std::string& sizes, const std::string& more, int64_t place) {
    std::vector<std::string> inputs = {"x"};
    if (!sizes.empty()) inputs.emplace_back("n");
    return model_text(node_text("SplitToSequence", inputs, {"s"}, more) + place_text("p", place) +
                      node_text("SequenceAt", {"s", "p"}, {"y"}) + x + sizes);
  };
  const std::string two = "initializer { name: \"n\" data_type: 7 int64_data: 2 } ";
  const std::string parts = "initializer { name: \"n\" data_type: 7 dims: 2 int64_data: [1, 4] } ";
  EXPECT_EQ(made_of(split("", "", 3), data), (Numbers{4}));
  EXPECT_EQ(made_of(split(two, "", 0), data), (Numbers{1, 2}));
  EXPECT_EQ(made_of(split(two, "", 2), data), (Numbers{5}));
  EXPECT_EQ(made_of(split(parts, "", 1), data), (Numbers{2, 3, 4, 5}));
  const auto shape = [&](const std::string& text) {
    const auto graph = parse_onnx(text);
    return graph->tensor(graph->outputs[0]).shape;
  };
  EXPECT_EQ(shape(split("", "", 3)), (graph::Shape{1}));
  EXPECT_EQ(shape(split("", integer_text("keepdims", 0), 3)), graph::Shape{});
  const std::string wrong = "initializer { name: \"n\" data_type: 7 dims: 2 int64_data: [1, 3] } ";
  EXPECT_EQ(refusal_of(split(wrong, "", 1)).code, ErrorCode::kOnnxShape);
  const std::string none = "initializer { name: \"n\" data_type: 7 int64_data: 0 } ";
  EXPECT_EQ(refusal_of(split(none, "", 0)).code, ErrorCode::kOnnxShape);
}

TEST(Sequences, AreStackedOrJoined) {
  const auto stacked = [](int64_t axis) {
    return model_text(kPair +
                      node_text("ConcatFromSequence", {"s"}, {"y"},
                                integer_text("axis", axis) + integer_text("new_axis", 1)) +
                      kInputs);
  };
  EXPECT_EQ(made_of(stacked(0), kData), (Numbers{1, 2, 3, 5}));
  EXPECT_EQ(made_of(stacked(-1), kData), (Numbers{1, 3, 2, 5}));
  EXPECT_EQ(
      refusal_of(model_text(node_text("SequenceEmpty", {}, {"s"}) + joined_text("s") + kInputs))
          .code,
      ErrorCode::kOnnxShape);
}

TEST(Sequences, WhosePlacesInputsDecideAreRefusedByName) {
  const Error error =
      refusal_of(model_text(kPair + node_text("SequenceAt", {"s", "p"}, {"y"}, "name: \"pick\"") +
                            kInputs + input_text("p", {}, 7)));
  EXPECT_EQ(error.code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(error.place.find("pick"), std::string::npos);
}

TEST(Sequences, ThatAModelIsGivenOrGivesAreRefused) {
  const std::string given =
      "input { name: \"s\" type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } "
      "} ";
  EXPECT_EQ(refusal_of(
                model_text(place_text("p", 0) + node_text("SequenceAt", {"s", "p"}, {"y"}) + given))
                .code,
            ErrorCode::kOnnxType);
  EXPECT_EQ(
      refusal_of(model_text(node_text("SequenceConstruct", {"x", "z"}, {"y"}) + kInputs)).code,
      ErrorCode::kOnnxType);
}

TEST(Sequences, AreNoTensors) {
  const Error error = refusal_of(model_text(kPair + node_text("Relu", {"s"}, {"y"}) + kInputs));
  EXPECT_EQ(error.code, ErrorCode::kOnnxType);
  EXPECT_EQ(error.found, "a sequence");
}

std::string choice_text(const std::string& optional) {
  const std::string branches =
      "attribute { name: \"then_branch\" type: GRAPH g { name: \"t\" " +
      node_text("OptionalGetElement", {optional}, {"held"}) + "output { name: \"held\" } } } " +
      "attribute { name: \"else_branch\" type: GRAPH g { name: \"e\" " +
      node_text("Neg", {"z"}, {"other"}) + "output { name: \"other\" } } } ";
  return node_text("OptionalHasElement", {optional}, {"has"}) +
         node_text("If", {"has"}, {"y"}, branches);
}

TEST(Optionals, DecideWhatIsKnownOfThem) {
  EXPECT_EQ(
      made_of(model_text(node_text("Optional", {"x"}, {"o"}) + choice_text("o") + kInputs), kData),
      (Numbers{1, 2}));
  EXPECT_EQ(
      made_of(model_text(node_text("Optional", {}, {"o"}) + choice_text("o") + kInputs), kData),
      (Numbers{-3, -5}));
  EXPECT_EQ(made_of(model_text(choice_text("x") + kInputs), kData), (Numbers{1, 2}));
}

TEST(Optionals, MayHoldSequences) {
  EXPECT_EQ(made_of(model_text(kPair + node_text("Optional", {"s"}, {"o"}) +
                               node_text("OptionalGetElement", {"o"}, {"t"}) + joined_text("t") +
                               kInputs),
                    kData),
            (Numbers{1, 2, 3, 5}));
}

TEST(Optionals, ThatHoldNothingAreNotRead) {
  EXPECT_EQ(refusal_of(model_text(node_text("Optional", {}, {"o"}) +
                                  node_text("OptionalGetElement", {"o"}, {"y"}) + kInputs))
                .code,
            ErrorCode::kOnnxType);
}
}  // namespace
}  // namespace warploom
