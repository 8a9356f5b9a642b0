#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/fixtures.h"
#include "tma_list.h"

namespace warploom::runtime {
namespace {
const char* const kUsesHeaders =
    "#include \"wl.h\"\nWL_KERNEL(k, 128, 1)(float* a) {\n"
    "  wl::sync_threads();\n  a[wl::thread()] = static_cast<float>(wl::block_x());\n}\n";

class Nvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_cuda_compiler()) GTEST_SKIP() << "no NVRTC and no nvcc here";
  }

  OwnCache cache;
};

TEST_F(Nvrtc, CompilesAKernelOnTheDeviceHeaders) {
  const auto image = compile_cuda(kUsesHeaders, "sm_90a");
  ASSERT_OK(image);
  EXPECT_EQ(read_file(image->path)->substr(1, 3), "ELF");
  const PtxasReport report = parse_ptxas(image->log);
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].name, "k");
  EXPECT_GT(report.kernels[0].registers, 0);
  EXPECT_EQ(report.kernels[0].spill_bytes, 0);
}

TEST_F(Nvrtc, SaysAgainWhatItHasSaidOfASource) {
  for (int time = 0; time < 2; ++time) {
    const OwnCache fresh;
    const auto image = compile_cuda(kUsesHeaders, "sm_90a");
    ASSERT_OK(image);
    EXPECT_EQ(parse_ptxas(image->log).kernels.size(), 1u) << image->log;
  }
}

TEST_F(Nvrtc, TakesTheSecondImageFromTheCache) {
  const auto first = compile_cuda(kUsesHeaders, "sm_90a");
  ASSERT_OK(first);
  CompileOptions impossible;
  impossible.time = std::chrono::milliseconds(0);  // a compiler would be given up at once
  const auto second = compile_cuda(kUsesHeaders, "sm_90a", impossible);
  ASSERT_OK(second);
  EXPECT_EQ(first->path, second->path);
  EXPECT_EQ(first->log, second->log);
}

TEST_F(Nvrtc, ThatTakesTooLongIsGivenUp) {
  CompileOptions impossible;
  impossible.time = std::chrono::milliseconds(0);
  const auto image = compile_cuda(kUsesHeaders, "sm_90a", impossible);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kCompileTimeout);
}

TEST_F(Nvrtc, RefusesWrongSourceWithItsWords) {
  const auto image = compile_cuda("__global__ void k() { undeclared_name = 1; }", "sm_90a");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kCompileFailed);
  EXPECT_NE(image.error().found.find("undeclared_name"), std::string::npos);
}

LaunchList spilling_list() {
  LaunchList list = doubling_list(Engine::cuda, "sm_90a");
  list.kernels[0].source =
      "extern \"C\" __global__ void __launch_bounds__(1024, 2) twice(const float* x, float* y) {\n "
      " float "
      "v[120];\n"
      "#pragma unroll\n  for (int i = 0; i < 120; ++i) v[i] = x[i * 1024 + threadIdx.x];\n  "
      "__syncthreads();\n"
      "#pragma unroll\n  for (int i = 0; i < 120; ++i) y[i * 1024 + threadIdx.x] = v[i] * v[119 - "
      "i];\n}\n";
  return list;
}

TEST_F(Nvrtc, SpillsMakeACandidateFail) {
  const auto binary = compile(spilling_list());
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code, ErrorCode::kCompileFailed);
  EXPECT_EQ(binary.error().place, "twice");
}

TEST_F(Nvrtc, SpillsPassWhereTheyAreAllowed) {
  CompileOptions options;
  options.most_spills = kAnySpills;
  ASSERT_OK(compile(spilling_list(), options));
}

TEST_F(Nvrtc, CompilesKernelsOfTheSameTextOnce) {
  LaunchList list = doubling_list(Engine::cuda, "sm_90a");
  list.kernels.push_back(list.kernels[0]);
  const auto binary = compile(list);
  ASSERT_OK(binary);
  ASSERT_EQ(binary->images.size(), 2u);
  EXPECT_EQ(binary->images[0], binary->images[1]);
}

TEST_F(Nvrtc, CompilesAKernelWithATensorMap) {
  ASSERT_OK(compile(tma_list("sm_90a")));
}

// A helper program that is a shell script: `body` sees the image to write as $image and the source
// as $source.
class WithHelper {
 public:
  explicit WithHelper(const std::string& body) {
    const auto path = folder_.path() / "helper";
    (void)write_file(
        path, "#!/bin/sh\n[ \"$1\" = __compile ] || exit 9\nimage=$6 source=$7\n" + body + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    set_helper_program(path);
  }

  ~WithHelper() { set_helper_program("/proc/self/exe"); }

 private:
  ScratchFolder folder_{"helper"};
};

TEST_F(Nvrtc, RunsInTheHelperProgramOnceThereIsOne) {
  if (!find_cuda_compiler()->nvrtc) GTEST_SKIP() << "no NVRTC here";
  const WithHelper helper(
      "grep -q __global__ $source && echo image > $image && echo ptx > kernels.ptx && "
      "echo words >&2");
  const auto image = compile_cuda("__global__ void k() {}", "sm_90a");
  ASSERT_OK(image);
  EXPECT_EQ(*read_file(image->path), "image\n");
  EXPECT_EQ(image->log, "words\n");
}

TEST_F(Nvrtc, ReadsNoFilesForForeignText) {
  CompileOptions foreign;
  foreign.foreign = true;
  for (const char* file : {"/etc/passwd", "/dev/zero"}) {
    const auto image = compile_cuda("#include \"" + std::string(file) + "\"\n", "sm_90a", foreign);
    ASSERT_FALSE(image) << file;
    EXPECT_EQ(image.error().code, ErrorCode::kCompileFailed);
    EXPECT_EQ(image.error().found.find("root"), std::string::npos);
  }
}

TEST_F(Nvrtc, CompilesForeignTextOnTheDeviceHeaders) {
  CompileOptions foreign;
  foreign.foreign = true;
  const auto image = compile_cuda(kUsesHeaders, "sm_90a", foreign);
  ASSERT_OK(image);
  EXPECT_TRUE(std::filesystem::exists(ptx_beside(image->path)));
}

TEST_F(Nvrtc, ThatCrashesInTheHelperIsAFailedCompilation) {
  if (!find_cuda_compiler()->nvrtc) GTEST_SKIP() << "no NVRTC here";
  const WithHelper helper("kill -SEGV $$");
  const auto image = compile_cuda("__global__ void k() {}", "sm_90a");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kCompileFailed);
  EXPECT_EQ(image.error().found, "it died of signal 11");
}

TEST(CompileRequest, ThatIsNotOneIsRefused) {
  std::string words[] = {"program", "__compile", "sm_90a", "-I",
                         "headers", "-o",        "image",  "no such source"};
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  for (const int argc : {3, 8}) {
    int status = 0;
    EXPECT_TRUE(compiler_main(argc, argv.data(), &status));
    EXPECT_EQ(status, 2);
  }
}

TEST(Ptxas, FiguresOfSeveralKernelsAreToldApart) {
  const PtxasReport report = parse_ptxas(
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 256 bytes smem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 20 registers, 400 bytes cmem[0]\n");
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].registers, 168);
  EXPECT_EQ(report.kernels[0].spill_bytes, 20);
  EXPECT_EQ(report.kernels[0].static_shared, 256);
  EXPECT_EQ(report.kernels[1].name, "second");
  EXPECT_EQ(report.kernels[1].registers, 20);
  EXPECT_EQ(report.kernels[1].spill_bytes, 0);
}

TEST(Ptxas, SerialisedWgmmaIsNoticed) {
  const PtxasReport report = parse_ptxas(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due "
      "to …\n");
  EXPECT_EQ(report.warnings.size(), 1u);
}
}  // namespace
}  // namespace warploom::runtime
