// The executable as its tests start it, in a folder of its own with a model.
#pragma once
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "support/paths.h"

namespace warploom::cli_test {
namespace fs = std::filesystem;
using nlohmann::json;

inline const std::string kProgram = test::built_path("warploom");

inline std::string tensor(const std::string& role, const std::string& name, int type, int rows,
                          int columns) {
  return role + " { name: \"" + name +
         "\" type { tensor_type { elem_type: " + std::to_string(type) +
         " shape { dim { dim_value: " + std::to_string(rows) +
         " } dim { dim_value: " + std::to_string(columns) + " } } } } }\n";
}

// C = A·B, square; element type by ONNX's number.
inline std::string matmul_model(int type = 1, int size = 64) {
  return "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: \"mm\"\n"
         "node { input: \"A\" input: \"B\" output: \"C\" op_type: \"MatMul\" }\n" +
         tensor("input", "A", type, size, size) + tensor("input", "B", type, size, size) +
         tensor("output", "C", type, size, size) + "}\n";
}

struct Ran {
  int status = -1;
  json out;  // discarded where standard output is not one JSON object
  std::string text;
  std::string err;

  std::string code() const {
    return out.is_object() && out.contains("error") ? out["error"].value("code", "") : "";
  }
};

class Cli : public testing::Test {
 protected:
  ScratchFolder scratch{"cli-test"};
  fs::path model = scratch.path() / "mm.textproto";

  void SetUp() override { ASSERT_TRUE(write_file(model, matmul_model())); }

  Ran shell(const std::string& line, int seconds = 200) {
    const std::string set_up = "export XDG_CACHE_HOME='" + scratch.path().string() +
                               "/cache'; W='" + kProgram + "'; cd '" + scratch.path().string() +
                               "'; ";
    const auto result =
        run_process({"bash", "-c", set_up + line},
                    {.time = std::chrono::seconds(seconds), .output_bytes = 64 << 20});
    EXPECT_TRUE(result);
    EXPECT_FALSE(result->timed_out) << line;
    return {result->exit_status, json::parse(result->out, nullptr, false), result->out,
            result->err};
  }

  Ran optimize(const std::string& flags) {
    return shell("$W optimize " + model.string() + " --json " + flags);
  }

  void expect_error(const Ran& run, const std::string& code, int status) {
    EXPECT_EQ(run.code(), code) << run.text << run.err;
    EXPECT_EQ(run.status, status);
    ASSERT_TRUE(run.out.is_object() && run.out.contains("error")) << run.text;
    for (const char* key : {"code", "message", "place", "expected", "found", "remedy"})
      EXPECT_TRUE(run.out["error"].contains(key)) << key;
  }
};
}  // namespace warploom::cli_test
