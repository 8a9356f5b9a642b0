#include "export/bundle.h"
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <string>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "export/as_built.h"
#include "export/delivery.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "runtime/compile.h"

namespace warploom::export_ {
namespace {
namespace fs = std::filesystem;
using graph::OpKind;

// y = x·w in two kernels whose texts both define `kColumns`: x is copied to a workspace, then each
// task makes a row.
constexpr const char* kCopy = R"(#include "wl_cpu.h"
constexpr int kColumns = 48;
extern "C" void copy_rows(void* const* buffers, long long task, void*) {
  const float* x = static_cast<const float*>(buffers[0]) + task * kColumns;
  float* t = static_cast<float*>(buffers[1]) + task * kColumns;
  for (int k = 0; k < kColumns; ++k) t[k] = x[k];
}
)";
constexpr const char* kMultiply = R"(#include "wl_cpu.h"
constexpr int kColumns = 16;
extern "C" void multiply_rows(void* const* buffers, long long task, void* scratch) {
  const float* t = static_cast<const float*>(buffers[0]) + task * 48;
  const float* w = static_cast<const float*>(buffers[1]);
  float* y = static_cast<float*>(buffers[2]) + task * kColumns;
  float* sum = static_cast<float*>(scratch);
  for (int n = 0; n < kColumns; ++n) sum[n] = 0;
  for (int k = 0; k < 48; ++k)
    for (int n = 0; n < kColumns; ++n) sum[n] += t[k] * w[k * kColumns + n];
  for (int n = 0; n < kColumns; ++n) y[n] = sum[n];
}
)";

graph::Graph matmul_graph() {
  graph::Builder builder("mm");
  const auto x = builder.input("x", Dtype::f32, {32, 48});
  const auto w = builder.input("w", Dtype::f32, {48, 16});
  const auto y = builder.add(OpKind::MatMul, {x, w});
  builder.output(y);
  auto graph = builder.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  return *graph;
}

LaunchList matmul_list(const graph::Graph& graph) {
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64-v3"};
  list.inputs = {{"x", Dtype::f32, {32, 48}}, {"w", Dtype::f32, {48, 16}}};
  const std::string y = graph.tensor(graph.outputs[0]).name;
  list.outputs = {{y, Dtype::f32, {32, 16}}};
  list.workspaces = {{"t", Dtype::f32, {32, 48}}};
  list.kernels = {{.name = "copy_rows",
                   .source = kCopy,
                   .grid = {32, 1, 1},
                   .threads = 1,
                   .args = {{"x"}, {"t"}}},
                  {.name = "multiply_rows",
                   .source = kMultiply,
                   .grid = {8, 4, 1},
                   .threads = 1,
                   .shared_bytes = 64,
                   .args = {{"t"}, {"w"}, {y}}}};
  return list;
}

// y = -x, by flipping the sign bit of the packed elements.
struct Negation {
  graph::Graph graph;
  LaunchList list;
};

Negation negation(Dtype dtype, int64_t rows, int64_t columns) {
  graph::Builder builder("neg");
  builder.output(builder.add(OpKind::Neg, {builder.input("x", dtype, {rows, columns})}));
  const auto graph = builder.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  const std::string word = bytes_of(dtype) == 4 ? "unsigned" : "unsigned short";
  const std::string text =
      "extern \"C\" void negate(void* const* buffers, long long task, void*) {\n  for (long long i "
      "= 0; i "
      "< " +
      std::to_string(columns) + "; ++i) {\n    const long long at = task * " +
      std::to_string(columns) + " + i;\n    static_cast<" + word +
      "*>(buffers[1])[at] = static_cast<const " + word + "*>(buffers[0])[at] ^ (" +
      (bytes_of(dtype) == 4 ? "0x80000000u" : "0x8000") + ");\n  }\n}\n";
  LaunchList list{.engine = Engine::cpu, .arch = "x86-64-v3"};
  const std::string y = graph->tensor(graph->outputs[0]).name;
  list.inputs = {{"x", dtype, {rows, columns}}};
  list.outputs = {{y, dtype, {rows, columns}}};
  list.kernels = {
      {.name = "negate", .source = text, .grid = {rows, 1, 1}, .threads = 1, .args = {{"x"}, {y}}}};
  return {*graph, list};
}

ProcessResult make_check(const fs::path& folder, const std::string& target = "check") {
  const auto result = run_process({"make", "-C", folder.string(), target, "CXXFLAGS=-O1"},
                                  {.time = std::chrono::seconds(200)});
  EXPECT_TRUE(result);
  return *result;
}

class Bundle : public testing::Test {
 protected:
  ScratchFolder scratch{"bundle-test"};
  fs::path folder = scratch.path() / "mm";

  // The files alone, whatever they are worth: delivery_test.cpp is about the rest.
  Status write(const graph::Graph& graph, const LaunchList& list, double tolerance = 1e-6) {
    WARPLOOM_TRY(const auto files, bundle_files({.name = "mm",
                                                 .summary = "A test.",
                                                 .plan = {{"track", "fp32"}},
                                                 .tolerance = tolerance},
                                                list, graph));
    for (const BundleFile& file : files) {
      WARPLOOM_CHECK(make_folders((folder / file.path).parent_path()));
      WARPLOOM_CHECK(write_file(folder / file.path, file.text));
    }
    return ok();
  }
};

TEST_F(Bundle, OfSeveralKernelsAndAWorkspacePassesItsCheck) {
  const auto graph = matmul_graph();
  const Status written = write(graph, matmul_list(graph));
  ASSERT_TRUE(written) << describe(written.error());
  const ProcessResult check = make_check(folder);
  EXPECT_TRUE(check.succeeded()) << check.out << check.err;
  EXPECT_NE(check.out.find("check passed"), std::string::npos) << check.out;
  EXPECT_TRUE(fs::exists(folder / "device/cpu/wl_cpu.h"));
  EXPECT_FALSE(fs::exists(folder / "device/ptx"));
}

// What it does is tested with torch: python/tests.
TEST_F(Bundle, HoldsAModuleForPyTorchThatNamesNoTensorInItsText) {
  graph::Builder builder("mm");
  const auto x = builder.input("x\"\"\"\nimport os", Dtype::f32, {32, 48});
  const auto w = builder.input("w", Dtype::f32, {48, 16});
  builder.output(builder.add(OpKind::MatMul, {x, w}));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph);
  LaunchList list = matmul_list(matmul_graph());
  list.inputs[0].name = graph->tensor(x).name;
  list.kernels[0].args[0].buffer = graph->tensor(x).name;
  ASSERT_TRUE(write(*graph, list));
  const auto text = read_file(folder / "mm.py");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find("import os"), std::string::npos) << *text;
  EXPECT_TRUE(fs::exists(folder / "mm_torch/adoption.py"));
}

TEST_F(Bundle, NamedAsAModuleOfPythonHoldsOneOfAnotherName) {
  const auto graph = matmul_graph();
  ASSERT_TRUE(
      write_bundle(folder, {.name = "copy", .summary = "A test."}, matmul_list(graph), graph));
  EXPECT_TRUE(fs::exists(folder / "copy_bundle.py"));
  EXPECT_FALSE(fs::exists(folder / "copy.py"));
}

TEST_F(Bundle, CheckFailsWhenAStoredOutputDiffers) {
  const auto graph = matmul_graph();
  ASSERT_TRUE(write(graph, matmul_list(graph)));
  std::fstream file(folder / "check/output_0.f64", std::ios::in | std::ios::out | std::ios::binary);
  const double wrong = 1000;
  file.write(reinterpret_cast<const char*>(&wrong), sizeof wrong);
  file.close();
  const ProcessResult check = make_check(folder);
  EXPECT_FALSE(check.succeeded());
  EXPECT_NE(check.out.find("check FAILED"), std::string::npos) << check.out;
}

TEST_F(Bundle, CheckFailsWhenAKernelLeavesPartUnwritten) {
  const auto graph = matmul_graph();
  LaunchList list = matmul_list(graph);
  list.kernels[1].grid = {31, 1, 1};
  ASSERT_TRUE(write(graph, list));
  const ProcessResult check = make_check(folder);
  EXPECT_FALSE(check.succeeded());
  EXPECT_NE(check.out.find("infinite or NaN"), std::string::npos) << check.out;
}

TEST_F(Bundle, OfALargeProblemMakesItsInputsAgainAndComparesSamples) {
  for (const auto dtype : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
    const auto [graph, list] = negation(dtype, 4100, 2048);
    ASSERT_TRUE(write(graph, list, 1e-12));  // exact only where both sides made the same bits
    EXPECT_FALSE(fs::exists(folder / "check/input_0.bin"));
    EXPECT_TRUE(fs::exists(folder / "check/output_0.i64"));
    const ProcessResult check = make_check(folder);
    EXPECT_TRUE(check.succeeded()) << name_of(dtype) << check.out << check.err;
    EXPECT_NE(check.out.find("sampled elements"), std::string::npos) << check.out;
  }
}

TEST_F(Bundle, PlanHoldsTheLaunchListAndWhatWasGiven) {
  const auto graph = matmul_graph();
  const LaunchList list = matmul_list(graph);
  ASSERT_TRUE(write(graph, list));
  const auto text = read_file(folder / "plan.json");
  ASSERT_TRUE(text);
  const auto plan = nlohmann::json::parse(*text);
  EXPECT_EQ(plan["track"], "fp32");
  EXPECT_EQ(plan["launch_list"], to_json(list));
}

TEST_F(Bundle, PlanOfAnUnknownBufferIsRefused) {
  const auto graph = matmul_graph();
  LaunchList list = matmul_list(graph);
  list.kernels[0].args[0].buffer = "nobody";
  const auto read = launch_list_from_json(to_json(list));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kPlanInvalid);
}

TEST_F(Bundle, OnAFullDiskSaysSo) {
  const auto graph = matmul_graph();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto written = write_bundle(folder, {.name = "mm"}, matmul_list(graph), graph);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kDiskFull);
  EXPECT_FALSE(fs::exists(folder));
}

// Compiled for the GPU and not run: tensor maps, clusters, zeroed workspaces, every launch
// attribute and calls as graphs in one launcher.
TEST_F(Bundle, OfCudaKernelsCompilesWithNvcc) {
  if (find_program("nvcc").empty() && !fs::exists("/usr/local/cuda/bin/nvcc"))
    GTEST_SKIP() << "no nvcc here";
  const auto [graph, unused] = negation(Dtype::bf16, 128, 64);
  const std::string y = graph.tensor(graph.outputs[0]).name;
  const std::string text = R"(#include "wl.h"
WL_KERNEL_CLUSTER(negate, 128, 1, 2, 1, 1)(WL_TENSOR_MAP map_x, const wl::bf16* t, wl::bf16* y) {
  if (wl::thread() == 0) {
    wl::tma_store(map_x, 1024, 0, 0);
    wl::bulk_commit();
    wl::bulk_wait<0>();
  }
  y[wl::thread()] = t[wl::thread()];
}
WL_EXPORT(negate)
)";
  LaunchList list{.engine = Engine::cuda, .arch = "sm_90a"};
  list.inputs = {{"x", Dtype::bf16, {128, 64}}};
  list.outputs = {{y, Dtype::bf16, {128, 64}}};
  list.workspaces = {{"t", Dtype::bf16, {128, 64}}};
  const TensorMapSpec map{Dtype::bf16, {64, 128}, {128}, {64, 64}, 128};
  list.kernels = {{.name = "negate",
                   .source = text,
                   .grid = {2, 1, 1},
                   .cluster = {2, 1, 1},
                   .threads = 128,
                   .shared_bytes = 1024,
                   .args = {{"x", true, map}, {"t", false, {}, true}, {y}},
                   .programmatic_launch = true,
                   .cooperative = true}};
  list.kernels.push_back(list.kernels[0]);
  const Status written = write(graph, list);
  ASSERT_TRUE(written) << describe(written.error());
  const ProcessResult built = make_check(folder, "build/check");
  EXPECT_TRUE(built.succeeded()) << built.out << built.err;
  // A judge compiles the same file without the bundle's folder and without the launcher's part.
  const auto plan = nlohmann::json::parse(read_file(folder / "plan.json").value());
  const auto judged = as_built(folder, plan, list);
  ASSERT_TRUE(judged) << describe(judged.error());
  const auto compiled = runtime::compile(judged->list);
  EXPECT_TRUE(compiled) << describe(compiled.error());
  // And as the PyTorch module compiles it, for which that needs no torch.
  const std::string script =
      "import pathlib, re, sys\n"
      "folder = pathlib.Path(sys.argv[1])\n"
      "sys.path.insert(0, str(folder / 'mm_torch'))\n"
      "import build\n"
      "flags = re.search('flags=\"(.*)\"', (folder / 'mm.py').read_text())[1].split()\n"
      "includes = ['device/ptx', 'device/common']\n"
      "command = [*build.cuda_compiler(), '-shared', '-Xcompiler', '-fPIC', *flags]\n"
      "command += [f'-I{folder / place}' for place in includes]\n"
      "made = build.library(folder, 'mm', ['mm.cu', 'mm_host.cpp'], includes, command)\n"
      "assert made.mm_launch and made.mm_workspace_bytes() == 128 * 64 * 2\n";
  const auto loaded =
      run_process({"python3", "-c", script, folder.string()}, {.time = std::chrono::seconds(200)});
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->succeeded()) << loaded->err;
}
}  // namespace
}  // namespace warploom::export_
