// What a GPU keeps between two launches, filled with what no candidate can know.
//
// No launch clears the shared memory of a multiprocessor, its registers, or the local memory of its
// threads: a kernel finds there what the last one left, its own answer for instance. So before a
// call of a foreign kernel kernels of ours (resources/verify/scrub.cu) fill them with a pattern
// that is another one each time. One block a multiprocessor has all the shared memory and all
// registers; where the candidate has frames of local memory, as many blocks as fit have frames at
// least as large. The blocks of either wait for each other, so that every place holds one.
//
//   WARPLOOM_TRY(GpuScrub scrub, GpuScrub::make(*device, seed));
//   WARPLOOM_CHECK(scrub.run(local_bytes));   // in launch order
//
// `device` must outlive it. What it does not reach: docs/verification.md, "What is not promised on
// a GPU". Errors: those of compiling, loading and launching. Within the room only.
#pragma once
#include <map>
#include "base/random.h"
#include "runtime/executor.h"

namespace warploom::verify {
class GpuScrub {
 public:
  static Result<GpuScrub> make(runtime::Executor& device, uint64_t seed);
  // `local_bytes`: of a candidate's largest frame.
  Status run(int64_t local_bytes);

 private:
  GpuScrub(runtime::Executor& device, uint64_t seed) : device_(&device), random_(seed, "scrub") {}

  Result<runtime::Call> call_of(const LaunchList& list) const;
  Result<runtime::Call> frames_of(int64_t local_bytes) const;

  runtime::Executor* device_;
  Random random_;
  runtime::Buffer words_;
  runtime::Call blocks_;
  std::map<int64_t, runtime::Call> frames_;  // by the bytes of a frame
};

// Its launches, for a device: all shared memory and registers, and frames of so many bytes.
LaunchList scrub_blocks_list(const runtime::DeviceInfo& device);
LaunchList scrub_frames_list(const runtime::DeviceInfo& device, int64_t local_bytes);
}  // namespace warploom::verify
