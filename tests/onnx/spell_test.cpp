#include "onnx/spell.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "onnx/load.h"

namespace warploom {
namespace {
// The graph, or the error's code and where it is: "usage 1:6", line and column.
std::string spelled(std::string_view expression, Dtype dtype = Dtype::f32) {
  const auto model = spell_onnx(expression, "m", dtype);
  if (model) return graph::to_text(model->graph);
  const std::string& place = model.error().place;
  static const std::regex form("^EXPRESSION, (line (\\d+), )?column (\\d+)\n");
  std::smatch found;
  const std::string code(code_text(model.error().code));
  if (!std::regex_search(place, found, form)) return code + " without a column: " + place;
  return fmt::format("{} {}:{}", code, found[2].matched ? found[2].str() : "1", found[3].str());
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size())
    ++found;
  return found;
}

Error error_of(std::string_view expression) {
  const auto model = spell_onnx(expression, "m", Dtype::f32);
  EXPECT_FALSE(model) << expression;
  return model ? Error{ErrorCode::kInternal, "it is a model"} : model.error();
}

TEST(Spell, ReadsNestedOperatorsWithAttributesByName) {
  EXPECT_EQ(spelled("relu(Conv(x[1,3,8,8], w[4,3,3,3], pads=[1,1,1,1], group=1))"),
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
  const std::pair<const char*, const char*> cases[] = {
      {"relu(x)", "usage 1:6"},
      {"relu(x[3)", "usage 1:9"},
      {"nothing(x[3])", "usage 1:1"},
      {"relu(x[3])z", "usage 1:11"},
      {"softmax(x[3], depth=1)", "usage 1:15"},
      {"", "usage 1:1"},
      {"x[3]", "usage 1:1"},
      {"x[3] +", "usage 1:7"},
      {"x[3] $ 2", "usage 1:6"},
      {"relu(x[3]:f33)", "usage 1:11"},
      {"relu(x[3.5])", "usage 1:6"},
      {"relu(x[-3])", "usage 1:6"},
      {"relu(\"x\")", "usage 1:6"},
      {"\"x", "usage 1:1"},
      {"relu(x[3], 5)", "usage 1:1"},
      {"add(x[3], _)", "usage 1:1"},
      {"h = relu(x[3])\nexp(g)", "usage 2:5"},
      {"relu(x[99999999999999])", "onnx-too-large 1:6"},
      {"x[2] + exp(add(x, z[3]))", "onnx-shape 1:12"},
      {"linear(x[6,8], w[4,9])", "onnx-shape 1:1"},
      {"conv2d(x[3,4], w[3,4])", "usage 1:8"},
      {"x[3] * q[3]:i64", "onnx-type 1:6"},
  };
  for (const auto& [text, error] : cases)
    EXPECT_EQ(spelled(text), error) << text;
}

TEST(Spell, TheColumnIsShownInItsLine) {
  EXPECT_EQ(error_of("relu(conf(x[3,4]))").place,
            "EXPRESSION, column 6\nrelu(conf(x[3,4]))\n     ^^^^");
  const std::string late = "h = " + std::string(300, ' ') + "relu(x[3]); exp(h) + conf(h)";
  const std::string place = error_of(late).place;
  EXPECT_LT(place.size(), 200u) << place;
  EXPECT_NE(place.find("exp(h) + conf(h)\n"), place.npos) << place;
  EXPECT_NE(error_of("exp(größe[3])").place.find("column 7"), std::string::npos);
}

TEST(Spell, AMisspeltNameIsAnsweredWithTheOneThatWasMeant) {
  const std::pair<const char*, const char*> cases[] = {
      {"relu(conf(x[3,4]))", "did you mean conv?"},
      {"sofmax(x[3])", "did you mean softmax?"},
      {"softmax(x[3], axs=0)", "did you mean axis?"},
      {"conv2d(x[1,4,8,8], w[8,4,3,3], strids=2)", "did you mean strides?"},
      {"hidden = relu(x[3]); exp(hiden)", "did you mean hidden?"},
      {"relu(x[3]:f23)", "did you mean f32?"},
  };
  for (const auto& [text, remedy] : cases)
    EXPECT_TRUE(error_of(text).remedy.starts_with(remedy)) << text << error_of(text).remedy;
}

TEST(Spell, ANamedValueIsWrittenOnce) {
  const std::string text = spelled("h = conv(x[1,3,32,32], w[8,3,3,3]); mul(h, sigmoid(h))");
  EXPECT_EQ(text,
            "graph m\n  input x f32 [1,3,32,32]\n  input w f32 [8,3,3,3]\n"
            "  h = Conv(x, w) dilations=[1,1] group=1 pads=[0,0,0,0] strides=[1,1] : "
            "f32 [1,8,30,30]\n"
            "  t2 = Sigmoid(h) : f32 [1,8,30,30]\n"
            "  y = Mul(h, t2) : f32 [1,8,30,30]\n  output y f32 [1,8,30,30]\n");
}

TEST(Spell, EqualPartsAreWrittenOnce) {
  const std::string text = spelled("exp(x[4] * 2) + exp(x * 2) * exp(x * 2.0)");
  EXPECT_EQ(count(text, "Exp("), 1) << text;
  EXPECT_EQ(count(text, "constant"), 1) << text;
  EXPECT_EQ(count(text, "Mul("), 2) << text;
}

TEST(Spell, LinesCommentsAndSemicolonsPartStatements) {
  EXPECT_EQ(spelled("# a gate\nh = exp(x[4],\n)"), "usage 3:1");
  EXPECT_EQ(spelled("# a gate\nh = exp(\n  x[4]  # the input\n)\n\n;h * 2;\n"),
            spelled("h = exp(x[4]); h * 2"));
}

TEST(Spell, OperationsBindAsInArithmetic) {
  EXPECT_EQ(spelled("a[4] + b[4] * 2"), spelled("add(a[4], mul(b[4], 2))"));
  EXPECT_EQ(spelled("(a[4] + b[4]) * 2"), spelled("mul(add(a[4], b[4]), 2)"));
  EXPECT_EQ(spelled("a[4] - b[4] - 1"), spelled("sub(sub(a[4], b[4]), 1)"));
  EXPECT_EQ(spelled("-a[4] ** 2"), spelled("neg(pow(a[4], 2))"));
  EXPECT_EQ(spelled("a[4,4] @ b[4,4] / 2"), spelled("div(matmul(a[4,4], b[4,4]), 2)"));
  EXPECT_EQ(spelled("where(a[4] <= 1, a, 0)"), spelled("where(lessorequal(a[4], 1), a, 0)"));
  EXPECT_EQ(spelled("a[4] * (1 + 2 ** 3 / 4 - -1)"), spelled("mul(a[4], 4)"));
}

TEST(Spell, NumbersAreOfTheTypeOfTheTensorBesideThem) {
  EXPECT_NE(spelled("x[4]:bf16 * 0.5").find("constant c1 bf16"), std::string::npos);
  EXPECT_NE(spelled("x[4]:i64 + 1").find("constant c1 i64"), std::string::npos);
  EXPECT_NE(spelled("where(x[4]:f16 > 1, 0, x)").find("constant c1 f16"), std::string::npos);
}

TEST(Spell, EachInputMayHaveATypeOfItsOwn) {
  const std::string text = spelled("embedding(ids[2,7]:i64, table[100,64]:bf16)");
  EXPECT_NE(text.find("input ids i64 [2,7]"), text.npos) << text;
  EXPECT_NE(text.find("output y bf16 [2,7,64]"), text.npos) << text;
}

TEST(Spell, ATypeIsACast) {
  EXPECT_NE(spelled("bf16(relu(x[4]))").find("y = Cast(t1)"), std::string::npos);
  EXPECT_EQ(spelled("cast(relu(x[4]), to=bf16)"), spelled("bf16(relu(x[4]))"));
}

TEST(Spell, OutputsAreTheLastValueOrThoseBehindTheArrow) {
  EXPECT_NE(spelled("z = relu(x[4])").find("output z f32 [4]"), std::string::npos);
  const std::string two = spelled("a = relu(x[4]); b = exp(a) -> b, a");
  EXPECT_LT(two.find("output b"), two.find("output a")) << two;
  EXPECT_EQ(count(two, "output"), 2) << two;
  EXPECT_EQ(count(spelled("a, b = split(x[4,6], axis=1, num_outputs=2)"), "  output"), 2);
}

TEST(Spell, AnInputGivenOutIsACopy) {
  const std::string text = spelled("y = x[4]; z = relu(y) -> y, z");
  EXPECT_EQ(count(text, "output"), 2) << text;
}

TEST(Spell, WhatIsNeverUsedIsAnError) {
  EXPECT_EQ(spelled("h = relu(x[3]); exp(x)"), "usage 1:1");
  EXPECT_EQ(spelled("relu(x[3]); exp(x)"), "usage 1:1");
  EXPECT_EQ(spelled("h = relu(x[3]); exp(h) -> h"), "usage 1:17");
  EXPECT_EQ(spelled("h = relu(x[3]); h = exp(h)"), "usage 1:17");
}

TEST(Spell, NamesOfTheTextAreNoneOfTheModelsOwn) {
  const std::string text = spelled("t1[4] + c1[4] * 2 + exp(y[4]) * t2[4]");
  EXPECT_EQ(count(text, "input"), 4) << text;
  EXPECT_EQ(count(text, "output y1 f32 [4]"), 1) << text;
}

TEST(Spell, FunctionsAreWrittenInOperators) {
  EXPECT_EQ(spelled("silu(x[4])"), spelled("mul(x[4], sigmoid(x))"));
  EXPECT_EQ(spelled("linear(x[4,8], w[16,8], b[16])"),
            spelled("matmul(x[4,8], transpose(w[16,8], perm=[1,0])) + b[16]"));
  EXPECT_EQ(spelled("Log_Softmax(x[4,8])"), spelled("logsoftmax(x[4,8])"));
  EXPECT_NE(spelled("attention(q[8,16], k[4,16], v[4,32])").find("output y f32 [8,32]"),
            std::string::npos);
}

TEST(Spell, ANumberStandsForEverySpatialAxis) {
  EXPECT_EQ(spelled("conv2d(x[1,4,9,9], w[8,4,3,3], strides=2, pads=1)"),
            spelled("conv2d(x[1,4,9,9], w[8,4,3,3], strides=[2,2], pads=[1,1,1,1])"));
  EXPECT_EQ(spelled("conv(x[1,4,9,9], w[8,4,3,3], pads=[1,0])"),
            spelled("conv(x[1,4,9,9], w[8,4,3,3], pads=[1,0,1,0])"));
}

TEST(Spell, AFunctionThatSharesItsNameIsTheOperatorWhereItsOperandsSaySo) {
  EXPECT_NE(spelled("max(x[4,8], -1)").find("ReduceMax"), std::string::npos);
  EXPECT_NE(spelled("max(x[4,8], z[8])").find("Max(x, z)"), std::string::npos);
  EXPECT_NE(spelled("maxpool(x[1,2,8,8], kernel_shape=[2,2])").find("MaxPool"), std::string::npos);
}

TEST(Spell, EveryExampleOfTheCatalogueIsAModel) {
  std::set<std::string> seen;
  for (const Spelling& one : catalogue()) {
    const auto model = spell_onnx(one.example, "m", Dtype::f32);
    EXPECT_TRUE(model) << one.name << ": " << one.example << describe(model.error());
    EXPECT_TRUE(seen.insert(one.name + one.arguments + one.group).second) << one.name;
  }
  EXPECT_GT(seen.size(), 150u);
}

TEST(Spell, ManyConstantsBesideEachOtherAreNotDeep) {
  std::string text = "sum(x[4]";
  for (int i = 0; i < 300; ++i)
    text += ", 1";
  EXPECT_TRUE(spell_onnx(text + ")", "m", Dtype::f32));
}

TEST(Spell, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "relu(";
  EXPECT_EQ(spelled(text).substr(0, 5), "usage");
}
}  // namespace
}  // namespace warploom
