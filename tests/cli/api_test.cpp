// The installed library as its users meet it: found in a tree that was moved, the C and the C++
// example, errors by their codes.
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include "base/file.h"
#include "base/process.h"
#include "support/paths.h"

namespace warploom {
namespace {
TEST(Api, InstalledTreeThatWasMovedServesProgramsInCAndCpp) {
  const ScratchFolder scratch("api-test");
  const std::string folder = scratch.path().string();
  const auto shell = [&](const std::string& line) {
    auto result = run_process(
        {"bash", "-c", "cd '" + folder + "'; export XDG_CACHE_HOME=$PWD/cache; " + line},
        {.time = std::chrono::seconds(250)});
    EXPECT_TRUE(result);
    return *std::move(result);
  };
  const auto made =
      shell("cmake --install " + test::built_path() +
            " --prefix first && mv first moved && cmake -S " + test::source_path("examples/api") +
            " -B build -DCMAKE_PREFIX_PATH=$PWD/moved && cmake --build build");
  ASSERT_TRUE(made.succeeded()) << made.out << made.err;

  const auto searched = shell("build/optimize_and_run " +
                              test::source_path("examples/softmax_small.textproto") + " found 20s");
  EXPECT_TRUE(searched.succeeded()) << searched.out << searched.err;
  EXPECT_NE(searched.out.find("first element 0.0"), std::string::npos)
      << searched.out;  // all columns alike

  const auto constant = shell(
      "moved/bin/warploom new 'add(mul(x[64,64],2),-1)' --out one.onnx && "
      "moved/bin/warploom optimize one.onnx --target cpu --budget 20s --out one && "
      "build/run_bundle "
      "one --trust");
  EXPECT_TRUE(constant.succeeded()) << constant.out << constant.err;
  EXPECT_NE(constant.out.find("first element 1"), std::string::npos) << constant.out;

  const auto untrusted = shell("build/run_bundle one");
  EXPECT_EQ(untrusted.exit_status, 2);
  EXPECT_NE(untrusted.err.find("bundle-untrusted"), std::string::npos) << untrusted.err;

  const auto missing = shell("build/run_bundle nowhere");
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_NE(missing.err.find("file-missing"), std::string::npos) << missing.err;

  const auto other = shell(
      "mkdir other && echo "
      "'{\"constants\":{},\"launch_list\":{\"engine\":\"cpu\",\"arch\":\"x86-64-v9\","
      "\"inputs\":[],\"outputs\":[{\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[4]}],"
      "\"workspaces\":[],\"kernels\":[{\"name\":\"k\",\"source\":\"\",\"grid\":[1,1,1],"
      "\"cluster\":[1,1,1],\"threads\":1,\"shared_bytes\":0,\"cooperative\":false,"
      "\"overlaps\":false,\"args\":[{\"buffer\":\"y\"}]}]}}' > other/plan.json; "
      "build/run_bundle other --trust");
  EXPECT_EQ(other.exit_status, 3) << other.err;
  EXPECT_NE(other.err.find("wrong-machine"), std::string::npos) << other.err;

  const auto broken = shell(
      "rm -r other && cp -r one other && "
      "sed -i 's|\"constants\": {}|\"constants\": {\"x\": 7}|' other/plan.json && "
      "grep -q '\"x\": 7' other/plan.json "
      "&& "
      "build/run_bundle other --trust");
  EXPECT_EQ(broken.exit_status, 2) << broken.out << broken.err;
  EXPECT_NE(broken.err.find("bundle-changed"), std::string::npos) << broken.err;

  const auto thrown = shell("build/optimize_and_run nothing.onnx found");
  EXPECT_EQ(thrown.exit_status, 2);
  EXPECT_NE(thrown.err.find("file-missing"), std::string::npos) << thrown.err;
}
}  // namespace
}  // namespace warploom
