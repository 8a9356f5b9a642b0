// `warploom new`: models for those who have none.
#include <gtest/gtest.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/rendered.h"
#include "graph/track.h"
#include "onnx/load.h"
#include "onnx/spell.h"
#include "plan/fusion.h"
#include "search/optimize.h"
#include "support/paths.h"
#include "target/capabilities.h"

namespace warploom {
namespace {
struct New : testing::Test {
  ScratchFolder scratch{"new-test"};
  std::string out;

  int make(const std::string& flags) {
    const auto ran = run_process({"bash", "-c",
                                  "cd '" + scratch.path().string() + "' && " +
                                      test::built_path("warploom") + " new " + flags},
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

TEST_F(New, EveryExampleOfTheCatalogueIsCoveredByKernels) {
  for (const Spelling& one : catalogue()) {
    const auto model = spell_onnx(one.example, "m", Dtype::f32);
    ASSERT_TRUE(model) << one.example << describe(model.error());
    const Track track = search::default_track(model->graph);
    bool covered = false;
    for (const char* target : {"cpu", "sm_80"}) {
      const auto capabilities = target::capabilities_of(target);
      auto planned = plan::lower_for_target(model->graph, *capabilities);
      covered = covered || (planned && plan::regions_of(*planned, track, *capabilities));
    }
    EXPECT_TRUE(covered) << one.example;
  }
}

TEST_F(New, TheCatalogueShowsNamesArgumentsAndExamples) {
  EXPECT_EQ(make("--list"), 0);
  for (const char* part : {"attention(q, k, v)", "conv2d(x, w, b=_, strides=1", "ONNX operators",
                           "embedding(ids[2,7]:i64, table[100,64])"})
    EXPECT_NE(out.find(part), out.npos) << part;
  EXPECT_EQ(make("--list rope --json"), 0);
  EXPECT_EQ(nlohmann::json::parse(out)["functions"][0]["name"], "rope");
}

TEST_F(New, EveryRecipeIsAFunctionToo) {
  std::set<std::string> names;
  for (const Spelling& one : catalogue())
    names.insert(one.name);
  for (const auto& recipe : nlohmann::json::parse(resource("new/problems.json")))
    EXPECT_TRUE(names.contains(recipe["name"])) << recipe["name"];
}

TEST_F(New, StatementsBecomeOneModel) {
  EXPECT_EQ(make("'h = conv(x[1,3,32,32], w[8,3,3,3]); mul(h, sigmoid(h))' --out h.onnx"), 0)
      << out;
  const auto graph = load_onnx(scratch.path() / "h.onnx");
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->nodes.size(), 3u);
}

TEST_F(New, MisspeltWordsAreAnsweredWithWhatWasMeant) {
  const std::pair<const char*, const char*> cases[] = {
      {"sotfmax --input 3,4", "did you mean softmax?"},
      {"'sotfmax(x[3,4])'", "did you mean softmax?"},
      {"attention", "attention(q["},
      {"relu --input 3 --dtype f23", "did you mean f32?"},
  };
  for (const auto& [flags, remedy] : cases) {
    EXPECT_EQ(make(flags), 2) << flags;
    EXPECT_NE(out.find("error[usage]"), out.npos) << out;
    EXPECT_NE(out.find(remedy), out.npos) << out;
  }
}

TEST_F(New, AnErrorIsMarkedInTheText) {
  EXPECT_EQ(make("'relu(conf(x[3,4]))'"), 2);
  EXPECT_NE(out.find("            relu(conf(x[3,4]))\n                 ^^^^\n"), out.npos) << out;
}

TEST_F(New, SizesAreNotGivenTwice) {
  EXPECT_EQ(make("'relu(x[3,4])' --input 3,4"), 2);
  EXPECT_NE(out.find("flags-contradict"), out.npos) << out;
}

TEST_F(New, NothingToMakeIsAUsageError) {
  EXPECT_EQ(make(""), 2);
  EXPECT_NE(out.find("usage"), out.npos) << out;
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
