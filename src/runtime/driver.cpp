#include "runtime/driver.h"
#include "runtime/library.h"
namespace warploom::runtime {
namespace {
// Driver codes (CUresult) that mean something other than "a call failed".
struct Meaning {
  CUresult code;
  ErrorCode error;
};
constexpr Meaning kMeanings[] = {
    {2, ErrorCode::kOutOfMemory},         // CUDA_ERROR_OUT_OF_MEMORY
    {34, ErrorCode::kNoDriver},           // …_STUB_LIBRARY
    {100, ErrorCode::kNoGpu},             // …_NO_DEVICE
    {700, ErrorCode::kCandidateCrashed},  // …_ILLEGAL_ADDRESS
    {702, ErrorCode::kCandidateHung},     // …_LAUNCH_TIMEOUT
    {710, ErrorCode::kCandidateCrashed},  // …_ASSERT
    {714, ErrorCode::kCandidateCrashed},  // …_HARDWARE_STACK_ERROR
    {715, ErrorCode::kCandidateCrashed},  // …_ILLEGAL_INSTRUCTION
    {716, ErrorCode::kCandidateCrashed},  // …_MISALIGNED_ADDRESS
    {717, ErrorCode::kCandidateCrashed},  // …_INVALID_ADDRESS_SPACE
    {718, ErrorCode::kCandidateCrashed},  // …_INVALID_PC
    {719, ErrorCode::kCandidateCrashed},  // …_LAUNCH_FAILED
    {720, ErrorCode::kResourceLimit},     // …_COOPERATIVE_LAUNCH_TOO_LARGE
};

std::string_view remedy_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOutOfMemory: return "take a smaller problem, or free memory of the GPU (nvidia-smi lists its users)";
    case ErrorCode::kNoDriver: return "install the NVIDIA driver, or use --target cpu";
    case ErrorCode::kNoGpu: return "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --target cpu";
    case ErrorCode::kResourceLimit: return "launch fewer blocks: all of them must run at the same time";
    case ErrorCode::kCandidateCrashed: return "start a fresh process: the GPU context is lost";
    default: return "check nvidia-smi and the kernel log";
  }
}

Result<Driver> open_driver() {
  const Library library{"libcuda.so.1"};
  if (!library)
    return fail({ErrorCode::kNoDriver, "the CUDA driver could not be opened", "libcuda.so.1", "an NVIDIA driver",
                 library.why_not(), std::string(remedy_of(ErrorCode::kNoDriver))});
  Driver driver;
#define WARPLOOM_DRIVER(name, symbol, ...) driver.name = library[symbol];
#include "runtime/driver.def"
  if (!library.complete())
    return fail({ErrorCode::kNoDriver, "the CUDA driver is too old", "libcuda.so.1", "a driver for CUDA 12.0 or later",
                 "no " + library.missing(), "update the NVIDIA driver"});
  WARPLOOM_CUDA(driver, cuInit, 0);
  int count = 0;
  WARPLOOM_CUDA(driver, cuDeviceGetCount, &count);
  if (count == 0)
    return fail({ErrorCode::kNoGpu, "the CUDA driver lists no GPU", "cuDeviceGetCount", "a GPU", "none",
                 std::string(remedy_of(ErrorCode::kNoGpu))});
  return driver;
}
}  // namespace
Result<const Driver*> Driver::get() {
  static const Result<Driver> driver = open_driver();
  if (!driver) return fail(driver.error());
  return &*driver;
}

Status Driver::check(CUresult code, const char* call) const {
  if (code == 0) return ok();
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(code, &name) != 0 || !name) name = "unknown code";
  if (cuGetErrorString(code, &text) != 0 || !text) text = "no description";
  ErrorCode error = ErrorCode::kCudaCall;
  for (const Meaning& meaning : kMeanings)
    if (meaning.code == code) error = meaning.error;
  return fail({error, fmt::format("{} failed: {}", call, text), call, "CUDA_SUCCESS", fmt::format("{} ({})", name, code),
               std::string(remedy_of(error))});
}

Result<int> Driver::attribute(int which) const {
  CUdevice device = 0;
  int value = 0;
  WARPLOOM_CUDA(*this, cuDeviceGet, &device, 0);
  WARPLOOM_CUDA(*this, cuDeviceGetAttribute, &value, which, device);
  return value;
}

std::string Driver::version() const {
  int version = 0;
  cuDriverGetVersion(&version);
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}
}  // namespace warploom::runtime
