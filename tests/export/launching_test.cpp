// What the launcher of a bundle for a GPU asks of the CUDA runtime, on one without a GPU
// (support/pretend_runtime): kernels one by one, or as a CUDA graph.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/quoted.h"
#include "codegen/launch_list.h"
#include "export/bundle.h"
#include "export/delivery.h"
#include "graph/graph.h"
#include "support/paths.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;
using graph::OpKind;

// Where the headers of the CUDA runtime are; "": nowhere.
std::string cuda_headers() {
  for (const char* folder : {"/usr/local/cuda/include", "/usr/include"})
    if (fs::exists(fs::path(folder) / "cuda_runtime_api.h")) return folder;
  return "";
}

struct Form {
  int kernels = 3;        // of a call
  bool prepares = false;  // one more, of nothing but constants
  bool zeroed = false;
  bool map = false;
};

LaunchList list_of(const Form& form, const std::string& y) {
  LaunchList list{.engine = Engine::cuda, .arch = "sm_90a"};
  list.inputs = {{"x", Dtype::f32, {8, 4}}};
  list.outputs = {{y, Dtype::f32, {8, 4}}};
  list.workspaces = {{"t", Dtype::f32, {8, 4}}};
  const TensorMapSpec map{Dtype::f32, {4, 8}, {16}, {4, 8}, 0};
  const int all = form.kernels + (form.prepares ? 1 : 0);
  for (int i = 0; i < all; ++i) {
    const bool is_first = i == 0;
    const bool is_last = i + 1 == all;
    Argument from{.buffer = is_first ? "x" : "t"};
    if (form.map && is_first) {
      from.tensor_map = true;
      from.map = map;
    }
    Argument to{.buffer = is_last ? y : "t"};
    to.zeroed = form.zeroed && is_last;
    list.kernels.push_back({.name = fmt::format("k{}", i),
                            .source = "#include \"wl.h\"\n",
                            .threads = 128,
                            .shared_bytes = 1024,
                            .args = {from, to}});
  }
  if (form.prepares) {
    list.constants = {"x"};
    list.prepare = {0};
  }
  return list;
}

class Launching : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_headers().empty()) GTEST_SKIP() << "no headers of CUDA";
  }

  // What each call of a scenario started, a line each.
  std::vector<std::string> run(const Form& form, const std::string& words) {
    if (program_.empty()) build(form);
    const auto ran = run_process({"/bin/sh", "-c", shell_word(program_.string()) + " " + words},
                                 {.time = std::chrono::seconds(60)});
    EXPECT_TRUE(ran && ran->succeeded()) << (ran ? ran->err : describe(ran.error()));
    std::vector<std::string> lines;
    std::string text = ran ? ran->out : "";
    for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      lines.push_back(text.substr(0, end));
      text.erase(0, end + 1);
    }
    return lines;
  }

 private:
  void build(const Form& form) {
    graph::Builder builder("net");
    builder.output(builder.add(OpKind::Neg, {builder.input("x", Dtype::f32, {8, 4})}));
    const auto graph = builder.finish();
    ASSERT_TRUE(graph) << describe(graph.error());
    const LaunchList list = list_of(form, graph->tensor(graph->outputs[0]).name);
    const auto files = bundle_files({.name = "net", .summary = "A test."}, list, *graph);
    ASSERT_TRUE(files) << describe(files.error());
    const fs::path folder = scratch_.path();
    for (const BundleFile& file : *files) {
      ASSERT_TRUE(make_folders((folder / file.path).parent_path()));
      ASSERT_TRUE(write_file(folder / file.path, file.text));
    }
    std::string kernels;
    for (size_t i = 0; i < list.kernels.size(); ++i)
      kernels +=
          fmt::format("extern \"C\" const void* net_kernel_{0}() {{ return \"k{0}\"; }}\n", i);
    ASSERT_TRUE(write_file(folder / "kernels.cpp", kernels));
    compile(form);
  }

  void compile(const Form& form) {
    const fs::path folder = scratch_.path();
    const std::string pretend = test::source_path("tests/support/pretend_runtime");
    program_ = folder / "scenario";
    std::vector<std::string> command = {"g++", "-std=c++17", "-O1", "-pthread", "-Wall", "-Wextra"};
    for (const std::string& include :
         {folder.string(), (folder / "device/ptx").string(), pretend, cuda_headers()})
      command.insert(command.end(), {"-isystem", include});
    if (form.kernels + (form.zeroed ? 1 : 0) >= 3) command.emplace_back("-DHAS_GRAPHS");
    for (const char* file : {"net_host.cpp", "kernels.cpp"})
      command.push_back((folder / file).string());
    for (const char* file : {"runtime.cpp", "scenario.cpp"})
      command.push_back(pretend + "/" + file);
    command.insert(command.end(), {"-o", program_.string()});
    const auto built = run_process(command, {.time = std::chrono::seconds(120)});
    ASSERT_TRUE(built) << describe(built.error());
    ASSERT_TRUE(built->succeeded()) << built->err;
  }

  ScratchFolder scratch_{"launching"};
  fs::path program_;
};

using Lines = std::vector<std::string>;

std::string times(int count, const std::string& words) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += words + " ";
  return all;
}

constexpr const char* kOneByOne = "k0(64) on 1; k1(1048576) on 1; k2(1048576) on 1";
constexpr const char* kAsGraph = "graph of k0(64), k1(1048576), k2(1048576) on 1";

TEST_F(Launching, TheFourthCallWithTheSameAddressesIsAGraph) {
  const Lines lines = run({}, times(6, "call 64 640 1") + "graphs count cudaStreamBeginCapture");
  const Lines wanted = {kOneByOne, kOneByOne, kOneByOne, kAsGraph, kAsGraph, kAsGraph, "1", "1"};
  EXPECT_EQ(lines, wanted);
}

TEST_F(Launching, OfTwoKernelsIsNeverAGraph) {
  const Lines lines = run({.kernels = 2}, times(6, "call 64 640 1") + "graphs");
  EXPECT_EQ(lines[5], "k0(64) on 1; k1(1048576) on 1");
  EXPECT_EQ(lines[6], "0");
}

TEST_F(Launching, WhatIsFilledWithZerosBeforeIsAPartOfTheGraph) {
  const Lines lines = run({.kernels = 2, .zeroed = true}, times(4, "call 64 640 1"));
  EXPECT_EQ(lines[0], "k0(64) on 1; zero(640, 128) on 1; k1(1048576) on 1");
  EXPECT_EQ(lines[3], "graph of k0(64), zero(640, 128), k1(1048576) on 1");
}

TEST_F(Launching, OtherAddressesAreAnotherGraphAndTheFirstIsKept) {
  const Lines lines =
      run({}, times(4, "call 64 640 1") + times(4, "call 128 640 1") + "call 64 640 1 graphs");
  EXPECT_EQ(lines[4], "k0(128) on 1; k1(1048576) on 1; k2(1048576) on 1");
  EXPECT_EQ(lines[7], "graph of k0(128), k1(1048576), k2(1048576) on 1");
  EXPECT_EQ(lines[8], kAsGraph);
  EXPECT_EQ(lines[9], "2");
}

TEST_F(Launching, OnAnotherStreamOrDeviceIsAnotherGraph) {
  const Lines lines = run({}, times(4, "call 64 640 1") + "call 64 640 2 device 1 call 64 640 1");
  EXPECT_EQ(lines[4], "k0(64) on 2; k1(1048576) on 2; k2(1048576) on 2");
  EXPECT_EQ(lines[5], kOneByOne);
}

TEST_F(Launching, WithOtherAddressesAtEveryCallIsNeverRecorded) {
  std::string words;
  for (int i = 1; i <= 40; ++i)
    words += fmt::format("call {} 640 1 ", 64 * i);
  const Lines lines = run({}, words + "graphs count cudaStreamBeginCapture");
  EXPECT_EQ(lines[39], "k0(2560) on 1; k1(1048576) on 1; k2(1048576) on 1");
  EXPECT_EQ(lines[40], "0");
  EXPECT_EQ(lines[41], "0");
}

TEST_F(Launching, EightGraphsAreKeptAndTheOldestGoes) {
  std::string words;
  for (int i = 1; i <= 9; ++i)
    words += times(4, fmt::format("call {} 640 1", 64 * i));
  const Lines lines = run({}, words + "graphs call 64 640 1 call 576 640 1");
  EXPECT_EQ(lines[36], "8");
  EXPECT_EQ(lines[37], kOneByOne);
  EXPECT_EQ(lines[38], "graph of k0(576), k1(1048576), k2(1048576) on 1");
}

TEST_F(Launching, WhileTheCallerCapturesBecomesAPartOfThatGraph) {
  const Lines lines =
      run({}, times(4, "call 64 640 1") + "capture 1 call 64 640 1 end 1 call 64 640 1");
  EXPECT_EQ(lines[4], "");
  EXPECT_EQ(lines[5], "k0(64); k1(1048576); k2(1048576)");
  EXPECT_EQ(lines[6], kAsGraph);
}

TEST_F(Launching, GoesOnOneByOneWhereRecordingFails) {
  for (const char* call : {"cudaStreamCreateWithFlags", "cudaStreamBeginCapture",
                           "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags"}) {
    const std::string words = fmt::format("fail {} ", call) + times(6, "call 64 640 1") +
                              fmt::format("graphs count {} count streams", call);
    const Lines lines = run({}, words);
    EXPECT_EQ(lines[5], kOneByOne) << call;
    EXPECT_EQ(lines[6], "0") << call;
    EXPECT_EQ(lines[7], "1") << call;  // it is not tried at every call
    EXPECT_EQ(lines[8], "0") << call;
  }
}

TEST_F(Launching, WhoseReplayFailsSaysSoAndStartsAnew) {
  const Lines lines =
      run({}, times(4, "call 64 640 1") +
                  "fail cudaGraphLaunch call 64 640 1 mend cudaGraphLaunch graphs " +
                  times(4, "call 64 640 1"));
  EXPECT_EQ(lines[4], "error 1; ");
  EXPECT_EQ(lines[5], "0");
  EXPECT_EQ(lines[6], kOneByOne);
  EXPECT_EQ(lines[9], kAsGraph);
}

TEST_F(Launching, WhoseKernelFailsSaysSoAtEveryCall) {
  const Lines lines = run({}, "fail cudaLaunchKernelExC " + times(5, "call 64 640 1") + "graphs");
  EXPECT_EQ(lines[0], "error 1; ");
  EXPECT_EQ(lines[4], "error 1; ");
  EXPECT_EQ(lines[5], "0");
}

TEST_F(Launching, GivesItsGraphsBack) {
  const Lines lines = run({}, times(4, "call 64 640 1") + "forget graphs call 64 640 1");
  EXPECT_EQ(lines[4], "0");
  EXPECT_EQ(lines[5], kOneByOne);
}

TEST_F(Launching, DoesNotRecordWhatPreparesConstants) {
  const Lines lines = run({.prepares = true}, times(4, "call 64 640 1"));
  EXPECT_EQ(lines[3], "graph of k1(1048576), k2(1048576), k3(1048576) on 1");
}

TEST_F(Launching, AsksForSharedMemoryOnceADevice) {
  const Lines lines = run({.kernels = 2}, times(5, "call 64 640 1") +
                                              "device 1 call 64 640 1 count cudaFuncSetAttribute");
  EXPECT_EQ(lines[6], "4");
}

TEST_F(Launching, DescribesATensorAgainOnlyAtAnotherAddress) {
  const Lines lines = run({.kernels = 2, .map = true}, times(5, "call 64 640 1") +
                                                           "call 128 640 1 call 64 640 1 "
                                                           "count encode");
  EXPECT_EQ(lines[4], "k0(64) on 1; k1(1048576) on 1");
  EXPECT_EQ(lines[5], "k0(128) on 1; k1(1048576) on 1");
  EXPECT_EQ(lines[6], "k0(64) on 1; k1(1048576) on 1");
  EXPECT_EQ(lines[7], "3");
}

TEST_F(Launching, OfTwoThreadsAtOnceStartsAllThatWasAsked) {
  const Lines lines = run({}, "threads 200 graphs");
  EXPECT_EQ(lines[0], "412 starts");  // three calls of three kernels and 197 graphs, twice
  EXPECT_EQ(lines[1], "2");
}
}  // namespace
}  // namespace warploom::export_
