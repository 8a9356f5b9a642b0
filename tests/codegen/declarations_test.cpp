#include <gtest/gtest.h>
#include <array>
#include <cstdint>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"

namespace warploom {
namespace {
Result<LaunchList> declared(const std::string& text, Engine engine = Engine::cuda) {
  LaunchList problem{engine, engine == Engine::cuda ? "sm_90a" : "x86-64-v3"};
  problem.inputs = {{"x", Dtype::f32, {8, 16}}, {"w", Dtype::f32, {16}}};
  problem.outputs = {{"y", Dtype::f32, {8}}};
  return declared_list(text, "mine.cu", problem);
}

TEST(Declarations, KernelsWorkspacesAndWhatIsLeftOut) {
  const auto list = declared(
      "// A sum in two steps.\n"
      "// warploom: workspace partial bf16[2,8]\n"
      "// warploom: kernel rows grid=8,2,3 threads=256 shared=4096 args=x,w,partial\n"
      "// warploom: kernel finish grid=1 args=partial,y zeroed=y,partial\n"
      "text\n");
  ASSERT_TRUE(list) << describe(list.error());
  ASSERT_EQ(list->workspaces.size(), 1u);
  EXPECT_EQ(list->workspaces[0].bytes(), 32);
  ASSERT_EQ(list->kernels.size(), 2u);
  const Kernel& rows = list->kernels[0];
  const Kernel& finish = list->kernels[1];
  EXPECT_EQ(rows.name, "rows");
  EXPECT_EQ(rows.grid, (std::array<int64_t, 3>{8, 2, 3}));
  EXPECT_EQ(rows.threads, 256);
  EXPECT_EQ(rows.shared_bytes, 4096);
  EXPECT_EQ(rows.args[2].buffer, "partial");
  EXPECT_FALSE(rows.args[2].zeroed);
  EXPECT_EQ(finish.grid, (std::array<int64_t, 3>{1, 1, 1}));
  EXPECT_EQ(finish.threads, 128);
  EXPECT_TRUE(finish.args[0].zeroed && finish.args[1].zeroed);
  EXPECT_NE(finish.source.find("text"), std::string::npos);
}

TEST(Declarations, KernelsAreExactUnlessTheySayFinite) {
  const std::string kernel = "// warploom: kernel k grid=8 args=x,y\n";
  EXPECT_EQ(declared(kernel)->special, SpecialValues::exact);
  const auto finite = declared("// warploom: special finite\n" + kernel);
  ASSERT_TRUE(finite) << describe(finite.error());
  EXPECT_EQ(finite->special, SpecialValues::finite);
  EXPECT_EQ(launch_list_from_json(to_json(*finite))->special, SpecialValues::finite);
  EXPECT_FALSE(to_json(*declared(kernel)).contains("special"));
  for (const char* line : {"// warploom: special\n", "// warploom: special finite x\n",
                           "// warploom: special most\n"}) {
    const auto refused = declared(line + kernel);
    ASSERT_FALSE(refused) << line;
    EXPECT_EQ(refused.error().code, ErrorCode::kKernelInvalid);
  }
}

TEST(Declarations, ACpuBlockHasNoThreads) {
  EXPECT_EQ(declared("// warploom: kernel k grid=8 args=x,y", Engine::cpu)->kernels[0].threads, 1);
  EXPECT_FALSE(declared("// warploom: kernel k grid=8 threads=4 args=x,y", Engine::cpu));
}

TEST(Declarations, WhatCannotBeReadOrDoesNotFitIsRefusedByItsLine) {
  const std::string right = "// warploom: kernel k grid=1 args=x,y\n";
  for (const std::string wrong : {"// warploom:",
                                  "// warploom: kernal k grid=1 args=x,y",
                                  "// warploom: kernel",
                                  "// warploom: kernel k args=x,y",
                                  "// warploom: kernel k grid=1",
                                  "// warploom: kernel k grid= args=y",
                                  "// warploom: kernel k grid=0 args=x,y",
                                  "// warploom: kernel k grid=1,1,1,1 args=x,y",
                                  "// warploom: kernel k grid=1,99999 args=x,y",
                                  "// warploom: kernel k grid=1x args=x,y",
                                  "// warploom: kernel k grid=1 grid=2 args=x,y",
                                  "// warploom: kernel k grid=1 args=x,z",
                                  "// warploom: kernel k grid=1 threads=2048 args=x,y",
                                  "// warploom: kernel k grid=1 args=x,y zeroed=w",
                                  "// warploom: kernel k grid=1 args=x,y more",
                                  "// warploom: kernel k grid=1 args=x,y shared=-1",
                                  "// warploom: workspace",
                                  "// warploom: workspace p",
                                  "// warploom: workspace p f32",
                                  "// warploom: workspace p f33[4]",
                                  "// warploom: workspace p f32[]",
                                  "// warploom: workspace p f32[0]",
                                  "// warploom: workspace p f32[4] 5",
                                  "// warploom: workspace x f32[4]",
                                  "// warploom: workspace p f32[1099511627776,2]",
                                  "// warploom: workspace p f32[4,-4]"}) {
    const auto list = declared(right + wrong + "\n");
    ASSERT_FALSE(list) << wrong;
    EXPECT_EQ(list.error().code, ErrorCode::kKernelInvalid) << wrong;
    EXPECT_EQ(list.error().place, "mine.cu:2") << wrong;
    EXPECT_FALSE(list.error().expected.empty() || list.error().remedy.empty()) << wrong;
  }
}

TEST(Declarations, AFileMustDeclareAKernelThatIsHandedTheOutput) {
  EXPECT_EQ(declared("void k() {}\n").error().code, ErrorCode::kKernelInvalid);
  EXPECT_EQ(declared("// warploom: kernel k grid=1 args=x,w\n").error().found, "no y");
}
}  // namespace
}  // namespace warploom
