#include <algorithm>
#include <cstdio>
#include "matmul_cases.h"
#include "runtime/compilers.h"
#include "runtime/timing.h"

namespace warploom::runtime {
namespace {
class CpuReferences : public ::testing::Test {
 protected:
  std::unique_ptr<Executor> device = *Executor::open(Engine::cpu);

  std::optional<Runnable> library(const VendorProblem& problem) {
    auto reference = vendor_reference(*device, problem);
    return reference && reference->name.starts_with("oneDNN") ? std::optional(*reference)
                                                              : std::nullopt;
  }
};

// Roundings of the output and, in 16 bits, of the product before the epilogue.
double bound(Dtype dtype) {
  return dtype == Dtype::f32 ? 2e-6 : 4 * unit_roundoff(dtype);
}

TEST_F(CpuReferences, OneDnnAgreesWithFp64) {
  if (!library({.m = 8, .n = 8, .k = 8})) GTEST_SKIP() << "no oneDNN here";
  for (const VendorProblem& problem : small_matmuls(Dtype::f32)) {
    const auto reference = library(problem);
    ASSERT_TRUE(reference) << text_of(problem);
    const auto error = matmul_error(*device, problem, *reference);
    ASSERT_OK(error);
    EXPECT_LT(*error, bound(Dtype::f32)) << text_of(problem) << " by " << reference->name;
  }
}

TEST_F(CpuReferences, OneDnnServesBf16) {
  VendorProblem problem{.m = 64, .n = 64, .k = 64, .in = Dtype::bf16, .out = Dtype::bf16};
  const auto reference = library(problem);
  if (!reference) GTEST_SKIP() << "oneDNN has no bf16 here";
  const auto error = matmul_error(*device, problem, *reference);
  ASSERT_OK(error);
  EXPECT_LT(*error, bound(Dtype::bf16));
}

TEST_F(CpuReferences, OneDnnSoftmaxAgreesWithFp64) {
  const VendorProblem problem{.kind = VendorKind::softmax, .m = 37, .n = 1001};
  const auto reference = library(problem);
  if (!reference) GTEST_SKIP() << "no oneDNN here";
  const auto error = softmax_error(*device, problem, *reference);
  ASSERT_OK(error);
  EXPECT_LT(*error, 1e-6);
}

TEST_F(CpuReferences, PlainKernelsAgreeWithFp64) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  std::vector<VendorProblem> problems = small_matmuls(Dtype::f32);
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) problems.push_back(small_matmuls(dtype)[7]);
  for (const VendorProblem& problem : problems) {
    const auto reference = plain_kernel(*device, problem);
    ASSERT_OK(reference);
    const auto error = matmul_error(*device, problem, *reference);
    ASSERT_OK(error);
    EXPECT_LT(*error, bound(problem.out)) << text_of(problem);
  }
}

TEST_F(CpuReferences, PlainSoftmaxAgreesWithFp64) {
  if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const VendorProblem problem{
        .kind = VendorKind::softmax, .m = 9, .n = 300, .in = dtype, .out = dtype};
    const auto reference = plain_kernel(*device, problem);
    ASSERT_OK(reference);
    const auto error = softmax_error(*device, problem, *reference);
    ASSERT_OK(error);
    EXPECT_LT(*error, bound(dtype));
  }
}

TEST_F(CpuReferences, TypesThatNobodyServesAreRefused) {
  const auto reference =
      vendor_reference(*device, {.m = 8, .n = 8, .k = 8, .in = Dtype::e4m3, .out = Dtype::e4m3});
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().code, ErrorCode::kNoSchedule);
}

// Not a test of correctness: prints what the machine does, for the record.
// --gtest_also_run_disabled_tests
TEST_F(CpuReferences, DISABLED_Speed) {
  const VendorProblem problem{.m = 1024, .n = 1024, .k = 1024};
  std::vector<Runnable> references;
  references.push_back(std::move(*vendor_reference(*device, problem)));
  references.push_back(std::move(*plain_kernel(*device, problem)));
  std::vector<std::vector<Call>> calls;
  for (const auto& reference : references) {
    Bindings buffers;
    for (const char* name : {"A", "B", "C"})
      buffers[name] = *on_device(*device, random_tensor(Dtype::f32, 1 << 20, 1));
    calls.push_back({*reference.bind(buffers)});
  }
  const auto samples = measure(*device, calls, {.budget_ms = 3000});
  ASSERT_OK(samples);
  for (std::size_t i = 0; i < 2; ++i) {
    const Samples& s = (*samples)[i];
    printf("%-16s 1024^3 f32: median %.0f us [%.0f, %.0f] %.1f GFLOP/s, fastest %.1f GFLOP/s\n",
           references[i].name.c_str(), s.median_us, s.low_us, s.high_us,
           flops_of(problem) / s.median_us * 1e-3,
           flops_of(problem) / *std::min_element(s.us.begin(), s.us.end()) * 1e-3);
  }
  // Copy bandwidth, by all cores: a launch list of its own.
  LaunchList copy = doubling_list(Engine::cpu, device->info().arch);
  constexpr std::int64_t kElements = std::int64_t{64} << 20, kTasks = 256;
  copy.inputs[0].shape = copy.outputs[0].shape = {kElements};
  copy.kernels[0].grid[0] = kTasks;
  copy.kernels[0].source =
      "#include <cstring>\nextern \"C\" void twice(void* const* b, long long task, void*) {\n"
      "  std::memcpy(static_cast<char*>(b[1]) + task * (1 << 20), static_cast<const char*>(b[0]) + "
      "task * (1 "
      "<< 20), 1 << 20);\n}\n";
  auto kernels = device->load(copy, *compile(copy));
  ASSERT_OK(kernels);
  Buffer x = *device->allocate(4 * kElements), y = *device->allocate(4 * kElements);
  ASSERT_OK(device->fill(x, 1));
  const auto copied =
      measure(*device, {{*kernels->bind({{"x", x}, {"y", y}})}}, {.budget_ms = 2000});
  ASSERT_OK(copied);
  const Samples& c = (*copied)[0];
  const double fastest = *std::min_element(c.us.begin(), c.us.end());
  printf("copy of 256 MiB: median %.1f, fastest %.1f GB/s read and written\n",
         8.0 * static_cast<double>(kElements) / c.median_us * 1e-3,
         8.0 * static_cast<double>(kElements) / fastest * 1e-3);
}
}  // namespace
}  // namespace warploom::runtime
