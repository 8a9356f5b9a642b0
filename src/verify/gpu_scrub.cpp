#include "verify/gpu_scrub.h"
#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/gpu_gate.h"

namespace warploom::verify {
namespace {
using runtime::DeviceInfo;

constexpr int kBlockThreads = 1024;
constexpr int kFrameThreads = 512;  // as scrub.cu bounds them
constexpr int64_t kWords = 4;

LaunchList list_of(const DeviceInfo& device, Kernel kernel) {
  LaunchList list{.arch = device.arch, .outputs = {{"words", Dtype::i32, {kWords}}}};
  kernel.args = {{.buffer = "words"}};
  kernel.cooperative = true;  // or their waiting would never end
  list.kernels.push_back(std::move(kernel));
  return list;
}
}  // namespace

LaunchList scrub_blocks_list(const DeviceInfo& device) {
  Kernel kernel{"scrub_blocks", resource("verify/scrub.cu"), {device.num_sms, 1, 1}};
  kernel.threads = kBlockThreads;
  kernel.shared_bytes = device.shared_bytes;
  return list_of(device, std::move(kernel));
}

LaunchList scrub_frames_list(const DeviceInfo& device, int64_t local_bytes) {
  const int64_t blocks = std::max(1, device.threads_per_sm / kFrameThreads);
  const std::string text =
      fmt::format("#define LOCAL_WORDS {}\n{}", local_bytes / 4, resource("verify/scrub.cu"));
  Kernel kernel{"scrub_frames", text, {device.num_sms * blocks, 1, 1}};
  kernel.threads = kFrameThreads;
  return list_of(device, std::move(kernel));
}

Result<GpuScrub> GpuScrub::make(runtime::Executor& device, uint64_t seed) {
  GpuScrub made(device, seed);
  WARPLOOM_TRY(made.words_, device.allocate(4 * kWords));
  WARPLOOM_CHECK(device.fill(made.words_, 0));
  WARPLOOM_TRY(made.blocks_, made.call_of(scrub_blocks_list(device.info())));
  return made;
}

Result<runtime::Call> GpuScrub::call_of(const LaunchList& list) const {
  WARPLOOM_TRY(const runtime::Binary binary,
               runtime::compile(list, {.most_spills = runtime::kAnySpills}));
  WARPLOOM_TRY(const runtime::Runnable kernel, device_->load(list, binary));
  return kernel.bind({{"words", words_}});
}

// Of twice as many bytes as the last: few are ever compiled.
Result<runtime::Call> GpuScrub::frames_of(int64_t local_bytes) const {
  return call_of(scrub_frames_list(device_->info(), local_bytes));
}

Status GpuScrub::run(int64_t local_bytes) {
  constexpr int64_t kLeastFrame = 64;
  const auto pattern = as_uint32(random_.next());
  WARPLOOM_CHECK(device_->fill(words_.slice(0, 4), pattern));
  if (local_bytes > 0) {
    const auto wanted = as_uint64(std::clamp(local_bytes, kLeastFrame, kMostLocalBytes));
    const auto bytes = as_int64(std::bit_ceil(wanted));
    if (!frames_[bytes]) WARPLOOM_TRY(frames_[bytes], frames_of(bytes));
    WARPLOOM_CHECK(frames_[bytes]());
  }
  // Last, since the other has registers of its own.
  WARPLOOM_CHECK(blocks_());
  return device_->forget_lines();
}
}  // namespace warploom::verify
