// What a user is told about a GPU that is not as it should be: on a driver without one, whose
// kernels do nothing (support/pretend_driver).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include "base/quoted.h"
#include "cli_fixture.h"
#include "support/paths.h"

namespace warploom {
namespace {
using cli_test::Cli;
using cli_test::Ran;
using nlohmann::json;

std::string error_of(const Ran& ran, const char* key) {
  return ran.out.is_object() && ran.out.contains("error") ? ran.out["error"].value(key, "") : "";
}

class PretendGpu : public Cli {
 protected:
  Ran run(const json& gpu, const std::string& words) {
    return shell(fmt::format("export LD_LIBRARY_PATH={} PRETEND_GPU={}; $W {} --json",
                             shell_word(test::built_path("pretend_driver")), shell_word(gpu.dump()),
                             words));
  }

  Ran optimize(const json& gpu, const std::string& expression, const std::string& more = "") {
    run(gpu, fmt::format("new {} --out {}.onnx", shell_word(expression), ++models_));
    return run(gpu, fmt::format("optimize {}.onnx --target sm_90a --budget 8s --out made {}",
                                models_, more));
  }

  bool has_nvrtc() {
    const Ran ran = run(json::object(), "doctor");
    return std::ranges::any_of(ran.out["findings"], [](const json& row) {
      return row["name"] == "CUDA compiler" && row["found"] == true;
    });
  }

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
  EXPECT_EQ(error_of(ran, "code"), "no-correct-candidate") << ran.text;
  EXPECT_NE(error_of(ran, "found").find("candidate-unwritten"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 4);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "made"));
}

TEST_F(PretendGpu, WithTooLittleMemorySaysHowMuchIsWanted) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const Ran ran = optimize({{"memory_mb", 16}}, "matmul(a[2048,2048], b[2048,2048])");
  EXPECT_EQ(error_of(ran, "code"), "out-of-memory") << ran.text;
  EXPECT_EQ(error_of(ran, "expected"), "48 MiB");
  EXPECT_EQ(error_of(ran, "found").find("GB"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, ThatAnotherProcessHasForItselfIsNamed) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const Ran ran = optimize({{"retain", 46}}, kProduct);
  EXPECT_EQ(error_of(ran, "code"), "cuda-call") << ran.text;
  EXPECT_NE(error_of(ran, "remedy").find("for itself"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, OfAnOlderArchitectureThanAllTargetsIsRefused) {
  const Ran ran = optimize({{"major", 7}, {"minor", 5}}, kProduct);
  EXPECT_EQ(error_of(ran, "code"), "gpu-too-old") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, OfAnotherArchitectureThanTheTargetIsRefused) {
  const Ran ran = optimize({{"major", 8}, {"minor", 0}}, kProduct);
  EXPECT_EQ(error_of(ran, "code"), "wrong-machine") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, WhoseDriverIsNotReadyIsNamedWithWhatToLookAt) {
  const Ran ran = optimize({{"init", 999}}, kProduct);
  EXPECT_EQ(error_of(ran, "code"), "cuda-call") << ran.text;
  EXPECT_NE(error_of(ran, "remedy").find("Xid"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.status, 3);
}

TEST_F(PretendGpu, WithoutNvrtcIsRefusedBeforeAnythingIsSearched) {
  if (has_nvrtc()) GTEST_SKIP() << "NVRTC is here";
  const Ran ran = optimize(json::object(), kProduct);
  EXPECT_EQ(error_of(ran, "code"), "no-nvrtc") << ran.text;
  EXPECT_EQ(ran.status, 3);
}

// It goes after some launches, so in the midst of judging: the search ends at once, says what was
// lost, and the archive keeps what was judged.
TEST_F(PretendGpu, ThatIsLostInMidSearchEndsItAndLosesNothing) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  const json gpu = {{"lost_after", 12}, {"lost_file", (scratch.path() / "lost").string()}};
  const Ran lost = optimize(gpu, kProduct, "--archive kept.sqlite");
  EXPECT_EQ(error_of(lost, "code"), "cuda-call") << lost.text;
  EXPECT_NE(error_of(lost, "remedy").find("what was judged before is kept"), std::string::npos);
  EXPECT_EQ(lost.status, 3);
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "kept.sqlite"));
  std::filesystem::remove(scratch.path() / "lost");
  const Ran again = optimize(json::object(), kProduct, "--archive kept.sqlite");
  EXPECT_EQ(error_of(again, "code"), "no-correct-candidate") << again.text;
}
}  // namespace
}  // namespace warploom
