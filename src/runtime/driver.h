// The CUDA driver, libcuda.so.1, opened at run time with prototypes of our own: building needs no
// CUDA header.
//
//   WARPLOOM_TRY(const Driver* cuda, Driver::get());
//   WARPLOOM_CUDA(*cuda, cuMemAlloc, &address, bytes);   // returns the error from the enclosing
//   function
//
// Source: CUDA Driver API reference, CUDA 12.0 (the oldest with all of driver.def) and later.
#pragma once
#include <cstddef>
#include "base/error.h"

namespace warploom::runtime {
// The driver's own types, as far as they are needed.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

using CUmemHandle = unsigned long long;

struct CUmemPlace {
  int type = 1;  // a device
  int device = 0;
};

struct CUmemProperties {
  int type = 1;     // pinned
  int handles = 0;  // 1: a file may stand for it
  CUmemPlace place = {};
  void* other_system = nullptr;
  unsigned char flags[8] = {};
};

struct CUmemAccess {
  CUmemPlace place = {};
  int access = 3;  // reads and writes
};

struct CUlaunchAttribute {
  int id = 0;
  char pad[4] = {};

  union alignas(8) {
    char bytes[64];

    struct {
      unsigned x;
      unsigned y;
      unsigned z;
    } cluster;

    int enabled;
  } value = {};
};

struct CUlaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

enum CUconstants : int {
  kAttributeClockKhz = 13,
  kAttributeProcessors = 16,
  kAttributePciBus = 33,
  kAttributePciDevice = 34,
  kAttributeMemoryClockKhz = 36,
  kAttributeBusBits = 37,
  kAttributeL2Bytes = 38,
  kAttributeThreadsPerProcessor = 39,
  kAttributePciDomain = 50,
  kAttributeMajor = 75,
  kAttributeMinor = 76,
  kAttributeSharedBytesOptin = 97,
  kFunctionMaxDynamicShared = 8,
  kFunctionNonPortableCluster = 14,
  kLaunchCooperative = 2,
  kLaunchClusterDimension = 4,
  kLaunchProgrammaticSerialization = 6,
  kMemoryAsFile = 1,
  kLimitPrintfBytes = 1,
  kLimitHeapBytes = 2,
  kLimitPersistingL2Bytes = 6,
  kStreamNonBlocking = 1,
  kCaptureThreadLocal = 1,
};

class Driver {
 public:
#define WARPLOOM_DRIVER(name, version, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
#include "runtime/driver.def"

  // Opened and initialised once a process. Fails with no-driver, or no-gpu where cuInit or the
  // count finds none.
  static Result<const Driver*> get();
  // ok for 0; else the code's own error, as out-of-memory or candidate-crashed, or cuda-call; with
  // the driver's words for it.
  Status check(CUresult code, const char* call) const;
  Result<int> attribute(int which) const;  // of the first device
  Result<std::string> arch() const;        // the same one's: "sm_90a"; fails with gpu-too-old
  std::string version() const;             // "CUDA 13.0"
};

// Whether there is a driver's library, which nobody has asked for a GPU yet.
bool has_driver();

#define WARPLOOM_CUDA(driver, call, ...) \
  WARPLOOM_CHECK((driver).check((driver).call(__VA_ARGS__), #call))
}  // namespace warploom::runtime
