// Executor: buffers, kernels and clocks of one device, the GPU through the CUDA driver or this
// machine's cores.
//
//   WARPLOOM_TRY(Binary binary, compile(list));                       // compile.h
//   WARPLOOM_TRY(auto device, Executor::open(Engine::cuda));
//   WARPLOOM_TRY(Buffer a, device->allocate(m * k * 2));
//   WARPLOOM_CHECK(device->upload(a, host.data(), m * k * 2));
//   WARPLOOM_TRY(Runnable gemm, device->load(list, binary));
//   WARPLOOM_TRY(const Call call, gemm.bind({{"A", a}, {"B", b}, {"C", c}}));   // inputs and
//   outputs; workspaces are the call's WARPLOOM_CHECK(call());
//   WARPLOOM_CHECK(device->synchronize());
//
// Everything of an Executor is called from one thread at a time. On the GPU launches are
// asynchronous on one stream; on the CPU they return when they are done. An Executor outlives its
// buffers and whatever it loaded.
//
// Errors: no-driver, no-gpu, gpu-too-old when it is opened; out-of-memory; candidate-crashed where
// a kernel faulted (on the GPU the context is then lost: every later call fails, and the process
// should be replaced); cuda-call for the rest.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include "runtime/compile.h"

namespace warploom::runtime {
// A piece of device memory, shared by all its copies and slices. Freed with the last of them.
class Buffer {
 public:
  Buffer() = default;

  Buffer(std::shared_ptr<void> owner, void* address, int64_t bytes)
      : owner_(std::move(owner)), address_(address), bytes_(bytes) {}

  void* address() const { return address_; }  // of the device; on the CPU an ordinary pointer

  int64_t bytes() const { return bytes_; }

  explicit operator bool() const { return address_ != nullptr; }

  // Bytes [begin, begin + length): to put guard bytes round a tensor.
  Buffer slice(int64_t begin, int64_t length) const {
    return {owner_, static_cast<char*>(address_) + begin, length};
  }

 private:
  std::shared_ptr<void> owner_;
  void* address_ = nullptr;
  int64_t bytes_ = 0;
};

using Bindings = std::map<std::string, Buffer>;

// What a buffer holds that no kernel has written yet: a quiet NaN in every floating-point type, so
// that who reads it is seen, and an element that still holds it was not written.
inline constexpr uint32_t kPoison = 0xffedffedu;

// Launches that are ready to be made, again and again, on buffers which the call keeps.
using Call = std::function<Status()>;
// All of them, one after the other.
Call in_order(std::vector<Call> calls);

// Something that computes outputs from inputs: loaded kernels, or a vendor library's reference
// (vendor.h). It may go before its calls. Short kernels are timed by calls on several sets of
// buffers, so that none finds its own data in the caches.
struct Runnable {
  using Bind = std::function<Result<Call>(const Bindings& buffers)>;
  std::string name;
  // What runs in each call. Workspaces that are not bound belong to the call, and are prepared at
  // once; those that are bound must have been prepared by then.
  Bind bind;
  // What runs once before them, on the same workspaces, where there is such a thing
  // (codegen/prepare.h); it names constants and workspaces alone.
  Bind prepare = nullptr;
};

// A kernel of a launch list, which the calls keep: the launch on arguments at these addresses.
using LoadedKernel = std::function<Result<Call>(const std::vector<void*>& addresses)>;

struct DeviceInfo {
  std::string name;  // "NVIDIA H200", "Intel(R) Xeon(R) …"
  std::string arch;  // "sm_90a", "sm_80"; "x86-64-v4", "x86-64-v3"
  int num_sms = 1;   // multiprocessors, or the cores this process may use
  int64_t memory_bytes = 0;
  int64_t cache_bytes = 0;   // GPU: L2; CPU: last level
  int64_t shared_bytes = 0;  // GPU: most shared memory a block can have
  int threads_per_sm = 0;    // GPU: most that a multiprocessor can hold
  // GPU: the highest clocks, in GHz, and the width of the memory's bus; 0: the driver does not say
  double ghz = 0;
  double memory_ghz = 0;
  int bus_bits = 0;
  std::string place;   // GPU: on the PCI bus, "0000:1b:00"; empty: the driver does not say
  std::string driver;  // "580.65 / CUDA 13.0"; the C++ compiler is not part of it
};

class Executor {
 public:
  // The first GPU that CUDA_VISIBLE_DEVICES leaves; on the CPU a thread for each core.
  static Result<std::unique_ptr<Executor>> open(Engine engine);
  static Result<DeviceInfo> describe(
      Engine engine);  // without what opening costs: a context on a GPU, threads
  virtual ~Executor() = default;

  Engine engine() const { return engine_; }

  const DeviceInfo& info() const { return info_; }

  virtual Result<int64_t> free_memory() = 0;  // bytes

  // At least `bytes` (0 gives a buffer of 0 bytes at a valid address), aligned to 4096, contents
  // undefined.
  virtual Result<Buffer> allocate(int64_t bytes) = 0;

  // At least `bytes`, aligned to 4096, with nothing of the process beside them where the device can
  // do that: an access before or behind the buffer faults.
  virtual Result<Buffer> allocate_apart(int64_t bytes) { return allocate(bytes); }

  // Host memory that the device copies to and from at its full rate.
  virtual Result<std::shared_ptr<void>> host_memory(int64_t bytes);
  // Copies between host and device, here of memory that is the host's; both wait for the launches
  // before them.
  virtual Status upload(const Buffer& to, const void* from, int64_t bytes, int64_t offset = 0);
  virtual Status download(const Buffer& from, void* to, int64_t bytes, int64_t offset = 0);
  // Repeats the 32-bit word over the buffer, which begins at a multiple of 4, to its last byte, in
  // launch order.
  virtual Status fill(const Buffer& buffer, uint32_t word) = 0;

  // Takes images of compile(list); `list` is copied. Fails with resource-limit where the device
  // cannot hold a kernel.
  Result<Runnable> load(const LaunchList& list, const Binary& binary);

  // Adds those workspaces of a list that are not bound, poisoned, as its memory plan lays them out
  // in one buffer.
  Status add_workspaces(const LaunchList& list, Bindings& buffers);

  virtual Status synchronize() = 0;
  // The time from before `work`'s first launch to after its last one, in microseconds: the mean of
  // `times` runs, one after the other.
  virtual Result<double> time_us(const Call& work, int times) = 0;
  // Whether a second clock bore out enough of what time_us() said since this was asked last; else
  // candidate-clock.
  Status clocks_agree();

  // A series of launches to be made again and again: a CUDA graph, or on the CPU the calls
  // themselves.
  virtual Result<Call> record(const Call& work) { return work; }

  // Puts other data into the caches, in launch order, by writing twice as much as they hold (at
  // most 256 MiB).
  Status flush_caches();

  // Lines that a kernel asked the GPU's L2 cache to keep are as others again.
  virtual Status forget_lines() { return ok(); }

  virtual void* stream() { return nullptr; }  // CUstream, for libraries

  virtual void use_stream(void*) {
  }  // a CUstream of the caller's for all that follows; null: the default stream

 protected:
  Executor(Engine engine, DeviceInfo info) : engine_(engine), info_(std::move(info)) {}

  virtual Result<LoadedKernel> load_kernel(const Kernel& kernel, const std::string& image) = 0;
  // Some of a list's loaded kernels, by their numbers, as one call.
  virtual Result<Call> bound(const std::shared_ptr<const LaunchList>& list,
                             const std::vector<LoadedKernel>& kernels,
                             const std::vector<size_t>& numbers, const Bindings& buffers);
  Engine engine_;
  DeviceInfo info_;
  Buffer flush_;
  uint32_t flush_word_ = 0;
  int samples_ = 0;
  int agreeing_ = 0;  // with a second clock: so many times, and how often it said the same
  int quarters_ = 1;  // of the samples that must
};

// What the two executors, those of other rooms and the references share.

// The buffer called `spec.name`, or plan-invalid where there is none or it is too small.
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec);

// A buffer of the host's memory, which `allocate` gives; out-of-memory where it gives none or
// `room` is less.
Result<Buffer> host_buffer(int64_t bytes, int64_t room,
                           const std::function<std::shared_ptr<void>(int64_t)>& allocate);

// The function of a compiled CPU kernel, which stays loaded: a closed image would pull the code
// from under others. compile-failed.
Result<CpuKernel> cpu_kernel(const std::string& image, const std::string& name);

// What stands behind `field` on its line of a /proc file, or "".
std::string proc_value(const char* path, const char* field);
Result<std::unique_ptr<Executor>> open_gpu();
Result<std::unique_ptr<Executor>> open_cpu();
Result<DeviceInfo> gpu_info();
Result<DeviceInfo> cpu_info();
}  // namespace warploom::runtime
