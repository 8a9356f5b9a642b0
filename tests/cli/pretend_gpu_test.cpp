// What a user is told about a GPU that is not as it should be: on a driver without one, whose
// kernels do nothing (support/pretend_driver).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include "base/file.h"
#include "base/process.h"
#include "base/quoted.h"
#include "support/paths.h"

namespace warploom {
namespace {
using nlohmann::json;

struct Ran {
  int status = -1;
  json out;
  std::string text;

  std::string of_error(const char* key) const {
    return out.is_object() && out.contains("error") ? out["error"].value(key, "") : "";
  }
};

class PretendGpu : public testing::Test {
 protected:
  ScratchFolder scratch{"pretended"};
  const std::string program = test::built_path("warploom");

  Ran run(const json& gpu, const std::string& words) {
    const std::string line = fmt::format(
        "export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH={} PRETEND_GPU={}; {} {} --json",
        shell_word(test::built_path("pretend_driver")), shell_word(gpu.dump()), shell_word(program),
        words);
    const auto ended =
        run_process({"bash", "-c", fmt::format("cd {} && {}", shell_word(folder()), line)},
                    {.time = std::chrono::seconds(100), .output_bytes = 64 << 20});
    EXPECT_TRUE(ended);
    return {ended->exit_status, json::parse(ended->out, nullptr, false), ended->out + ended->err};
  }

  Ran optimize(const json& gpu, const std::string& expression, const std::string& more = "") {
    run(gpu, fmt::format("new {} --out {}.onnx", shell_word(expression), ++models_));
    const std::string target = gpu.value("target", "sm_90a");
    return run(gpu, fmt::format("optimize {}.onnx --target {} --budget 8s --out made {}", models_,
                                target, more));
  }

  bool has_nvrtc() { return doctor(json::object())["CUDA compiler"]; }

  // Rows of `warploom doctor`: whether each is fine.
  std::map<std::string, bool> doctor(const json& gpu) {
    std::map<std::string, bool> rows;
    const Ran ran = run(gpu, "doctor");
    for (const json& row : ran.out["findings"])
      rows[row["name"]] = row["found"];
    return rows;
  }

  std::string folder() const { return scratch.path().string(); }

  int models_ = 0;
};

const std::string kProduct = "matmul(a[256,256], b[256,256])";

TEST_F(PretendGpu, ACardThatNoTableListsIsDescribedByItsDriver) {
  const Ran ran = run({{"name", "NVIDIA X1"}, {"processors", 77}}, "doctor");
  EXPECT_NE(ran.text.find("NVIDIA X1 (sm_90a), 77 multiprocessors"), std::string::npos) << ran.text;
  EXPECT_NE(ran.text.find("not listed: peaks are estimated"), std::string::npos) << ran.text;
}

TEST_F(PretendGpu, ThatComputesNothingFindsNothingRight) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const Ran ran = optimize({{"name", "NVIDIA X1"}}, kProduct);
  EXPECT_EQ(ran.of_error("code"), "no-correct-candidate") << ran.text;
  EXPECT_NE(ran.of_error("found").find("candidate-unwritten"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 4);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "made"));
}

TEST_F(PretendGpu, WithTooLittleMemorySaysHowMuchIsWanted) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const Ran ran = optimize({{"memory_mb", 16}}, "matmul(a[2048,2048], b[2048,2048])");
  EXPECT_EQ(ran.of_error("code"), "out-of-memory") << ran.text;
  EXPECT_EQ(ran.of_error("expected"), "48 MiB");
  EXPECT_EQ(ran.of_error("found").find("GB"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, ThatAnotherProcessHasForItselfIsNamed) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const Ran ran = optimize({{"retain", 46}}, kProduct);
  EXPECT_EQ(ran.of_error("code"), "cuda-call") << ran.text;
  EXPECT_NE(ran.of_error("remedy").find("for itself"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, OfAnOlderArchitectureThanAllTargetsIsRefused) {
  const Ran ran = optimize({{"major", 7}, {"minor", 5}}, kProduct);
  EXPECT_EQ(ran.of_error("code"), "gpu-too-old") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, OfAnotherArchitectureThanTheTargetIsRefused) {
  const Ran ran = optimize({{"major", 8}, {"minor", 0}}, kProduct);
  EXPECT_EQ(ran.of_error("code"), "wrong-machine") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, WhoseDriverIsNotReadyIsNamedWithWhatToLookAt) {
  const Ran ran = optimize({{"init", 999}}, kProduct);
  EXPECT_EQ(ran.of_error("code"), "cuda-call") << ran.text;
  EXPECT_NE(ran.of_error("remedy").find("Xid"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, WithoutNvrtcIsRefusedBeforeAnythingIsSearched) {
  if (has_nvrtc()) GTEST_SKIP() << "NVRTC is here";
  const Ran ran = optimize(json::object(), kProduct);
  EXPECT_EQ(ran.of_error("code"), "no-nvrtc") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

// It goes after some launches, so in the midst of judging: the search ends at once, says what was
// lost, and the archive keeps what was judged.
TEST_F(PretendGpu, ThatIsLostInMidSearchEndsItAndLosesNothing) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const json gpu = {{"lost_after", 12}, {"lost_file", folder() + "/lost"}};
  const Ran lost = optimize(gpu, kProduct, "--archive kept.sqlite");
  EXPECT_EQ(lost.of_error("code"), "cuda-call") << lost.text;
  EXPECT_NE(lost.of_error("remedy").find("what was judged before is kept"), std::string::npos);
  EXPECT_EQ(lost.status, 3);
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "kept.sqlite"));
  std::filesystem::remove(scratch.path() / "lost");
  const Ran again = optimize(json::object(), kProduct, "--archive kept.sqlite");
  EXPECT_EQ(again.of_error("code"), "no-correct-candidate") << again.text;
}
}  // namespace
}  // namespace warploom
