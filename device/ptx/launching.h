// How a bundle's launcher starts its kernels: what each kernel needs is looked up once, and a call
// that starts several kernels is recorded as a CUDA graph and replayed. It is code of the host, for
// the CUDA runtime alone; no kernel includes it.
//
//   wl::Kernel          a kernel of the library, with what its launches need of the driver
//   wl::TensorMapOf     a tensor as the tensor memory accelerator sees it, kept while it stays
//   wl::Recordings      calls as CUDA graphs, by the addresses that they are made with
//
// Errors are those of the CUDA runtime, of the first call that fails.
#pragma once
#include <cuda_runtime_api.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#define WL_TRY(call) \
  if (const cudaError_t wl_status = (call); wl_status != cudaSuccess) return wl_status

namespace wl {
struct LaunchShape {
  dim3 grid;
  dim3 cluster;
  unsigned threads;
  std::size_t shared_bytes;
  bool cooperative;
  bool overlaps;  // programmatic dependent launch
};

class Kernel {
 public:
  constexpr explicit Kernel(const void* (*symbol)()) : symbol_(symbol) {}

  // Starts it on the stream; `device`: the current one.
  cudaError_t launch(const LaunchShape& shape, void** args, int device, cudaStream_t stream) {
    const void* const kernel = symbol_();
    WL_TRY(allow(kernel, shape, device));
    cudaLaunchAttribute attributes[3] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    if (blocks_of(shape.cluster) > 1) {
      cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = shape.cluster.x;
      attribute.val.clusterDim.y = shape.cluster.y;
      attribute.val.clusterDim.z = shape.cluster.z;
    }
    if (shape.cooperative) {
      cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    if (shape.overlaps) {
      cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    config.attrs = attributes;
    return cudaLaunchKernelExC(&config, kernel, args);
  }

 private:
  static unsigned blocks_of(const dim3& cluster) { return cluster.x * cluster.y * cluster.z; }

  // More shared memory and larger clusters than every card has must be allowed once on a device.
  cudaError_t allow(const void* kernel, const LaunchShape& shape, int device) {
    const bool is_kept = device >= 0 && device < 64;
    const std::uint64_t bit = is_kept ? std::uint64_t{1} << device : 0;
    if ((allowed_.load(std::memory_order_acquire) & bit) != 0) return cudaSuccess;
    if (shape.shared_bytes > 0)
      WL_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shape.shared_bytes)));
    if (blocks_of(shape.cluster) > 8)
      WL_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    allowed_.fetch_or(bit, std::memory_order_release);
    return cudaSuccess;
  }

  const void* (*symbol_)();
  std::atomic<std::uint64_t> allowed_{0};  // a bit for each of the first 64 devices
};

// Calls of one launcher as CUDA graphs.
//
// To start a kernel costs the host two or three microseconds, and a network has dozens. A CUDA
// graph starts them all at the price of one or two. But it holds addresses, so that a recording is
// of one device, stream, workspace and set of tensors, and to make one costs as much as some calls.
// Hence
//
//   - the first kPlainCalls calls with some addresses start the kernels one by one; the next one
//     records them, and from then on they are replayed. Tensors that are others at every call are
//     never recorded;
//   - the kMost sets of addresses that were last used are remembered;
//   - while the stream is captured by a graph of the caller's, the kernels are started one by one
//     and become a part of that graph;
//   - where recording fails, calls with these addresses go on starting kernels one by one.
//
// What was recorded is of addresses alone: what lies there may change. Threads may call at once.
class Recordings {
 public:
  static constexpr int kPlainCalls = 3;
  static constexpr std::size_t kMost = 8;

  // `start(stream)` starts the kernels one by one. `tensors`: so many addresses.
  template <class Start>
  cudaError_t launch(int device, cudaStream_t stream, const void* workspace, void* const* tensors,
                     std::size_t count, const Start& start) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t asked = cudaStreamIsCapturing(stream, &capture);
    if (asked != cudaSuccess || capture != cudaStreamCaptureStatusNone) return start(stream);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Entry& entry = entry_of(device, stream, workspace, tensors, count);
      if (is_recorded(entry, start)) {
        const cudaError_t status = cudaGraphLaunch(entry.graph, stream);
        if (status != cudaSuccess) forget(entry);
        return status;
      }
    }
    return start(stream);
  }

  // Forgets them all, as before cudaDeviceReset(). Replays that have begun come to their end.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Entry& entry : entries_)
      forget(entry);
    entries_.clear();
  }

 private:
  struct Entry {
    int device = 0;
    cudaStream_t stream = nullptr;
    std::vector<const void*> addresses;  // the workspace, then the tensors
    std::uint64_t used = 0;              // the number of the last call
    int calls = 0;                       // that came before it was recorded
    bool is_refused = false;
    cudaGraphExec_t graph = nullptr;
  };

  static void forget(Entry& entry) {
    if (entry.graph != nullptr) cudaGraphExecDestroy(entry.graph);
    entry.graph = nullptr;
    entry.calls = 0;
    entry.is_refused = false;
  }

  static bool is_of(const Entry& entry, int device, cudaStream_t stream, const void* workspace,
                    void* const* tensors, std::size_t count) {
    return entry.device == device && entry.stream == stream &&
           entry.addresses.size() == count + 1 && entry.addresses[0] == workspace &&
           std::equal(tensors, tensors + count, entry.addresses.begin() + 1);
  }

  // Whether there is a graph; one is made where it is time for that.
  template <class Start> static bool is_recorded(Entry& entry, const Start& start) {
    if (entry.graph != nullptr) return true;
    if (entry.is_refused || ++entry.calls <= kPlainCalls) return false;
    entry.graph = recorded(start);
    entry.is_refused = entry.graph == nullptr;
    return !entry.is_refused;
  }

  // Of these addresses; where they are new, in the place of those that were used longest ago.
  Entry& entry_of(int device, cudaStream_t stream, const void* workspace, void* const* tensors,
                  std::size_t count) {
    ++calls_;
    Entry* oldest = nullptr;
    for (Entry& entry : entries_) {
      if (is_of(entry, device, stream, workspace, tensors, count)) {
        entry.used = calls_;
        return entry;
      }
      if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
    }
    if (entries_.size() < kMost) {
      entries_.reserve(kMost);
      entries_.emplace_back();
      oldest = &entries_.back();
    }
    forget(*oldest);
    oldest->device = device;
    oldest->stream = stream;
    oldest->used = calls_;
    oldest->addresses.assign(1, workspace);
    oldest->addresses.insert(oldest->addresses.end(), tensors, tensors + count);
    return *oldest;
  }

  // The kernels as a graph, or null. It is recorded on a stream of its own, since the caller's may
  // be the default one, which cannot be captured, and others may be using it.
  template <class Start> static cudaGraphExec_t recorded(const Start& start) {
    // A capture of another thread's must not forbid what is called here.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status == cudaSuccess) {
      status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
      if (status == cudaSuccess) {
        const cudaError_t started = start(stream);
        status = cudaStreamEndCapture(stream, &graph);
        if (started != cudaSuccess) status = started;
      }
      if (status == cudaSuccess) status = cudaGraphInstantiateWithFlags(&made, graph, 0);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaStreamDestroy(stream);
    }
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (status == cudaSuccess) return made;
    (void)cudaGetLastError();  // it is no error of the caller's: the kernels are started otherwise
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t calls_ = 0;
};
}  // namespace wl
