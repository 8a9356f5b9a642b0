// What only a GPU can show. Skipped, with the reason, where there is none.
#include <numeric>
#include "matmul_cases.h"
#include "runtime/driver.h"
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

  Buffer buffer(std::int64_t bytes) { return *device->allocate(bytes); }

  std::unique_ptr<Executor> device;
};

TEST_F(Gpu, DescribesItself) {
  const DeviceInfo& info = device->info();
  printf("%s, %s, %d multiprocessors, %.1f GB, L2 %.1f MB, shared %lld, %s\n", info.name.c_str(),
         info.arch.c_str(), info.processors, static_cast<double>(info.memory_bytes) * 1e-9,
         static_cast<double>(info.cache_bytes) * 1e-6, static_cast<long long>(info.shared_bytes),
         info.driver.c_str());
  EXPECT_TRUE(info.arch.starts_with("sm_"));
  EXPECT_GT(info.processors, 1);
}

TEST_F(Gpu, CopiesThereAndBack) {
  std::vector<char> out = random_tensor(Dtype::f32, 1001, 5), back(out.size());
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
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(bytes[i], i >= 4 && i < 25 ? i % 4 + 1 : 0u) << i;
}

TEST_F(Gpu, RunsAKernel) {
  const LaunchList list = doubling_list(Engine::cuda, device->info().arch);
  const auto binary = compile(list);
  if (!binary && binary.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
  ASSERT_OK(binary);
  auto kernels = device->load(list, *binary);
  ASSERT_OK(kernels);
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  const Buffer bx = buffer(4000), by = buffer(4000);
  ASSERT_OK(device->upload(bx, x.data(), 4000));
  ASSERT_OK(run(*device, *kernels, {{"x", bx}, {"y", by}}));
  ASSERT_OK(device->download(by, y.data(), 4000));
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(y[i], 2 * x[i]);
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
  const auto b = device->allocate(std::int64_t{1} << 45);
  ASSERT_FALSE(b);
  EXPECT_EQ(b.error().code, ErrorCode::kOutOfMemory);
}

void check_references(Executor& device, const VendorProblem& problem, double bound) {
  for (const bool plain : {false, true}) {
    const auto reference =
        plain ? plain_kernel(device, problem) : vendor_reference(device, problem);
    if (!reference && reference.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
    ASSERT_OK(reference);
    const auto error = problem.kind == VendorKind::matmul
                           ? matmul_error(device, problem, *reference)
                           : softmax_error(device, problem, *reference);
    ASSERT_OK(error);
    EXPECT_LT(*error, bound) << reference->name << " " << text_of(problem);
  }
}

TEST_F(Gpu, ReferencesAgreeWithFp64At256) {
  VendorProblem problem{.m = 256, .n = 256, .k = 256};
  check_references(*device, problem, 1e-6);
  problem.tf32 = true;
  check_references(*device, problem, 1e-3);
  problem.tf32 = false;
  problem.in = problem.out = Dtype::bf16;
  check_references(*device, problem, 4e-3);
  problem.in = problem.out = Dtype::f16;
  check_references(*device, problem, 1e-3);
}

TEST_F(Gpu, ReferencesAgreeWithFp64OnEveryField) {
  for (const VendorProblem& problem : small_matmuls(Dtype::f32))
    check_references(*device, problem, 3e-6);
  for (const VendorProblem& problem : small_matmuls(Dtype::bf16))
    check_references(*device, problem, 1.6e-2);
}

TEST_F(Gpu, StrictFp32IsNotTf32) {
  const VendorProblem problem{.m = 256, .n = 256, .k = 256};
  const auto reference = vendor_reference(*device, problem);
  ASSERT_OK(reference);
  EXPECT_LT(*matmul_error(*device, problem, *reference), 2e-6);
}

TEST_F(Gpu, SoftmaxAgreesWithFp64) {
  check_references(*device, {.kind = VendorKind::softmax, .m = 37, .n = 1001}, 1e-6);
  check_references(
      *device,
      {.kind = VendorKind::softmax, .m = 5, .n = 100, .in = Dtype::bf16, .out = Dtype::bf16}, 4e-3);
}

Result<std::vector<Samples>> time_matmul(Executor& device, const VendorProblem& problem, int sets) {
  WARPLOOM_TRY(auto vendor, vendor_reference(device, problem));
  WARPLOOM_TRY(auto plain, plain_kernel(device, problem));
  std::vector<std::vector<Call>> calls(2);
  for (int set = 0; set < sets; ++set) {
    Bindings buffers;
    WARPLOOM_TRY(buffers["A"], device.allocate(problem.m * problem.k * bytes_of(problem.in)));
    WARPLOOM_TRY(buffers["B"], device.allocate(problem.k * problem.n * bytes_of(problem.in)));
    WARPLOOM_TRY(buffers["C"], device.allocate(problem.m * problem.n * bytes_of(problem.out)));
    for (auto& [name, b] : buffers) WARPLOOM_CHECK(device.fill(b, 0x3f803f80u));
    WARPLOOM_TRY(calls[0].emplace_back(), vendor.bind(buffers));
    WARPLOOM_TRY(calls[1].emplace_back(), plain.bind(buffers));
  }
  auto samples = measure(device, calls);
  for (std::size_t i = 0; samples && i < 2; ++i) {
    const Samples& s = (*samples)[i];
    printf("%-18s %s: %.1f us [%.1f, %.1f] %.1f TFLOP/s, %d calls a sample\n",
           (i == 0 ? vendor : plain).name.c_str(), text_of(problem).c_str(), s.median_us, s.low_us,
           s.high_us, flops_of(problem) / s.median_us * 1e-6, s.calls_per_sample);
  }
  return samples;
}

TEST_F(Gpu, MeasuresTheLibraryFasterThanThePlainKernel) {
  const auto samples = time_matmul(
      *device, {.m = 2048, .n = 2048, .k = 2048, .in = Dtype::bf16, .out = Dtype::bf16}, 1);
  ASSERT_OK(samples);
  EXPECT_LT((*samples)[0].median_us, (*samples)[1].median_us);
}

TEST_F(Gpu, MeasuresShortKernelsInSeries) {
  const auto samples = time_matmul(*device, {.m = 128, .n = 128, .k = 128}, 8);
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 8);
  EXPECT_LT((*samples)[0].median_us, 20);
}

TEST_F(Gpu, ClocksAgreeOnShortAndLongCalls) {
  for (const std::int64_t n : {128, 4096}) {
    ASSERT_OK(
        time_matmul(*device, {.m = n, .n = n, .k = n, .in = Dtype::bf16, .out = Dtype::bf16}, 8));
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
  constexpr std::int64_t kElements = std::int64_t{256} << 20;
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
