// What is accepted, and the code of every refusal.
#include "onnx/load.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "graph/graph.h"
#include "onnx/spell.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;

std::string value(std::string_view name, std::string_view dims, int type = 1) {
  std::string text =
      fmt::format("name: \"{}\" type {{ tensor_type {{ elem_type: {} shape {{ ", name, type);
  for (char c : dims)  // one digit a dimension, n a dynamic one
    text += c == 'n' ? std::string("dim { dim_param: \"n\" } ")
                     : fmt::format("dim {{ dim_value: {} }} ", c);
  return text + "} } }";
}

std::string model(std::string_view body, int opset = 20) {
  return fmt::format("ir_version: 10 opset_import {{ version: {} }} graph {{ name: \"t\" {} }}",
                     opset, body);
}

// y = op(x) with more text inside the node.
std::string unary(std::string_view op, std::string_view more = "", std::string_view dims = "34",
                  int opset = 20) {
  return model(
      fmt::format(
          "node {{ name: \"n\" op_type: \"{}\" input: \"x\" output: \"y\" {} }} input {{ {} "
          "}} output {{ name: \"y\" }}",
          op, more, value("x", dims)),
      opset);
}

ErrorCode code(std::string_view content) {
  const auto graph = parse_onnx(content);
  return graph ? ErrorCode::kInternal : graph.error().code;
}

std::string example(std::string_view name) {
  return *read_file(test::source_path(fmt::format("examples/{}.textproto", name)));
}

// The text form as a binary file.
std::string binary(const std::string& text) {
  const auto graph = parse_onnx(text);
  onnx::ModelProto proto;
  proto.set_ir_version(10);
  proto.add_opset_import()->set_version(20);
  auto& g = *proto.mutable_graph();
  g.set_name(graph->name);
  for (graph::TensorId id : graph->inputs) {
    auto& input = *g.add_input();
    input.set_name(graph->tensor(id).name);
    input.mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx_type_of(graph->tensor(id).dtype));
    for (auto size : graph->tensor(id).shape)
      input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(size);
  }
  for (const auto& node : graph->nodes) {
    auto& made = *g.add_node();
    made.set_op_type(std::string(name_of(node.op)));
    for (graph::TensorId id : node.inputs)
      made.add_input(graph->tensor(id).name);
    for (graph::TensorId id : node.outputs)
      made.add_output(graph->tensor(id).name);
  }
  for (graph::TensorId id : graph->outputs)
    g.add_output()->set_name(graph->tensor(id).name);
  return proto.SerializeAsString();
}

TEST(Load, EveryExampleLoads) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(test::source_path("examples"))) {
    if (entry.path().extension() != ".textproto") continue;
    const auto graph = load_onnx(entry.path());
    EXPECT_TRUE(graph) << describe(graph.error());
    ++count;
  }
  EXPECT_GE(count, 8);
}

TEST(Load, TextAndBinaryGiveTheSameGraph) {
  const std::string text = example("matmul_bias_gelu_small");
  EXPECT_EQ(to_text(*parse_onnx(text)), to_text(*parse_onnx(binary(text))));
}

TEST(Load, WrittenTextGivesTheSameGraph) {
  const ScratchFolder folder("onnx");
  const fs::path path = folder.path() / "model.onnx";
  for (const std::string& content :
       {example("matmul_bias_gelu"), binary(example("matmul_bias_gelu_small"))}) {
    ASSERT_TRUE(write_file(path, content));
    EXPECT_EQ(to_text(*parse_onnx(*onnx_text(path))), to_text(*load_onnx(path)));
  }
}

TEST(Load, ContentDecidesTheForm) {
  const ScratchFolder folder("onnx");
  const fs::path path = folder.path() / "text.onnx";
  ASSERT_TRUE(write_file(path, example("softmax_small")));
  EXPECT_TRUE(load_onnx(path));
}

TEST(Load, MissingFilesAndFolders) {
  EXPECT_EQ(load_onnx("/no/such/model.onnx").error().code, ErrorCode::kFileMissing);
  EXPECT_EQ(load_onnx(test::source_path()).error().code, ErrorCode::kFileUnreadable);
}

TEST(Load, ForeignContent) {
  EXPECT_EQ(code(""), ErrorCode::kOnnxEmpty);
  EXPECT_EQ(code("hello, this is no model\n"), ErrorCode::kOnnxNotOnnx);
  EXPECT_EQ(code(std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16)), ErrorCode::kOnnxNotOnnx);
  EXPECT_EQ(code(std::string(1000, '\0')), ErrorCode::kOnnxNotOnnx);
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    std::string noise(1 + random.below(2000), ' ');
    for (char& c : noise)
      c = static_cast<char>(random.below(256));
    noise[0] = static_cast<char>(0x80 | random.below(128));
    EXPECT_EQ(code(noise), ErrorCode::kOnnxNotOnnx);
  }
}

TEST(Load, TruncatedModels) {
  const std::string whole = binary(example("matmul_bias_gelu_small"));
  int truncated = 0;
  for (size_t size = 3; size < whole.size(); ++size) {
    const ErrorCode got = code(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(got == ErrorCode::kOnnxTruncated || got == ErrorCode::kOnnxNotOnnx ||
                got == ErrorCode::kOnnxOpset)
        << size;
    truncated += got == ErrorCode::kOnnxTruncated;
  }
  EXPECT_GT(truncated, static_cast<int>(whole.size()) * 9 / 10);
  const std::string text = example("matmul_bias_gelu_small");
  EXPECT_EQ(code(std::string_view(text).substr(0, text.size() / 2)), ErrorCode::kOnnxTruncated);
}

TEST(Load, Opsets) {
  for (const int opset : {1, 6, 7, 12, 13, 28})
    EXPECT_TRUE(parse_onnx(unary("Relu", "", "34", opset)));
  EXPECT_EQ(code(unary("Relu", "", "34", 0)), ErrorCode::kOnnxOpset);
  EXPECT_EQ(code(unary("Relu", "", "34", 29)), ErrorCode::kOnnxOpset);
  EXPECT_EQ(code(unary("Relu", "domain: \"com.example\"")), ErrorCode::kOnnxOpset);
}

TEST(Load, TheOwnDomainHasItsOwnOperatorsAlone) {
  const std::string text = example("matmul_e4m3_blocks");
  EXPECT_TRUE(parse_onnx(text));
  const auto changed = [&](const char* op) {
    std::string other = text;
    const std::string given = "op_type: \"ScaledMatMul\" domain: \"warploom\"";
    return other.replace(other.find(given), given.size(), op);
  };
  EXPECT_EQ(code(changed("op_type: \"MatMul\" domain: \"warploom\"")),
            ErrorCode::kOnnxUnknownOperator);
  EXPECT_EQ(code(changed("op_type: \"ScaledMatMul\"")), ErrorCode::kOnnxUnknownOperator);
}

TEST(Load, OperatorsAndAttributesHaveTheirFirstOpset) {
  EXPECT_TRUE(parse_onnx(unary("Gelu")));
  EXPECT_EQ(code(unary("Gelu", "", "34", 19)), ErrorCode::kOnnxUnknownOperator);
  EXPECT_EQ(code(unary("Mish", "", "34", 17)), ErrorCode::kOnnxUnknownOperator);
  EXPECT_TRUE(parse_onnx(unary("Cast",
                               "attribute { name: \"to\" type: INT i: 17 } attribute { name: "
                               "\"saturate\" type: INT i: 0 }")));
  EXPECT_EQ(code(unary("Cast",
                       "attribute { name: \"to\" type: INT i: 16 } attribute { name: \"saturate\" "
                       "type: INT i: 0 }",
                       "34", 18)),
            ErrorCode::kOnnxAttribute);
}

TEST(Load, UnknownOperatorsAreNamedWithTheirNodeAndTheSupportedOnes) {
  const auto graph = parse_onnx(unary("Frobnicate"));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(graph.error().message.find("Frobnicate"), std::string::npos);
  EXPECT_NE(graph.error().place.find("node 'n'"), std::string::npos);
  EXPECT_NE(graph.error().expected.find("MatMul"), std::string::npos);
}

TEST(Load, UnknownOperatorsHaveARemedyThatCanBeFollowed) {
  const auto remedy = [](std::string_view op, std::string_view domain = "") {
    const auto graph = parse_onnx(unary(op, fmt::format("domain: \"{}\"", domain)));
    return graph ? "" : graph.error().remedy;
  };
  EXPECT_EQ(remedy("Sofmax"), remedy("Sofmax").substr(0, remedy("Sofmax").find('?') + 1) +
                                  " Write it as operators that are supported (docs/onnx.md lists "
                                  "them)");
  EXPECT_NE(remedy("Sofmax").find("did you mean Softmax?"), std::string::npos);
  EXPECT_NE(remedy("NonZero").find("depends on the values"), std::string::npos);
  EXPECT_NE(remedy("RandomNormalLike").find("as an input"), std::string::npos);
  EXPECT_NE(remedy("GatherBlockQuantized", "com.microsoft").find("then Gather"), std::string::npos);
  EXPECT_NE(remedy("Thing", "com.microsoft").find("optimizer"), std::string::npos);
  EXPECT_NE(remedy("ImageDecoder").find("outside the model"), std::string::npos);
  EXPECT_NE(remedy("TreeEnsemble", "ai.onnx.ml").find("outside the model"), std::string::npos);
  EXPECT_NE(remedy("MyOp", "my.domain").find("a function of the model"), std::string::npos);
}

TEST(Load, GitLfsPointersAreNamed) {
  const auto graph =
      parse_onnx("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kOnnxNotOnnx);
  EXPECT_NE(graph.error().remedy.find("git lfs pull"), std::string::npos);
}

TEST(Load, Attributes) {
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axis\" type: FLOAT f: 1 }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axis\" type: INTS ints: 1 }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axis\" type: INT i: 7 }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axes\" type: INT i: 1 }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axis\" i: 1 }")), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax",
                       "attribute { name: \"axis\" type: INT i: 1 } attribute { name: \"axis\" "
                       "type: INT i: 1 }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Softmax", "attribute { name: \"axis\" type: GRAPH g { } }")),
            ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Cast")), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(unary("Cast", "attribute { name: \"to\" type: INT i: 8 }")), ErrorCode::kOnnxType);
}

TEST(Load, InternalOperatorsAreUnknown) {
  EXPECT_EQ(code(unary("SumPool")), ErrorCode::kOnnxUnknownOperator);
}

TEST(Load, ConstantOfShapeIsFilled) {
  const auto filled = [](std::string_view more) {
    return model(
        fmt::format("node {{ op_type: \"ConstantOfShape\" input: \"s\" output: \"c\" {} }} node {{ "
                    "op_type: \"Add\" input: \"x\" "
                    "input: \"c\" output: \"y\" }} input {{ {} }} initializer {{ name: \"s\" "
                    "data_type: 7 dims: 1 int64_data: 4 }} "
                    "output {{ name: \"y\" }}",
                    more, value("x", "34")));
  };
  const auto tensor = [](std::string_view of) {
    return fmt::format("attribute {{ name: \"value\" type: TENSOR t {{ data_type: 1 {} }} }}", of);
  };
  const auto graph = parse_onnx(filled(tensor("dims: 1 float_data: 2")));
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_EQ(graph->nodes.size(), 1u);
  EXPECT_TRUE(parse_onnx(filled("")));
  EXPECT_EQ(code(filled(tensor("dims: 2 float_data: 2 float_data: 3"))), ErrorCode::kOnnxAttribute);
  EXPECT_EQ(code(filled("attribute { name: \"value\" type: INT i: 1 }")),
            ErrorCode::kOnnxAttribute);
}

TEST(Load, DynamicShapes) {
  EXPECT_EQ(code(unary("Relu", "", "n4")), ErrorCode::kOnnxDynamicShape);
  EXPECT_EQ(
      code(model("node { op_type: \"Relu\" input: \"x\" output: \"y\" } input { name: \"x\" type { "
                 "tensor_type { elem_type: 1 } } } "
                 "output { name: \"y\" }")),
      ErrorCode::kOnnxDynamicShape);
}

TEST(Load, HugeShapes) {
  for (const char* dims : {"4611686018427387904", "1099511627777"})
    EXPECT_EQ(code(model(fmt::format(
                  "node {{ op_type: \"Relu\" input: \"x\" output: \"y\" }} input {{ name: "
                  "\"x\" type {{ tensor_type {{ "
                  "elem_type: 1 shape {{ dim {{ dim_value: {} }} dim {{ dim_value: 8 }} "
                  "}} }} }} }} output {{ name: \"y\" }}",
                  dims))),
              ErrorCode::kOnnxTooLarge);
  // An initializer that claims 4 GiB and brings 4 bytes.
  EXPECT_EQ(
      code(model("node { op_type: \"Relu\" input: \"x\" output: \"y\" } initializer { name: \"x\" "
                 "data_type: 1 dims: 1073741824 "
                 "raw_data: \"abcd\" } output { name: \"y\" }")),
      ErrorCode::kOnnxTooLarge);
  std::string deep;
  for (int i = 0; i < 20; ++i)
    deep += "1";
  EXPECT_EQ(code(unary("Relu", "", deep)), ErrorCode::kOnnxTooLarge);
}

TEST(Load, TypesAndDeclarations) {
  const auto two = [](std::string_view out, int type) {
    return model(fmt::format(
        "node {{ op_type: \"Add\" input: \"a\" input: \"b\" output: \"y\" }} input {{ {} }} "
        "input {{ {} }} output {{ {} }}",
        value("a", "34"), value("b", "4", type), value("y", out)));
  };
  EXPECT_TRUE(parse_onnx(two("34", 1)));
  EXPECT_TRUE(parse_onnx(two("n4", 1)));
  EXPECT_EQ(code(two("34", 10)), ErrorCode::kOnnxType);
  EXPECT_EQ(code(two("34", 8)), ErrorCode::kOnnxType);
  EXPECT_EQ(code(two("43", 1)), ErrorCode::kOnnxShape);
  EXPECT_EQ(code(two("3", 1)), ErrorCode::kOnnxShape);
}

TEST(Load, ACompositeOfIntegersThatNeedsRealsIsRefused) {
  EXPECT_EQ(code(model(fmt::format(
                "node {{ op_type: \"ReduceLogSumExp\" input: \"x\" output: \"y\" }} input {{ {} }} "
                "output {{ name: \"y\" }}",
                value("x", "34", 2)))),
            ErrorCode::kOnnxType);
}

TEST(Load, Names) {
  const std::string x = value("x", "34");
  const auto nodes = [&](std::string_view text) {
    return model(fmt::format("{} input {{ {} }} output {{ name: \"y\" }}", text, x));
  };
  EXPECT_EQ(code(nodes("node { op_type: \"Relu\" input: \"z\" output: \"y\" }")),
            ErrorCode::kOnnxName);
  EXPECT_EQ(
      code(nodes(
          "node { op_type: \"Relu\" input: \"x\" output: \"y\" } node { op_type: \"Exp\" input: "
          "\"x\" output: \"y\" }")),
      ErrorCode::kOnnxName);
  EXPECT_EQ(code(nodes("node { op_type: \"Relu\" input: \"x\" output: \"x\" }")),
            ErrorCode::kOnnxName);
  EXPECT_EQ(code(nodes("node { op_type: \"Relu\" input: \"x\" output: \"q\" }")),
            ErrorCode::kOnnxName);
  EXPECT_EQ(code(nodes("node { op_type: \"Add\" input: \"x\" output: \"y\" }")),
            ErrorCode::kOnnxName);
  EXPECT_EQ(code(nodes("node { op_type: \"Relu\" input: \"x\" input: \"x\" output: \"y\" }")),
            ErrorCode::kOnnxName);
  EXPECT_EQ(code(nodes("node { op_type: \"Relu\" input: \"x\" }")), ErrorCode::kOnnxName);
  EXPECT_EQ(
      code(nodes("node { op_type: \"Relu\" input: \"x\" output: \"y\" } input { " + x + " }")),
      ErrorCode::kOnnxName);
  EXPECT_EQ(code(model("input { " + x + " }")), ErrorCode::kOnnxName);
}

TEST(Load, CirclesAreNamed) {
  EXPECT_EQ(code(model(
                "node { op_type: \"Add\" input: \"x\" input: \"b\" output: \"a\" } node { op_type: "
                "\"Relu\" input: \"a\" output: \"b\" } "
                "input { " +
                value("x", "4") + " } output { name: \"b\" }")),
            ErrorCode::kOnnxCyclic);
}

TEST(Load, InitializersListedAsInputsAreConstant) {
  const auto graph = parse_onnx(
      model("node { op_type: \"Add\" input: \"x\" input: \"w\" output: \"y\" } input { " +
            value("w", "2") + " } input { " + value("x", "32") +
            " } output { name: \"y\" } "
            "initializer { name: \"w\" data_type: 1 dims: 2 float_data: 1.5 float_data: -2 }"));
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->tensor(graph->inputs[0]).name, "x");
}

TEST(Load, DeepNestingIsRefused) {
  std::string text = "a";
  for (int i = 0; i < 5000; ++i)
    text = "graph { node { attribute { g { " + text;
  EXPECT_EQ(code("ir_version: 1 " + text), ErrorCode::kOnnxNotOnnx);
  std::string bytes;  // attribute.g inside node inside graph, 3000 times
  for (int i = 0; i < 3000; ++i) {
    std::string next;
    for (const char tag : {'\x32', '\x2a', '\x0a'}) {
      std::string length;
      for (size_t n = bytes.size(); length.empty() || n > 0; n >>= 7)
        length += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
      bytes = std::string(1, tag) + length + bytes;
    }
  }
  EXPECT_NE(code("\x08\x08\x3a" + std::string("\xff\xff\x03") + bytes), ErrorCode::kInternal);
}

TEST(Load, ExternalDataOfAModelInMemoryIsRefused) {
  EXPECT_EQ(
      code(model("node { op_type: \"Relu\" input: \"w\" output: \"y\" } initializer { name: \"w\" "
                 "data_type: 1 dims: 4 data_location: EXTERNAL "
                 "external_data { key: \"location\" value: \"w.bin\" } } output { name: \"y\" }")),
      ErrorCode::kOnnxExternalData);
}

struct Assumed : testing::Test {
  const ScratchFolder scratch{"assumed"};
  const fs::path file = scratch.path() / "m.onnx";

  void SetUp() override {
    ASSERT_TRUE(write_file(file, spell_onnx("matmul(a[4,4], b[4,4])", "m", Dtype::f32)->binary));
  }
};

TEST_F(Assumed, TrianglesStandInFrontOfAllThatReadTheInput) {
  const auto graph = load_onnx(file, {.assume = {"a=lower"}});
  const auto other = load_onnx(file, {.assume = {"b=upper"}});
  ASSERT_TRUE(graph && other);
  EXPECT_NE(to_text(*graph).find("Trilu(a) upper=0"), std::string::npos) << to_text(*graph);
  EXPECT_NE(to_text(*other).find("Trilu(b) upper=1"), std::string::npos) << to_text(*other);
  EXPECT_EQ(graph->inputs.size(), 2U);
}

TEST_F(Assumed, GoAlongIntoTheText) {
  const auto graph = load_onnx(file, {.assume = {"a=lower"}});
  const auto again = parse_onnx(*onnx_text(file, {.assume = {"a=lower"}}));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(to_text(*again), to_text(*graph));
}

TEST_F(Assumed, TwiceIsOnceAndBothTrianglesAreADiagonal) {
  const auto once = load_onnx(file, {.assume = {"a=lower"}});
  const auto twice = load_onnx(file, {.assume = {"a=lower", "a=lower"}});
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(to_text(*twice), to_text(*once));
  const auto both = load_onnx(file, {.assume = {"a=upper", "a=lower"}});
  ASSERT_TRUE(both) << describe(both.error());
  EXPECT_EQ(std::ranges::count(both->nodes, graph::OpKind::Trilu, &graph::Node::op), 2);
}

TEST_F(Assumed, OfAnOpsetWithoutTrianglesNameTheFlag) {
  std::string text = *onnx_text(file);
  const size_t version = text.find(": 23");
  ASSERT_NE(version, std::string::npos) << text;
  ASSERT_TRUE(write_file(file, text.replace(version, 4, ": 13")));
  const auto graph = load_onnx(file, {.assume = {"a=lower"}});
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kOnnxUnknownOperator);
  EXPECT_NE(graph.error().place.find("a=lower"), std::string::npos) << describe(graph.error());
}

TEST_F(Assumed, OfNoInputOrOfNoFormAreRefused) {
  for (const char* wrong : {"c=lower", "a=round", "a", "", "=", "y=upper", "a=lower=upper"}) {
    const auto graph = load_onnx(file, {.assume = {wrong}});
    ASSERT_FALSE(graph) << wrong;
    EXPECT_EQ(graph.error().code, ErrorCode::kUsage) << wrong;
  }
}

TEST(OnnxText, LeavesOutFieldsOfANewerFormat) {
  const ScratchFolder scratch("newer");
  const auto model = spell_onnx("relu(x[4])", "m", Dtype::f32);
  ASSERT_TRUE(model);
  const fs::path file = scratch.path() / "m.onnx";
  ASSERT_TRUE(write_file(file, model->binary + "\xa0\x06\x01"));  // field 100: a number
  const auto again = parse_onnx(*onnx_text(file));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(to_text(*again), to_text(model->graph));
}
}  // namespace
}  // namespace warploom
