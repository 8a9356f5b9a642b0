// Functions of a model, and branches whose conditions the model decides.
#include <fmt/format.h>
#include <string>
#include <vector>
#include "base/error.h"
#include "model_text.h"

namespace warploom {
namespace {
const std::string kCustom = "opset_import { domain: \"custom\" version: 1 } ";

std::string function_text(const std::string& name, const std::string& inputs,
                          const std::string& outputs, const std::string& body,
                          const std::string& more = "") {
  std::string text = fmt::format("functions {{ name: \"{}\" domain: \"custom\" ", name);
  for (const char input : inputs)
    text += fmt::format("input: \"{}\" ", input);
  for (const char output : outputs)
    text += fmt::format("output: \"{}\" ", output);
  return text + more + "opset_import { version: 20 } " + body + "} ";
}

std::string call_text(const std::string& name, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::string& more = "") {
  return node_text(name, inputs, outputs, "domain: \"custom\" " + more);
}

const std::string kX = input_text("x", {"2"});
const std::string kHalf = node_text("Constant", {}, {"h"}, real_text("value_float", 0.5)) +
                          node_text("Mul", {"a", "h"}, {"b"});

TEST(Functions, AreInlinedAndTheirNamesNeverMeet) {
  const std::string text =
      model_text(call_text("Half", {"x"}, {"h"}) + call_text("Half", {"h"}, {"y"}) + kX, 20,
                 kCustom + function_text("Half", "a", "b", kHalf));
  EXPECT_EQ(made_of(text, {{8, 4}}), (std::vector<double>{2, 1}));
}

TEST(Functions, MayCallOthersWhateverTheirOrder) {
  const std::string text = model_text(
      call_text("Quarter", {"x"}, {"y"}) + kX, 20,
      kCustom +
          function_text("Quarter", "a", "b",
                        call_text("Half", {"a"}, {"h"}) + call_text("Half", {"h"}, {"b"}),
                        "opset_import { domain: \"custom\" version: 1 } ") +
          function_text("Half", "a", "b", kHalf));
  EXPECT_EQ(made_of(text, {{8, 4}}), (std::vector<double>{2, 1}));
}

const std::string kScaled =
    node_text("Constant", {}, {"h"},
              "attribute { name: \"value_float\" type: FLOAT ref_attr_name: \"by\" } ") +
    node_text("Mul", {"a", "h"}, {"b"});

TEST(Functions, TakeAttributesFromTheCall) {
  const std::string text =
      model_text(call_text("Scaled", {"x"}, {"y"}, real_text("by", 3)) + kX, 20,
                 kCustom + function_text("Scaled", "a", "b", kScaled, "attribute: \"by\" "));
  EXPECT_EQ(made_of(text, {{8, 4}}), (std::vector<double>{24, 12}));
}

TEST(Functions, HaveDefaultsForAttributes) {
  const std::string by = "attribute_proto { name: \"by\" type: FLOAT f: 5 } ";
  const std::string function = function_text("Scaled", "a", "b", kScaled, by);
  EXPECT_EQ(
      made_of(model_text(call_text("Scaled", {"x"}, {"y"}) + kX, 20, kCustom + function), {{8, 4}}),
      (std::vector<double>{40, 20}));
  EXPECT_EQ(made_of(model_text(call_text("Scaled", {"x"}, {"y"}, real_text("by", 2)) + kX, 20,
                               kCustom + function),
                    {{8, 4}}),
            (std::vector<double>{16, 8}));
}

TEST(Functions, LeaveOutWhatNeitherCallNorFunctionGives) {
  const std::string body =
      node_text("LeakyRelu", {"a"}, {"b"},
                "attribute { name: \"alpha\" type: FLOAT ref_attr_name: \"slope\" } ");
  const std::string text =
      model_text(call_text("Leaky", {"x"}, {"y"}) + kX, 20,
                 kCustom + function_text("Leaky", "a", "b", body, "attribute: \"slope\" "));
  EXPECT_NEAR(made_of(text, {{-100, 4}})[0], -1, 1e-6);
}

TEST(Functions, PassInputsOnAndLeaveOutOptionalOnes) {
  const std::string text = model_text(
      call_text("Clipped", {"x", "", "m"}, {"c", "o"}) + node_text("Add", {"c", "o"}, {"y"}) + kX +
          "initializer { name: \"m\" data_type: 1 float_data: 5 } ",
      20,
      kCustom + function_text("Clipped", "alh", "ba", node_text("Clip", {"a", "l", "h"}, {"b"})));
  EXPECT_EQ(made_of(text, {{8, -4}}), (std::vector<double>{13, -8}));
}

TEST(Functions, OfOneNameAreToldApartByTheirOverload) {
  const std::string twice = node_text("Add", {"a", "a"}, {"b"});
  const std::string text = model_text(
      call_text("F", {"x"}, {"t"}, "overload: \"two\" ") + call_text("F", {"t"}, {"y"}) + kX, 20,
      kCustom + function_text("F", "a", "b", kHalf) +
          function_text("F", "a", "b", twice + call_text("F", {"b"}, {"c"}), "overload: \"two\" "));
  EXPECT_EQ(made_of(text, {{8, 4}}), (std::vector<double>{8, 4}));
}

TEST(Functions, BringTheirOwnOperatorSet) {
  const std::string body = node_text("Unsqueeze", {"a"}, {"u"}, integers_text("axes", {0})) +
                           node_text("Squeeze", {"u"}, {"b"}, integers_text("axes", {0}));
  const std::string old = fmt::format(
      "functions {{ name: \"Old\" domain: \"custom\" input: \"a\" output: \"b\" opset_import {{ "
      "version: 11 }} {} }}",
      body);
  EXPECT_EQ(made_of(model_text(call_text("Old", {"x"}, {"y"}) + kX, 20, kCustom + old), {{8, 4}}),
            (std::vector<double>{8, 4}));
}

TEST(Functions, DoNotSeeNamesAroundThem) {
  const Error error = refusal_of(
      model_text(call_text("F", {"x"}, {"y"}) + kX, 20,
                 kCustom + function_text("F", "a", "b", node_text("Add", {"a", "x"}, {"b"}))));
  EXPECT_EQ(error.code, ErrorCode::kOnnxName) << describe(error);
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  const Error error =
      refusal_of(model_text(call_text("F", {"x"}, {"y"}) + kX, 20,
                            kCustom + function_text("F", "a", "b", call_text("G", {"a"}, {"b"})) +
                                function_text("G", "a", "b", call_text("F", {"a"}, {"b"}))));
  EXPECT_EQ(error.code, ErrorCode::kOnnxCyclic);
  EXPECT_EQ(error.found, "custom.F → custom.G → custom.F");
}

TEST(Functions, ThatGrowWithoutEndAreRefused) {
  std::string functions = kCustom;
  for (int i = 0; i < 40; ++i)
    functions += function_text(fmt::format("F{}", i), "a", "b",
                               call_text(fmt::format("F{}", i + 1), {"a"}, {"h"}) +
                                   call_text(fmt::format("F{}", i + 1), {"h"}, {"b"}));
  functions += function_text("F40", "a", "b", node_text("Relu", {"a"}, {"b"}));
  EXPECT_EQ(refusal_of(model_text(call_text("F0", {"x"}, {"y"}) + kX, 20, functions)).code,
            ErrorCode::kOnnxTooLarge);
}

TEST(Functions, RefuseUnknownAttributesAndTooManyInputs) {
  const std::string half = kCustom + function_text("Half", "a", "b", kHalf);
  EXPECT_EQ(
      refusal_of(model_text(call_text("Half", {"x"}, {"y"}, real_text("by", 2)) + kX, 20, half))
          .code,
      ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refusal_of(model_text(call_text("Half", {"x", "x"}, {"y"}) + kX, 20, half)).code,
            ErrorCode::kOnnxName);
}

std::string branch_text(const std::string& which, const std::string& body,
                        const std::string& output) {
  return fmt::format(
      "attribute {{ name: \"{}_branch\" type: GRAPH g {{ name: \"{}\" {} output {{ name: \"{}\" }} "
      "}} }} ",
      which, which, body, output);
}

const std::string kBranches =
    branch_text("then", node_text("Add", {"x", "x"}, {"t"}), "t") +
    branch_text("else",
                "initializer { name: \"t\" data_type: 1 float_data: 3 } " +
                    node_text("Mul", {"x", "t"}, {"e"}),
                "e");

std::string condition_text(int truth) {
  return fmt::format("initializer {{ name: \"c\" data_type: 9 int32_data: {} }} ", truth);
}

TEST(Branches, AreTakenAsTheModelDecides) {
  for (const int truth : {0, 1})
    EXPECT_EQ(
        made_of(model_text(node_text("If", {"c"}, {"y"}, kBranches) + kX + condition_text(truth)),
                {{8, 4}}),
        truth == 1 ? (std::vector<double>{16, 8}) : (std::vector<double>{24, 12}));
}

TEST(Branches, MayDependOnShapesAndLieWithinEachOther) {
  const std::string shape = node_text("Shape", {"x"}, {"s"}) +
                            node_text("Constant", {}, {"two"}, integers_text("value_ints", {2})) +
                            node_text("Equal", {"s", "two"}, {"c"});
  const std::string inner = node_text("If", {"c"}, {"t"}, kBranches);
  const std::string outer =
      branch_text("then", inner, "t") + branch_text("else", node_text("Neg", {"x"}, {"t"}), "t");
  EXPECT_EQ(made_of(model_text(shape + node_text("If", {"c"}, {"y"}, outer) + kX), {{8, 4}}),
            (std::vector<double>{16, 8}));
}

TEST(Branches, MayGiveBackWhatIsAroundThem) {
  const std::string plain = branch_text("then", "", "x") + branch_text("else", "", "x");
  EXPECT_EQ(
      made_of(model_text(node_text("If", {"c"}, {"y"}, plain) + kX + condition_text(1)), {{8, 4}}),
      (std::vector<double>{8, 4}));
}

TEST(Branches, WithinFunctionsSeeTheFunctionsNames) {
  const std::string body = node_text("Constant", {}, {"c"},
                                     "attribute { name: \"value\" type: TENSOR t { data_type: 9 "
                                     "int32_data: 1 } } ") +
                           node_text("If", {"c"}, {"b"},
                                     branch_text("then", node_text("Neg", {"a"}, {"t"}), "t") +
                                         branch_text("else", "", "a"));
  EXPECT_EQ(made_of(model_text(call_text("F", {"x"}, {"y"}) + kX, 20,
                               kCustom + function_text("F", "a", "b", body)),
                    {{8, 4}}),
            (std::vector<double>{-8, -4}));
}

TEST(Branches, ThatInputsDecideAreRefused) {
  const Error error = refusal_of(
      model_text(node_text("If", {"c"}, {"y"}, kBranches) + kX + input_text("c", {}, 9)));
  EXPECT_EQ(error.code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(error.remedy.find("--dim"), std::string::npos);
}

// Each calls the one before twice, and the first does nothing.
TEST(Functions, WithinEachOtherHaveTheirWorkCounted) {
  std::string functions = kCustom + function_text("F0", "a", "", "");
  for (int depth = 1; depth <= 40; ++depth) {
    const std::string before = call_text(fmt::format("F{}", depth - 1), {"a"}, {});
    functions += function_text(fmt::format("F{}", depth), "a", "", before + before,
                               "opset_import { domain: \"custom\" version: 1 } ");
  }
  EXPECT_EQ(
      refusal_of(model_text(call_text("F40", {"x"}, {}) + node_text("Identity", {"x"}, {"y"}) + kX,
                            20, functions))
          .code,
      ErrorCode::kOnnxTooLarge);
}

// That many of one name are still told apart at once.
TEST(Functions, MayBeCalledOftenUnderOneName) {
  std::string calls;
  std::string last = "x";
  for (int i = 0; i < 2000; ++i) {
    const std::string next = i + 1 < 2000 ? fmt::format("t{}", i) : "y";
    calls += call_text("Negated", {last}, {next}, "name: \"same\" ");
    last = next;
  }
  const std::string negated = node_text("Neg", {"a"}, {"n"}) + node_text("Identity", {"n"}, {"b"});
  EXPECT_EQ(
      made_of(model_text(calls + kX, 20, kCustom + function_text("Negated", "a", "b", negated)),
              {{8, 4}}),
      (std::vector<double>{8, 4}));
}
}  // namespace
}  // namespace warploom
