// `warploom compile`: tile programs of the examples, and what is said of programs that cannot be.
#include <gtest/gtest.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include "base/file.h"
#include "base/process.h"

namespace warploom {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Compile : public testing::Test {
 protected:
  ScratchFolder scratch{"compile-test"};
  json compile(const fs::path& file, std::vector<std::string> flags = {}) {
    std::vector<std::string> command = {WARPLOOM_BINARY_DIR "/warploom", "compile", file.string(), "--json"};
    command.insert(command.end(), flags.begin(), flags.end());
    const auto run = run_process(command, {.time = std::chrono::seconds(100), .output_bytes = 16 << 20});
    return run ? json::parse(run->out, nullptr, false) : json();
  }
  json compile_text(const std::string& text, std::vector<std::string> flags = {}) {
    EXPECT_TRUE(write_file(scratch.path() / "p.tile", text));
    return compile(scratch.path() / "p.tile", std::move(flags));
  }
};

TEST_F(Compile, EveryExampleAgreesWithItsMeaningOnTheEmulator) {
  int examples = 0;
  for (const auto& entry : fs::directory_iterator(WARPLOOM_SOURCE_DIR "/examples/tile")) {
    const json out = compile(entry.path(), {"--check"});
    ASSERT_TRUE(out.contains("verdict")) << entry.path() << out.dump(1);
    EXPECT_TRUE(out["verdict"]["agrees"].get<bool>());
    EXPECT_EQ(out["verdict"]["wavefronts"], out["verdict"]["wavefronts_least"]) << "bank conflicts in " << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 6);
}

TEST_F(Compile, ProgramsWithoutRolesAgreeOnEveryGpuTarget) {
  for (const char* name : {"attention.tile", "gemm_mma.tile", "softmax.tile"})
    for (const char* target : {"sm_80", "sm_89"}) {
      const json out = compile(fs::path(WARPLOOM_SOURCE_DIR "/examples/tile") / name, {"--check", "--target", target});
      EXPECT_TRUE(out.contains("verdict")) << name << " for " << target << out.dump(1);
    }
}

TEST_F(Compile, ProgramsOfEveryOperandTypeAndOfOddShapesAgree) {
  for (const auto& entry : fs::directory_iterator(WARPLOOM_SOURCE_DIR "/tests/cli/tile")) {
    const json out = compile(entry.path(), {"--check"});
    EXPECT_TRUE(out.contains("verdict")) << entry.path() << out.dump(1);
  }
}

TEST_F(Compile, NamesTheInstructionOfEveryCopyAndProduct) {
  const json out = compile(WARPLOOM_SOURCE_DIR "/examples/tile/gemm_fp8.tile");
  std::string names;
  for (const auto& row : out["instructions"]) names += row["instruction"].get<std::string>() + " ";
  EXPECT_NE(names.find("tma_load"), std::string::npos);
  EXPECT_NE(names.find("wgmma_e4m3"), std::string::npos);
}

TEST_F(Compile, AMistypedStatementIsNamedByItsLine) {
  const json out = compile_text("program p grid(1)\nregister x f32 [1, 32]\nfill x zero\n");
  EXPECT_EQ(out["error"]["code"], "tile-syntax");
  EXPECT_NE(out["error"]["place"].get<std::string>().find(":3"), std::string::npos) << out.dump();
}

TEST_F(Compile, AProductThatNoInstructionFitsIsRefusedAtItsLine) {
  const json out = compile_text(
      "program p grid(1) warps 4\nglobal A bf16 [24, 16]\nglobal B bf16 [16, 8]\noutput C f32 [24, 8]\n"
      "register a bf16 [24, 16]\nregister b bf16 [16, 8]\nregister acc f32 [24, 8]\n"
      "copy A -> a\ncopy B -> b\nfill acc 0\nmma acc += a * b\ncopy acc -> C\n",
      {"--target", "sm_80"});
  EXPECT_EQ(out["error"]["code"], "no-instruction") << out.dump(1);
  EXPECT_NE(out["error"]["place"].get<std::string>().find(":11"), std::string::npos) << out.dump(1);
}

TEST_F(Compile, LayoutsAreDrawnIntoFiles) {
  compile(WARPLOOM_SOURCE_DIR "/examples/tile/softmax.tile",
          {"--layouts", "svg", "--out", (scratch.path() / "softmax.cu").string()});
  EXPECT_TRUE(fs::exists(scratch.path() / "softmax.cu"));
  EXPECT_TRUE(fs::exists(scratch.path() / "softmax_x.svg"));
}

}  // namespace
}  // namespace warploom
