// What a GPU keeps between launches, and that the scrub leaves none of it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "verify/gpu_gate.h"
#include "verify/gpu_scrub.h"

namespace warploom::verify {
namespace {
// `mark` leaves words in shared and local memory, `probe` counts those that it finds there.
constexpr const char* kText = R"(
__device__ inline void frames(unsigned* words, bool marks) {
  volatile unsigned frame[64];
  unsigned found = 0;
  for (int i = 0; i < 64; ++i)
    if (marks) frame[i] = 0x5eed0000u + i;
    else found += frame[i] == 0x5eed0000u + i;
  if (!marks) atomicAdd(words + 1, found);
  if (frame[words[2] & 63] == 1) words[3] = 1;
}
extern "C" __global__ void mark(unsigned* words) {
  extern __shared__ volatile unsigned held[];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) held[i] = 0x5eed0000u + i;
  frames(words, true);
}
extern "C" __global__ void probe(unsigned* words) {
  extern __shared__ volatile unsigned held[];
  unsigned found = 0;
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) found += held[i] == 0x5eed0000u + i;
  atomicAdd(words, found);
  frames(words, false);
}
)";

LaunchList list_of(const runtime::DeviceInfo& device, const char* name) {
  LaunchList list{.arch = device.arch, .outputs = {{"words", Dtype::i32, {4}}}};
  Kernel kernel{name, kText, {4 * int64_t{device.num_sms}, 1, 1}};
  kernel.threads = 256;
  kernel.shared_bytes = 32768;
  kernel.args = {{.buffer = "words"}};
  list.kernels.push_back(kernel);
  return list;
}

TEST(GpuScrub, LeavesNothingOfSharedAndLocalMemory) {
  const auto device = runtime::Executor::open(Engine::cuda);
  if (!device) GTEST_SKIP() << "no GPU";
  runtime::Executor& gpu = **device;
  const runtime::Buffer words = *gpu.allocate(16);
  std::vector<runtime::Call> calls;
  for (const char* name : {"mark", "probe"}) {
    const LaunchList list = list_of(gpu.info(), name);
    const auto binary = runtime::compile(list, {.most_spills = runtime::kAnySpills});
    ASSERT_TRUE(binary) << describe(binary.error());
    const auto kernel = gpu.load(list, *binary);
    ASSERT_TRUE(kernel) << describe(kernel.error());
    calls.push_back(*kernel->bind({{"words", words}}));
  }
  auto scrub = GpuScrub::make(gpu, 7);
  ASSERT_TRUE(scrub) << describe(scrub.error());
  for (const bool scrubbed : {false, true}) {
    ASSERT_TRUE(gpu.fill(words, 0));
    ASSERT_TRUE(calls[0]());
    ASSERT_TRUE(!scrubbed || scrub->run(256));
    ASSERT_TRUE(calls[1]());
    std::array<uint32_t, 4> found{};
    ASSERT_TRUE(gpu.download(words, found.data(), 16));
    if (scrubbed) {
      EXPECT_EQ(found[0], 0) << "words of shared memory";
      EXPECT_EQ(found[1], 0) << "words of local memory";
    } else {
      std::cout << "without a scrub a kernel finds " << found[0] << " words of shared and "
                << found[1] << " of local memory\n";
    }
  }
  for (const int64_t bytes : {int64_t{0}, int64_t{256}, kMostLocalBytes}) {
    ASSERT_TRUE(scrub->run(bytes));
    std::vector<double> us;
    for (int i = 0; i < 50; ++i)
      us.push_back(*gpu.time_us([&] { return scrub->run(bytes); }, 1));
    std::ranges::sort(us);
    std::cout << fmt::format("a scrub with frames of {} bytes takes {:.1f} us\n", bytes, us[25]);
  }
}

TEST(GpuScrub, TakesEveryRegisterAndTheFrameItIsAskedFor) {
  if (!runtime::find_cuda_compiler()) GTEST_SKIP() << "neither NVRTC nor nvcc";
  const runtime::DeviceInfo device{
      .arch = "sm_90a", .num_sms = 132, .shared_bytes = 232448, .threads_per_sm = 2048};
  for (const LaunchList& list : {scrub_blocks_list(device), scrub_frames_list(device, 1024)}) {
    const auto image = runtime::compile_cuda(list.kernels[0].source, list.arch);
    ASSERT_TRUE(image) << describe(image.error());
    const Status gated = check_gpu_kernel(list.kernels[0], image->path.string(), false);
    EXPECT_TRUE(gated) << describe(gated.error());
    for (const runtime::KernelFigures& kernel : runtime::parse_ptxas(image->log).kernels) {
      EXPECT_EQ(kernel.spill_bytes, 0) << kernel.name;
      // Registers are given out in eights: 1024 threads with 64 have all 65536.
      EXPECT_TRUE(kernel.name != "scrub_blocks" || kernel.registers > 56) << kernel.registers;
      EXPECT_TRUE(kernel.name != "scrub_frames" || kernel.registers <= 32) << kernel.registers;
    }
  }
  const LaunchList frames = scrub_frames_list(device, 1024);
  EXPECT_EQ(frames.kernels[0].grid[0], 4 * 132);
  const auto image = runtime::compile_cuda(frames.kernels[0].source, frames.arch);
  EXPECT_EQ(local_bytes_of(image->path.string(), "scrub").value_or(0), 1024);
}
}  // namespace
}  // namespace warploom::verify
