#include "runtime/driver.h"
#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <vector>
#include "base/error.h"
#include "runtime/library.h"

namespace warploom::runtime {
namespace {
// Driver codes (CUresult) that mean something other than "a call failed".
constexpr CUresult kStubLibrary = 34;
constexpr CUresult kNoDevice = 100;
constexpr int kOldestMajor = 8;
constexpr const char* kDriverLibrary = "libcuda.so.1";

struct Meaning {
  std::vector<CUresult> codes;
  ErrorCode error;
  const char* remedy;
};

const Meaning& meaning_of(CUresult code) {
  static const std::vector<Meaning> meanings = {
      {{2},
       ErrorCode::kOutOfMemory,
       "take a smaller problem, or free memory of the GPU (nvidia-smi lists its users)"},
      {{kStubLibrary}, ErrorCode::kNoDriver, "install the NVIDIA driver, or use --target cpu"},
      {{kNoDevice},
       ErrorCode::kNoGpu,
       "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --target cpu"},
      // Unavailable: its compute mode lets one process have it, or none.
      {{46},
       ErrorCode::kCudaCall,
       "end the process that has the GPU for itself (nvidia-smi lists them), or let several have "
       "it: nvidia-smi -c 0"},
      {{702}, ErrorCode::kCandidateHung, "check nvidia-smi and the kernel log"},
      // Illegal and misaligned addresses, address spaces and instructions, assertions, the
      // hardware's stack, a failed launch.
      {{700, 710, 714, 715, 716, 717, 718, 719},
       ErrorCode::kCandidateCrashed,
       "start a fresh process: the GPU context is lost"},
      {{803, 804},
       ErrorCode::kCudaCall,
       "restart the machine, or reload the driver: libcuda.so.1 and the kernel's module differ"},
      // Unknown, and uncorrectable ECC errors: what a GPU answers that fell off the bus.
      {{214, 999},
       ErrorCode::kCudaCall,
       "the GPU is lost, or its driver was not ready: check nvidia-smi and the kernel log (dmesg) "
       "for Xid errors, and run again; what was judged before is kept"},
      {{720},
       ErrorCode::kResourceLimit,
       "launch fewer blocks: all of them must run at the same time"},
      {{}, ErrorCode::kCudaCall, "check nvidia-smi and the kernel log"}};
  return *std::ranges::find_if(meanings, [&](const Meaning& m) {
    return m.codes.empty() || std::ranges::count(m.codes, code);
  });
}

Result<Driver> open_driver() {
  const Library library{kDriverLibrary};
  if (!library) {
    Error error{ErrorCode::kNoDriver, "the CUDA driver could not be opened", "libcuda.so.1"};
    error.expected = "an NVIDIA driver";
    error.found = library.why_not();
    error.remedy = meaning_of(kStubLibrary).remedy;
    return fail(error);
  }
  Driver driver;
#define WARPLOOM_DRIVER(name, version, ...) driver.name = library[#name #version];
#include "runtime/driver.def"
  if (!library.complete())
    return fail({ErrorCode::kNoDriver, "the CUDA driver is too old", "libcuda.so.1",
                 "a driver for CUDA 12.0 or later", "no " + library.missing(),
                 "update the NVIDIA driver"});
  WARPLOOM_CUDA(driver, cuInit, 0);
  int count = 0;
  WARPLOOM_CUDA(driver, cuDeviceGetCount, &count);
  if (count == 0) WARPLOOM_CHECK(driver.check(kNoDevice, "cuDeviceGetCount"));
  return driver;
}
}  // namespace

bool has_driver() {
  return static_cast<bool>(Library{kDriverLibrary});
}

Result<const Driver*> Driver::get() {
  static const auto driver = open_driver();
  if (!driver) return fail(driver.error());
  return &*driver;
}

Status Driver::check(CUresult code, const char* call) const {
  if (code == 0) return ok();
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(code, &name) != 0 || !name) name = "unknown code";
  if (cuGetErrorString(code, &text) != 0 || !text) text = "no description";
  const Meaning& meaning = meaning_of(code);
  Error error{meaning.error, fmt::format("{} failed: {}", call, text), call, "CUDA_SUCCESS"};
  error.found = fmt::format("{} ({})", name, code);
  error.remedy = meaning.remedy;
  return fail(error);
}

Result<int> Driver::attribute(int which) const {
  CUdevice device = 0;
  int value = 0;
  WARPLOOM_CUDA(*this, cuDeviceGet, &device, 0);
  WARPLOOM_CUDA(*this, cuDeviceGetAttribute, &value, which, device);
  return value;
}

Result<std::string> Driver::arch() const {
  WARPLOOM_TRY(const int major, attribute(kAttributeMajor));
  WARPLOOM_TRY(const int minor, attribute(kAttributeMinor));
  // From 9.0 on the instructions that matter are of the architecture-specific targets.
  if (major >= kOldestMajor) return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
  Error error{ErrorCode::kGpuTooOld, "the GPU is older than the oldest target", "--target"};
  error.expected = "compute capability 8.0 or later";
  error.found = fmt::format("{}.{}", major, minor);
  error.remedy = "use --target cpu";
  return fail(error);
}

std::string Driver::version() const {
  int version = 0;
  cuDriverGetVersion(&version);
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}
}  // namespace warploom::runtime
