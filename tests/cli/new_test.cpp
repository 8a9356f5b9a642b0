// `warploom new`: models for those who have none.
#include <gtest/gtest.h>
#include "base/file.h"
#include "base/process.h"
#include "onnx/load.h"

namespace warploom {
namespace {
struct New : testing::Test {
  ScratchFolder scratch{"new-test"};
  std::string out;

  int make(const std::string& flags) {
    const auto ran = run_process(
        {"bash", "-c",
         "cd '" + scratch.path().string() + "' && " WARPLOOM_BINARY_DIR "/warploom new " + flags},
        {.time = std::chrono::seconds(60)});
    EXPECT_TRUE(ran);
    out = ran->out + ran->err;
    return ran->exit_status;
  }
};

TEST_F(New, EveryRecipeMakesAModel) {
  for (const char* name :
       {"matmul", "linear", "linear_gelu", "mlp", "softmax", "logsoftmax", "layernorm", "rmsnorm",
        "sum", "max", "argmax", "add", "relu", "gelu", "sigmoid", "transpose"}) {
    EXPECT_EQ(make(std::string(name) + " --input 6,8 --features 4"), 0) << name << out;
    EXPECT_TRUE(load_onnx(scratch.path() / (std::string(name) + ".onnx"))) << name;
  }
  for (const char* name : {"conv2d", "conv2d_relu", "conv2d_relu_maxpool", "conv2d_batchnorm_relu",
                           "maxpool2d", "averagepool2d"}) {
    EXPECT_EQ(make(std::string(name) + " --input 2,4,9,9 --features 4 --padding 0 --groups 2"), 0)
        << name << out;
    EXPECT_TRUE(load_onnx(scratch.path() / (std::string(name) + ".onnx"))) << name;
  }
}

TEST_F(New, AnExpressionIsAModelOfItsOwn) {
  EXPECT_EQ(make("'relu(x[3,4])' --out mine.textproto"), 0) << out;
  EXPECT_TRUE(load_onnx(scratch.path() / "mine.textproto"));
}

TEST_F(New, AFileThatIsThereIsKept) {
  EXPECT_EQ(make("relu --input 4"), 0);
  EXPECT_EQ(make("relu --input 5"), 3);
  EXPECT_NE(out.find("file-unwritable"), out.npos) << out;
}

TEST_F(New, SizesThatAreMissingOrNoneAreUsageErrors) {
  for (const char* flags :
       {"matmul --input 4,4", "conv2d --input 3,4 --features 2", "relu --input 3,x",
        "relu --input ''", "unknown", "conv2d --input 1,2,3,4 --features 2 --groups 0",
        "relu --input 4 --dtype f99"}) {
    EXPECT_EQ(make(flags), 2) << flags;
    EXPECT_NE(out.find("usage"), out.npos) << out;
  }
}
}  // namespace
}  // namespace warploom
