// What only a GPU can show. Skipped, with the reason, where there is none.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "runtime/fixtures.h"
#include "runtime/timing.h"
#include "tma_list.h"

namespace warploom::runtime {
namespace {
class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Executor::open(Engine::cuda);
    if (!opened) GTEST_SKIP() << describe(opened.error());
    device = std::move(*opened);
  }

  Buffer buffer(int64_t bytes) { return *device->allocate(bytes); }

  std::unique_ptr<Executor> device;
};

TEST_F(Gpu, DescribesItself) {
  const DeviceInfo& info = device->info();
  printf("%s, %s, %d multiprocessors, %.1f GB, L2 %.1f MB, shared %lld, %s\n", info.name.c_str(),
         info.arch.c_str(), info.num_sms, static_cast<double>(info.memory_bytes) * 1e-9,
         static_cast<double>(info.cache_bytes) * 1e-6, static_cast<long long>(info.shared_bytes),
         info.driver.c_str());
  EXPECT_TRUE(info.arch.starts_with("sm_"));
  EXPECT_GT(info.num_sms, 1);
}

TEST_F(Gpu, CopiesThereAndBack) {
  std::vector<char> out = random_tensor(Dtype::f32, 1001, 5);
  std::vector<char> back(out.size());
  const Buffer b = buffer(4004);
  ASSERT_OK(device->upload(b, out.data(), 4004));
  ASSERT_OK(device->download(b, back.data(), 4004));
  EXPECT_EQ(out, back);
}

TEST_F(Gpu, FillsSlicesToTheLastByte) {
  const Buffer whole = buffer(64);
  ASSERT_OK(device->fill(whole, 0));
  ASSERT_OK(device->fill(whole.slice(4, 21), 0x04030201u));
  std::vector<unsigned char> bytes(64);
  ASSERT_OK(device->download(whole, bytes.data(), 64));
  for (size_t i = 0; i < 64; ++i)
    ASSERT_EQ(bytes[i], i >= 4 && i < 25 ? i % 4 + 1 : 0u) << i;
}

TEST_F(Gpu, RunsAKernel) {
  const LaunchList list = doubling_list(Engine::cuda, device->info().arch);
  const auto binary = compile(list);
  if (!binary && binary.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
  ASSERT_OK(binary);
  auto kernels = device->load(list, *binary);
  ASSERT_OK(kernels);
  std::vector<float> x(1000);
  std::vector<float> y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  const Buffer bx = buffer(4000);
  const Buffer by = buffer(4000);
  ASSERT_OK(device->upload(bx, x.data(), 4000));
  ASSERT_OK(run(*device, *kernels, {{"x", bx}, {"y", by}}));
  ASSERT_OK(device->download(by, y.data(), 4000));
  for (size_t i = 0; i < 1000; ++i)
    ASSERT_EQ(y[i], 2 * x[i]);
}

TEST_F(Gpu, CopiesBoxesByTensorMapInClusters) {
  if (!device->info().arch.starts_with("sm_9"))
    GTEST_SKIP() << "no tensor copies on " << device->info().arch;
  const LaunchList list = tma_list(device->info().arch);
  const auto binary = compile(list);
  if (!binary && binary.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
  ASSERT_OK(binary);
  auto kernels = device->load(list, *binary);
  ASSERT_OK(kernels);
  const auto x = random_tensor(Dtype::f32, 4000, 6);
  std::vector<char> y(x.size());
  const auto bx = on_device(*device, x);
  ASSERT_OK(bx);
  const Buffer by = buffer(16000);
  ASSERT_OK(run(*device, *kernels, {{"x", *bx}, {"y", by}}));
  ASSERT_OK(device->download(by, y.data(), 16000));
  EXPECT_EQ(x, y);
}

TEST_F(Gpu, RefusesMoreSharedMemoryThanABlockCanHave) {
  LaunchList list = doubling_list(Engine::cuda, device->info().arch);
  const auto binary = compile(list);
  if (!binary) GTEST_SKIP() << "no NVRTC";
  list.kernels[0].shared_bytes = 1 << 20;
  const auto kernels = device->load(list, *binary);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().code, ErrorCode::kResourceLimit);
}

TEST_F(Gpu, MoreMemoryThanThereIsIsAnErrorOfItsOwn) {
  const auto b = device->allocate(int64_t{1} << 45);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, ErrorCode::kOutOfMemory);
}

// Doubling of so many elements, on so many sets of buffers.
Result<std::vector<Samples>> time_doubling(Executor& device, int64_t elements, int sets) {
  LaunchList list = doubling_list(Engine::cuda, device.info().arch);
  list.inputs[0].shape = list.outputs[0].shape = {elements};
  list.kernels[0].grid[0] = ceil_div(elements, 256);
  list.kernels[0].source = fmt::format(
      "extern \"C\" __global__ void twice(const float* x, float* y) {{\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n  if (i < {}) y[i] = 2 * x[i];\n}}\n",
      elements);
  WARPLOOM_TRY(const Binary binary, compile(list));
  WARPLOOM_TRY(const Runnable kernels, device.load(list, binary));
  std::vector<std::vector<Call>> calls(1);
  for (int set = 0; set < sets; ++set) {
    Bindings buffers;
    for (const char* name : {"x", "y"}) {
      WARPLOOM_TRY(buffers[name], device.allocate(4 * elements));
      WARPLOOM_CHECK(device.fill(buffers[name], 0x3f800000u));
    }
    WARPLOOM_TRY(calls[0].emplace_back(), kernels.bind(buffers));
  }
  return measure(device, calls);
}

TEST_F(Gpu, MeasuresShortKernelsInSeries) {
  const auto samples = time_doubling(*device, 1000, 8);
  if (!samples && samples.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 8);
  EXPECT_LT((*samples)[0].median_us, 20);
}

TEST_F(Gpu, ClocksAgreeOnShortAndLongCalls) {
  for (const int64_t elements : {int64_t{1000}, int64_t{1} << 27}) {
    const auto samples = time_doubling(*device, elements, 8);
    if (!samples && samples.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
    ASSERT_OK(samples);
    ASSERT_OK(device->clocks_agree());
  }
}

// What runs on another stream is outside the events.
TEST_F(Gpu, WorkThatTheEventsDoNotSeeContradictsTheHostsClock) {
  LaunchList list = doubling_list(Engine::cuda, device->info().arch);
  list.kernels[0].source =
      "extern \"C\" __global__ void twice(const float*, float*) {\n"
      "  const long long begin = clock64();\n  while (clock64() - begin < 60000000) {}\n}\n";
  const auto binary = compile(list);
  if (!binary) GTEST_SKIP() << "no NVRTC";
  auto kernels = device->load(list, *binary);
  ASSERT_OK(kernels);
  const auto call = kernels->bind({{"x", buffer(4000)}, {"y", buffer(4000)}});
  ASSERT_OK(call);
  void* const own = device->stream();
  const Call elsewhere = [&] {
    device->use_stream(nullptr);
    const Status done = (*call)();
    device->use_stream(own);
    return done;
  };
  ASSERT_OK(device->time_us(elsewhere, 1));
  const Status agree = device->clocks_agree();
  ASSERT_FALSE(agree);
  EXPECT_EQ(agree.error().code, ErrorCode::kCandidateClock);
  ASSERT_OK(device->clocks_agree());
}

TEST_F(Gpu, MeasuresAPlausibleCopyBandwidth) {
  LaunchList list = doubling_list(Engine::cuda, device->info().arch);
  constexpr int64_t kElements = int64_t{256} << 20;
  list.inputs[0].shape = list.outputs[0].shape = {kElements};
  list.kernels[0].grid[0] = kElements / 1024;
  list.kernels[0].source =
      "extern \"C\" __global__ void twice(const float4* x, float4* y) {\n"
      "  const long long i = blockIdx.x * 256ll + threadIdx.x;\n  y[i] = x[i];\n}\n";
  const auto binary = compile(list);
  if (!binary) GTEST_SKIP() << "no NVRTC";
  auto kernels = device->load(list, *binary);
  ASSERT_OK(kernels);
  const auto call = kernels->bind({{"x", buffer(4 * kElements)}, {"y", buffer(4 * kElements)}});
  ASSERT_OK(call);
  const auto samples = measure(*device, {{*call}});
  ASSERT_OK(samples);
  const double gbs = 8.0 * static_cast<double>(kElements) / (*samples)[0].median_us * 1e-3;
  printf("copy %.0f GB/s read and written\n", gbs);
  EXPECT_GT(gbs, 500);
  EXPECT_LT(gbs, 20000);
}

// The context is lost with it: in a process of its own, started afresh since the driver does not
// survive a fork.
TEST_F(Gpu, AFaultIsACrashedCandidate) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto fresh = Executor::open(Engine::cuda);
        if (!fresh) std::exit(fresh.error().code == ErrorCode::kCudaCall ? 77 : 1);
        LaunchList list = doubling_list(Engine::cuda, (*fresh)->info().arch);
        list.kernels[0].source =
            "extern \"C\" __global__ void twice(const float* x, float* y) { *(volatile int*)16 = "
            "1; }\n";
        const auto binary = compile(list);
        if (!binary) std::exit(77);
        auto kernels = (*fresh)->load(list, *binary);
        if (!kernels) std::exit(2);
        const auto done = run(**fresh, *kernels,
                              {{"x", *(*fresh)->allocate(4000)}, {"y", *(*fresh)->allocate(4000)}});
        std::_Exit(!done && done.error().code == ErrorCode::kCandidateCrashed ? 0 : 3);
      },
      ::testing::ExitedWithCode(0), "");
}
}  // namespace
}  // namespace warploom::runtime
