// What a bundle's own check program calls untimed before it times: on a GPU as long as `bench`
// does, by the rule of device/common/warm_up.h.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "common/warm_up.h"
#include "export/bundle.h"
#include "export/delivery.h"
#include "export/small_bundle.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;

std::string text_of_file(const std::vector<BundleFile>& files, const std::string& path) {
  const auto found = std::ranges::find(files, path, &BundleFile::path);
  return found == files.end() ? "missing" : found->text;
}

// How many samples went before the first that counted, as the check says; -1 where it says nothing.
int untimed_of(const fs::path& folder) {
  const auto ran =
      run_process({"make", "-C", folder.string(), "check"}, {.time = std::chrono::seconds(100)});
  EXPECT_TRUE(ran && ran->succeeded()) << (ran ? ran->out + ran->err : "");
  std::smatch found;
  const std::regex said("samples of \\d+ calls, after (\\d+) untimed\\)");
  return ran && std::regex_search(ran->out, found, said) ? std::stoi(found[1]) : -1;
}

TEST(BundleCheck, OfAGpuWarmsUpByTheRuleOfBench) {
  Small made = small();
  made.list.engine = Engine::cuda;
  made.list.arch = "sm_90a";
  made.list.kernels[0].source =
      "extern \"C\" __global__ void negate(const float* x, float* y) {}\n";
  const auto files = bundle_files(
      {.name = "neg", .summary = "A test.", .plan = {{"track", "fp32"}}}, made.list, made.graph);
  ASSERT_TRUE(files) << describe(files.error());
  const std::string check = text_of_file(*files, "check/check.cpp");
  EXPECT_NE(check.find("kWarmUpMs = wl::kGpuWarmUpMs;"), check.npos) << check;
  EXPECT_NE(check.find("wl::WarmUp warm_up(Engine::kWarmUpMs)"), check.npos) << check;
  const std::string rule = text_of_file(*files, "device/common/warm_up.h");
  const std::string number = fmt::format("kGpuWarmUpMs = {};", wl::kGpuWarmUpMs);
  EXPECT_NE(rule.find(number), rule.npos) << number << rule;
}

TEST(BundleCheck, CallsUntimedForAsLongAsItIsTold) {
  const ScratchFolder scratch("bundle-check");
  const fs::path folder = scratch.path() / "neg";
  ASSERT_TRUE(deliver_small(folder));
  constexpr int kFirst = 4;  // what tells how long a call is
  EXPECT_EQ(untimed_of(folder), kFirst);
  const fs::path file = folder / "check/check.cpp";
  std::string text = *read_file(file);
  const std::string none = "kWarmUpMs = 0;";
  const size_t at = text.find(none);
  ASSERT_NE(at, text.npos);
  ASSERT_TRUE(write_file(file, text.replace(at, none.size(), "kWarmUpMs = 60;")));
  EXPECT_GT(untimed_of(folder), kFirst);
}
}  // namespace
}  // namespace warploom::export_
