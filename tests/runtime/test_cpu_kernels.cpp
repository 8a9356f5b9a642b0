#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"

namespace warploom::runtime {
namespace {
class CpuKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
    auto opened = Executor::open(Engine::cpu);
    ASSERT_TRUE(opened) << describe(opened.error());
    device = std::move(*opened);
  }

  LaunchList list() { return doubling_list(Engine::cpu, device->info().arch); }

  std::unique_ptr<Executor> device;
};

TEST_F(CpuKernels, CompileAndRun) {
  const OwnCache cache;
  const LaunchList doubling = list();
  const auto binary = compile(doubling);
  ASSERT_OK(binary);
  auto kernels = device->load(doubling, *binary);
  ASSERT_OK(kernels);
  std::vector<float> x(1000);
  std::vector<float> y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  const auto bx = device->allocate(4000);
  const auto by = device->allocate(4000);
  ASSERT_OK(device->upload(*bx, x.data(), 4000));
  ASSERT_OK(run(*device, *kernels, {{"x", *bx}, {"y", *by}}));
  ASSERT_OK(device->download(*by, y.data(), 4000));
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(y[i], 2 * x[i]);
}

TEST_F(CpuKernels, ComeFromTheCacheTheSecondTime) {
  const OwnCache cache;
  const auto first = compile(list());
  ASSERT_OK(first);
  const WithVariable none("PATH", "/nonexistent");
  // Any compiler run would fail now; the version was asked for before.
  const auto compiler = find_cpu_compiler();
  if (compiler) GTEST_SKIP() << "CXX names a compiler by its full path";
  EXPECT_EQ(compiler.error().code, ErrorCode::kNoCompiler);
  EXPECT_TRUE(std::filesystem::exists(first->images[0]));
  EXPECT_TRUE(
      std::filesystem::exists(std::filesystem::path(first->images[0]).replace_extension(".txt")));
}

TEST_F(CpuKernels, AreNotCompiledTwice) {
  const OwnCache cache;
  const auto first = compile(list());
  ASSERT_OK(first);
  const auto written = std::filesystem::last_write_time(
      std::filesystem::path(first->images[0]).replace_extension(".txt"));
  const auto second = compile(list());
  ASSERT_OK(second);
  EXPECT_EQ(first->images[0], second->images[0]);
  EXPECT_EQ(std::filesystem::last_write_time(
                std::filesystem::path(first->images[0]).replace_extension(".txt")),
            written);
}

TEST_F(CpuKernels, GetScratchOfTheirOwn) {
  const OwnCache cache;
  LaunchList scratch = list();
  scratch.kernels[0].shared_bytes = 100000;
  scratch.kernels[0].source =
      "#include <cstdint>\n#include <cstring>\nextern \"C\" void twice(void* const* b, long long "
      "task, void* "
      "s) {\n"
      "  std::memset(s, static_cast<int>(task), 100000);\n  float* y = static_cast<float*>(b[1]);\n"
      "  for (long long i = task * 250; i < task * 250 + 250; ++i)\n"
      "    y[i] = reinterpret_cast<std::uintptr_t>(s) % 4096 ? -1.0f : static_cast<unsigned "
      "char*>(s)[i];\n}\n";
  const auto binary = compile(scratch);
  ASSERT_OK(binary);
  auto kernels = device->load(scratch, *binary);
  ASSERT_OK(kernels);
  const auto bx = device->allocate(4000);
  const auto by = device->allocate(4000);
  ASSERT_OK(run(*device, *kernels, {{"x", *bx}, {"y", *by}}));
  const float* y = static_cast<const float*>(by->address());
  for (size_t i = 0; i < 1000; ++i) {
    const size_t task = i / 250;
    ASSERT_EQ(y[i], static_cast<float>(task));
  }
}

TEST_F(CpuKernels, FindTheSharedDeviceHeaders) {
  const OwnCache cache;
  LaunchList with_header = list();
  with_header.kernels[0].source = "#include \"types.h\"\nstatic_assert(sizeof(wl::bf16) == 2);\n" +
                                  with_header.kernels[0].source;
  ASSERT_OK(compile(with_header));
}

TEST_F(CpuKernels, RefusedByTheCompilerSayItsWords) {
  const OwnCache cache;
  LaunchList wrong = list();
  wrong.kernels[0].source = "int x = undeclared_name;\n";
  const auto binary = compile(wrong);
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code, ErrorCode::kCompileFailed);
  EXPECT_NE(binary.error().found.find("undeclared_name"), std::string::npos);
}

TEST_F(CpuKernels, ThatCompileForTooLongAreGivenUp) {
  const OwnCache cache;
  LaunchList endless = list();
  // A template that multiplies itself: minutes of work for any compiler.
  endless.kernels[0].source =
      "template <int N, int M> struct S { static constexpr long long v = S<N - 1, 2 * M>::v + S<N "
      "- 1, 2 * M "
      "+ 1>::v; };\n"
      "template <int M> struct S<0, M> { static constexpr long long v = M; };\nlong long x = S<24, "
      "1>::v;\n";
  CompileOptions options;
  options.time = std::chrono::milliseconds(300);
  const auto binary = compile(endless, options);
  ASSERT_FALSE(binary);
  EXPECT_EQ(binary.error().code, ErrorCode::kCompileTimeout);
}

TEST_F(CpuKernels, RefuseABindingThatLacksABuffer) {
  const OwnCache cache;
  const LaunchList doubling = list();
  auto kernels = device->load(doubling, *compile(doubling));
  ASSERT_OK(kernels);
  const auto bound = kernels->bind({{"x", *device->allocate(4000)}});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::kPlanInvalid);
  EXPECT_EQ(bound.error().place, "y");
}

TEST_F(CpuKernels, RefuseAnInputThatIsWantedPacked) {
  const OwnCache cache;
  LaunchList doubling = list();
  const auto binary = compile(doubling);
  ASSERT_OK(binary);
  doubling.kernels[0].args[0].prepacked = {{{1000, 1}}};
  const auto loaded = device->load(doubling, *binary);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kPlanInvalid);
}

TEST_F(CpuKernels, RefuseABufferThatIsTooSmall) {
  const OwnCache cache;
  const LaunchList doubling = list();
  auto kernels = device->load(doubling, *compile(doubling));
  ASSERT_OK(kernels);
  const auto bound =
      kernels->bind({{"x", *device->allocate(4000)}, {"y", *device->allocate(3999)}});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::kPlanInvalid);
}

TEST(CpuCompiler, MissingIsAnErrorOfItsOwn) {
  const WithVariable path("PATH", "/nonexistent");
  const WithVariable cxx("CXX", "");
  const auto compiler = find_cpu_compiler();
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.error().code, ErrorCode::kNoCompiler);
}

TEST(CpuCompiler, NamedWithArgumentsIsRunWithThem) {
  const WithVariable cxx("CXX", "env g++  -O1");
  const auto compiler = find_cpu_compiler();
  if (!compiler) GTEST_SKIP() << "g++ is not installed";
  EXPECT_EQ(compiler->arguments, (std::vector<std::string>{"g++", "-O1"}));
  EXPECT_TRUE(compiler->name.starts_with("env g++ -O1 ")) << compiler->name;
  EXPECT_TRUE(compile_shared_object("int one() { return 1; }", {"-shared", "-fPIC"}, "cpu",
                                    std::chrono::seconds(60)));
}

TEST(CpuCompiler, NamedAndMissingIsNeverAnotherOne) {
  for (const char* name : {"no-such-compiler", "/bin/false", "true --quiet"}) {
    const WithVariable cxx("CXX", name);
    const auto compiler = find_cpu_compiler();
    ASSERT_FALSE(compiler) << name;
    EXPECT_EQ(compiler.error().code, ErrorCode::kNoCompiler);
    EXPECT_EQ(compiler.error().found, name);
  }
}

TEST(CpuExecutor, RefusesABufferLargerThanMemory) {
  auto device = Executor::open(Engine::cpu);
  ASSERT_OK(device);
  const auto buffer = (*device)->allocate(int64_t{1} << 50);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kOutOfMemory);
}

TEST(CpuExecutor, FillsWithAWordToTheLastByte) {
  auto device = Executor::open(Engine::cpu);
  ASSERT_OK(device);
  const auto buffer = (*device)->allocate(600001);
  ASSERT_OK((*device)->fill(*buffer, 0x04030201u));
  const auto* bytes = static_cast<const unsigned char*>(buffer->address());
  for (size_t i = 0; i < 600001; ++i)
    ASSERT_EQ(bytes[i], i % 4 + 1);
}

TEST(CpuExecutor, DescribesTheMachine) {
  auto device = Executor::open(Engine::cpu);
  ASSERT_OK(device);
  EXPECT_FALSE((*device)->info().name.empty());
  EXPECT_TRUE((*device)->info().arch.starts_with("x86-64"));
  EXPECT_GT((*device)->info().memory_bytes, 0);
}
}  // namespace
}  // namespace warploom::runtime
