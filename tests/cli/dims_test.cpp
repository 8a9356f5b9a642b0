// --dim in the commands that read a model.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include "base/file.h"
#include "base/process.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

class DimFlags : public testing::Test {
 protected:
  ScratchFolder scratch{"dims-test"};
  fs::path model = scratch.path() / "open.textproto";

  void SetUp() override {
    const std::string text =
        "ir_version: 8 opset_import { version: 17 } graph { name: \"open\" "
        "node { input: \"x\" output: \"y\" op_type: \"Relu\" } "
        "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_param: \"batch\" "
        "} "
        "dim { dim_value: 8 } } } } } output { name: \"y\" } }";
    ASSERT_TRUE(write_file(model, text));
  }

  // The one JSON object of `warploom LINE --json`.
  json ran(const std::string& line) {
    const std::string command =
        fmt::format("export XDG_CACHE_HOME='{0}/cache'; cd '{0}'; '{1}' {2} --json",
                    scratch.path().string(), test::built_path("warploom"), line);
    const auto result = run_process({"bash", "-c", command}, {.time = std::chrono::seconds(200)});
    EXPECT_TRUE(result);
    return result ? json::parse(result->out, nullptr, false) : json();
  }

  static std::string code_of(const json& answer) {
    // Of an answer that is no failure `error` is a number.
    const bool failed = answer.contains("error") && answer["error"].is_object();
    return failed ? answer["error"].value("code", "") : "";
  }
};

TEST_F(DimFlags, BindWhatTheModelLeavesOpen) {
  const json open = ran("show open.textproto");
  EXPECT_EQ(code_of(open), "onnx-dynamic-shape") << open;
  EXPECT_EQ(open["error"]["remedy"], "give it: --dim batch=SIZE");
  const std::string graph = ran("show open.textproto --dim batch=4")["graph"];
  EXPECT_NE(graph.find("[4,8]"), std::string::npos) << graph;
  EXPECT_EQ(code_of(ran("show open.textproto --dim bach=4")), "usage");
}

TEST_F(DimFlags, GoAlongWithThePlan) {
  const json made = ran(
      "optimize open.textproto --dim batch=4 --target cpu --candidates 1 --budget 60s --out made");
  ASSERT_EQ(code_of(made), "") << made;
  for (const char* line : {"verify made", "verify made --model open.textproto",
                           "verify made --model open.textproto --dim batch=4"})
    EXPECT_EQ(code_of(ran(line)), "") << line;
  EXPECT_EQ(code_of(ran("verify made --model open.textproto --dim batch=5")), "flags-contradict");
}
}  // namespace
}  // namespace warploom
