// Models apart from their weights.
#include <gtest/gtest.h>
#include <onnx/onnx.pb.h>
#include <filesystem>
#include "base/error.h"
#include "base/file.h"
#include "onnx/load.h"

namespace warploom {
namespace {
// y = (x + a) · b, where b is a copy of a by an exporter that merged them.
constexpr const char* kMerged = R"(ir_version: 8 opset_import { version: 17 } graph { name: "t"
  node { op_type: "Identity" input: "a" output: "b" }
  node { op_type: "Add" input: "x" input: "a" output: "s" }
  node { op_type: "Mul" input: "s" input: "b" output: "p" }
  node { op_type: "Mul" input: "p" input: "f" output: "y" }
  initializer { name: "a" data_type: 1 dims: 2 float_data: 1 float_data: 1 }
  initializer { name: "f" data_type: 1 float_data: 3 }
  input { name: "x" type { tensor_type { elem_type: 1
    shape { dim { dim_value: 4 } dim { dim_value: 2 } } } } }
  output { name: "y" } })";

class Weights : public testing::Test {
 protected:
  ScratchFolder scratch{"weights-test"};
  std::filesystem::path file = scratch.path() / "model.textproto";

  void SetUp() override { ASSERT_TRUE(write_file(file, kMerged)); }
};

TEST_F(Weights, ThatAnExporterMergedAreTensorsOfTheirOwn) {
  const auto graph = load_onnx(file);
  ASSERT_TRUE(graph) << describe(graph.error());
  EXPECT_TRUE(graph->tensor_named("a"));
  EXPECT_TRUE(graph->tensor_named("b"));
}

TEST_F(Weights, AreInputsOfTheOpenModel) {
  const auto open = open_onnx(file);
  ASSERT_TRUE(open) << describe(open.error());
  EXPECT_EQ(open->graph.inputs.size(), 4);
  EXPECT_EQ(open->weights.size(), 3);
  EXPECT_TRUE(open->weights.contains("b"));
  for (const auto id : open->graph.inputs)
    EXPECT_FALSE(open->graph.tensor(id).constant);
}

TEST_F(Weights, ThatAreCarriedLeaveTheOutlineAndOthersStay) {
  const auto outline = onnx_outline(file, {"a", "b"});
  ASSERT_TRUE(outline) << describe(outline.error());
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*outline));
  for (const auto& initializer : model.graph().initializer()) {
    const bool has_bytes = initializer.has_raw_data() || initializer.float_data_size() > 0;
    EXPECT_EQ(has_bytes, initializer.name() == "f") << initializer.name();
  }
}
}  // namespace
}  // namespace warploom
