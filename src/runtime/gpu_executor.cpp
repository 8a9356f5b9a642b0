#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <ratio>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "runtime/type_codes.h"

namespace warploom::runtime {
namespace {
constexpr int kPortableCluster = 8;

constexpr std::array<int, 4> kSwizzles = {0, 32, 64, 128};  // bytes, by the driver's number
constexpr int kPromoteTo128 = 2;

unsigned size(int64_t value) {
  return as_uint32(value);
}

// The driver's form of `map` over the memory at `address`. Source: CUDA Driver API, "Tensor Map
// Object Management".
Result<CUtensorMap> encode_tensor_map(const Driver& cuda, const TensorMapSpec& map, void* address,
                                      const std::string& place) {
  const size_t rank = map.dims.size();
  const std::string dims_text = fmt::format("{}", fmt::join(map.dims, ", "));
  const std::string strides_text = fmt::format("{}", fmt::join(map.strides_bytes, ", "));
  const std::string box_text = fmt::format("{}", fmt::join(map.box, ", "));
  const std::string text =
      fmt::format("{} dims [{}] strides [{}] box [{}] swizzle {}", name_of(map.dtype), dims_text,
                  strides_text, box_text, map.swizzle_bytes);
  const auto swizzle = std::ranges::find(kSwizzles, map.swizzle_bytes) - kSwizzles.begin();
  const bool fits = map.strides_bytes.size() + 1 == rank && map.box.size() == rank;
  if (rank < 1 || rank > 5 || !fits || swizzle == std::ssize(kSwizzles)) {
    Error error{ErrorCode::kPlanInvalid, "a tensor map's fields do not fit each other", place};
    error.expected = "1 to 5 dims, a stride less, as many box sizes, swizzle 0, 32, 64 or 128";
    error.found = text;
    error.remedy = "check the launch list";
    return fail(error);
  }
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 5> strides{};
  std::array<uint32_t, 5> box{};
  std::array<uint32_t, 5> steps{1, 1, 1, 1, 1};
  std::ranges::copy(map.dims, dims.begin());
  std::ranges::copy(map.strides_bytes, strides.begin());
  std::ranges::transform(map.box, box.begin(), size);
  CUtensorMap encoded;
  const CUresult result = cuda.cuTensorMapEncodeTiled(
      &encoded, codes_of(map.dtype).tensor_map, as_uint32(rank), address, dims.data(),
      strides.data(), box.data(), steps.data(), 0, as_int(swizzle), kPromoteTo128, 0);
  auto done = cuda.check(result, "cuTensorMapEncodeTiled");
  if (done) return encoded;
  done.error().place = place;
  done.error().expected =
      "a map TMA takes (base and strides multiples of 16, box at most 256, within the "
      "swizzle)";
  done.error().found = text;
  return fail(std::move(done.error()));
}

CUdeviceptr pointer(const Buffer& buffer, int64_t offset = 0) {
  return reinterpret_cast<CUdeviceptr>(buffer.address()) + static_cast<CUdeviceptr>(offset);
}

int64_t cluster_size(const Kernel& kernel) {
  return kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2];
}

// What a kernel is handed: for each argument the address of its address, or of its tensor map.
struct Parameters {
  std::vector<void*> addresses;
  std::vector<void*> values;
  std::vector<CUtensorMap> maps;
};

// Memory in the middle of a range of addresses, with a page on either side that has none.
class Range {
 public:
  Range(const Driver& cuda, size_t bytes, size_t page) : cuda_(cuda), bytes_(bytes), page_(page) {}

  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  ~Range() {
    if (mapped_) cuda_.cuMemUnmap(begin(), bytes_);
    if (memory_ != 0) cuda_.cuMemRelease(memory_);
    if (address_ != 0) cuda_.cuMemAddressFree(address_, bytes_ + 2 * page_);
  }

  bool map(const CUmemProperties& properties) {
    if (cuda_.cuMemAddressReserve(&address_, bytes_ + 2 * page_, page_, 0, 0) != 0) return false;
    if (cuda_.cuMemCreate(&memory_, bytes_, &properties, 0) != 0) return false;
    mapped_ = cuda_.cuMemMap(begin(), bytes_, 0, memory_, 0) == 0;
    const CUmemAccess access{.place = properties.place};
    return mapped_ && cuda_.cuMemSetAccess(begin(), bytes_, &access, 1) == 0;
  }

  CUdeviceptr begin() const { return address_ + page_; }

 private:
  const Driver& cuda_;
  const size_t bytes_;
  const size_t page_;
  CUdeviceptr address_ = 0;
  CUmemHandle memory_ = 0;
  bool mapped_ = false;
};

class GpuExecutor final : public Executor {
 public:
  explicit GpuExecutor(const Driver& cuda) : Executor(Engine::cuda, {}), cuda_(cuda) {
    quarters_ = 3;
  }

  ~GpuExecutor() override {
    flush_ = {};
    for (CUevent event : events_)
      if (event) cuda_.cuEventDestroy(event);
    if (own_stream_) cuda_.cuStreamDestroy(own_stream_);
    if (retained_) cuda_.cuDevicePrimaryCtxRelease(gpu_);
  }

  Status open() {
    WARPLOOM_CUDA(cuda_, cuDeviceGet, &gpu_, 0);
    WARPLOOM_TRY(info_, gpu_info());
    CUcontext context = nullptr;
    WARPLOOM_CUDA(cuda_, cuDevicePrimaryCtxRetain, &context, gpu_);
    retained_ = true;
    WARPLOOM_CUDA(cuda_, cuCtxSetCurrent, context);
    // No kernel keeps its data in the L2 over the flush between two samples. Where there is no such
    // limit there is nothing to zero.
    (void)cuda_.cuCtxSetLimit(kLimitPersistingL2Bytes, 0);
    // No kernel prints or takes memory: what the driver keeps for that is as small as it can be.
    for (const int limit : {kLimitPrintfBytes, kLimitHeapBytes})
      (void)cuda_.cuCtxSetLimit(limit, 0);
    WARPLOOM_CUDA(cuda_, cuStreamCreate, &own_stream_, kStreamNonBlocking);
    stream_ = own_stream_;
    for (CUevent& event : events_)
      WARPLOOM_CUDA(cuda_, cuEventCreate, &event, 0);
    return ok();
  }

  void* stream() override { return stream_; }

  void use_stream(void* stream) override { stream_ = static_cast<CUstream>(stream); }

  Result<int64_t> free_memory() override {
    size_t free = 0;
    size_t total = 0;
    WARPLOOM_CUDA(cuda_, cuMemGetInfo, &free, &total);
    return as_int64(free);
  }

  Result<Buffer> allocate(int64_t bytes) override {
    constexpr size_t kAlignment = 4096;  // cuMemAlloc alone promises 256
    CUdeviceptr address = 0;
    const size_t wanted = as_size(std::max<int64_t>(bytes, 1)) + kAlignment;
    if (auto done = cuda_.check(cuda_.cuMemAlloc(&address, wanted), "cuMemAlloc"); !done) {
      done.error().expected = fmt::format("{} bytes", bytes);
      return fail(std::move(done.error()));
    }
    const auto release = [this](void* p) { cuda_.cuMemFree(reinterpret_cast<CUdeviceptr>(p)); };
    std::shared_ptr<void> owner(reinterpret_cast<void*>(address), release);
    const CUdeviceptr aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
    return Buffer(std::move(owner), reinterpret_cast<void*>(aligned), bytes);
  }

  // Pages of their own in the middle of addresses that nothing else is mapped to. Source: CUDA
  // Driver API, "Virtual Memory Management".
  Result<Buffer> allocate_apart(int64_t bytes) override {
    CUmemProperties properties{.handles = kMemoryAsFile, .place = {.device = gpu_}};
    size_t page = 0;
    const bool able = cuda_.cuMemGetAllocationGranularity(&page, &properties, 0) == 0 && page > 0;
    if (!able) return allocate(bytes);
    const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + page - 1) / page * page;
    auto range = std::make_shared<Range>(cuda_, size, page);
    if (!range->map(properties)) {  // also where no file may stand for memory
      properties.handles = 0;
      range = std::make_shared<Range>(cuda_, size, page);
      if (!range->map(properties)) return allocate(bytes);
    }
    std::shared_ptr<void> owner(nullptr, [this, range](void*) { (void)synchronize(); });
    return Buffer(std::move(owner), reinterpret_cast<void*>(range->begin()), as_int64(size));
  }

  Result<std::shared_ptr<void>> host_memory(int64_t bytes) override {
    void* address = nullptr;
    WARPLOOM_CUDA(cuda_, cuMemHostAlloc, &address, bytes, 0);
    return std::shared_ptr<void>(address, [this](void* p) { cuda_.cuMemFreeHost(p); });
  }

  // On the stream, and waited for. cuMemcpyHtoD would not do: of memory that is not page-locked it
  // returns when the driver has a copy, and our stream does not wait for the one that is under way.
  // Source: CUDA Driver API, "API synchronization behavior".
  Status upload(const Buffer& to, const void* from, int64_t bytes, int64_t offset) override {
    if (bytes > 0)
      WARPLOOM_CUDA(cuda_, cuMemcpyHtoDAsync, pointer(to, offset), from, bytes, stream_);
    return synchronize();
  }

  Status download(const Buffer& from, void* to, int64_t bytes, int64_t offset) override {
    if (bytes > 0)
      WARPLOOM_CUDA(cuda_, cuMemcpyDtoHAsync, to, pointer(from, offset), bytes, stream_);
    return synchronize();
  }

  Status fill(const Buffer& buffer, uint32_t word) override {
    const CUdeviceptr at = pointer(buffer);
    const auto bytes = static_cast<CUdeviceptr>(buffer.bytes());
    const auto words = bytes / 4;
    if (words > 0) WARPLOOM_CUDA(cuda_, cuMemsetD32Async, at, word, words, stream_);
    for (CUdeviceptr i = words * 4; i < bytes; ++i) {
      const auto byte = static_cast<unsigned char>(word >> 8 * (i % 4));
      WARPLOOM_CUDA(cuda_, cuMemsetD8Async, at + i, byte, 1, stream_);
    }
    return ok();
  }

  Status forget_lines() override {
    // Where there is no such thing, nothing is kept.
    (void)cuda_.cuCtxResetPersistingL2Cache();
    return ok();
  }

  Result<LoadedKernel> load_kernel(const Kernel& kernel, const std::string& image) override {
    CUmodule raw = nullptr;
    WARPLOOM_CUDA(cuda_, cuModuleLoad, &raw, image.c_str());
    const std::shared_ptr<CUmod_st> module(raw, [this](CUmodule done) {
      (void)synchronize();
      cuda_.cuModuleUnload(done);
    });
    CUfunction function = nullptr;
    WARPLOOM_CUDA(cuda_, cuModuleGetFunction, &function, raw, kernel.name.c_str());
    if (kernel.shared_bytes > info_.shared_bytes) {
      Error error{ErrorCode::kResourceLimit};
      error.message = "a kernel needs more shared memory than a block can have";
      error.place = kernel.name;
      error.expected = fmt::format("at most {} bytes", info_.shared_bytes);
      error.found = fmt::format("{} bytes", kernel.shared_bytes);
      error.remedy = "take fewer stages or a smaller tile";
      return fail(error);
    }
    const int shared_bytes = as_int(kernel.shared_bytes);
    WARPLOOM_CUDA(cuda_, cuFuncSetAttribute, function, kFunctionMaxDynamicShared, shared_bytes);
    if (cluster_size(kernel) > kPortableCluster)
      WARPLOOM_CUDA(cuda_, cuFuncSetAttribute, function, kFunctionNonPortableCluster, 1);
    return [this, &kernel, module, function](const std::vector<void*>& addresses) -> Result<Call> {
      WARPLOOM_TRY(const auto made, parameters_of(kernel, addresses));
      return
          [this, &kernel, function, made] { return launch(kernel, function, made->values.data()); };
    };
  }

  Status synchronize() override {
    return cuda_.check(cuda_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  // The events' clock. The host's can only tell what is far off: it also counts launches, and what
  // the stream held before.
  Result<double> time_us(const Call& work, int times) override {
    const auto start = std::chrono::steady_clock::now();
    WARPLOOM_CUDA(cuda_, cuEventRecord, events_[0], stream_);
    for (int i = 0; i < times; ++i)
      WARPLOOM_CHECK(work());
    WARPLOOM_CUDA(cuda_, cuEventRecord, events_[1], stream_);
    WARPLOOM_CUDA(cuda_, cuCtxSynchronize);  // of the whole device, whatever stream work was put on
    float milliseconds = 0;
    WARPLOOM_CUDA(cuda_, cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
    // us
    constexpr double kBefore = 5000;
    constexpr double kGrain = 10;
    const auto end = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::micro> outside = end - start;
    const double inside = as_double(milliseconds) * 1000.0;
    const bool not_longer = inside <= 1.02 * outside.count() + kGrain;
    const bool not_shorter = outside.count() <= 2 * inside + kBefore;
    ++samples_;
    if (not_longer && not_shorter) ++agreeing_;
    return inside / times;
  }

  Result<Call> record(const Call& work) override {
    WARPLOOM_CUDA(cuda_, cuStreamBeginCapture, stream_, kCaptureThreadLocal);
    const Status worked = work();
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    Status made = cuda_.check(cuda_.cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    if (worked && made)
      made = cuda_.check(cuda_.cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    if (graph) cuda_.cuGraphDestroy(graph);
    WARPLOOM_CHECK(worked);
    WARPLOOM_CHECK(made);
    const std::shared_ptr<CUgraphExec_st> kept(executable, [this](CUgraphExec done) {
      cuda_.cuStreamSynchronize(stream_);
      cuda_.cuGraphExecDestroy(done);
    });
    return [this, kept] {
      return cuda_.check(cuda_.cuGraphLaunch(kept.get(), stream_), "cuGraphLaunch");
    };
  }

 private:
  Result<std::shared_ptr<Parameters>> parameters_of(const Kernel& kernel,
                                                    const std::vector<void*>& addresses) const {
    const size_t count = addresses.size();
    auto made = std::make_shared<Parameters>();
    made->addresses = addresses;
    made->values.resize(count);
    made->maps.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const Argument& argument = kernel.args[i];
      made->values[i] = &made->addresses[i];
      if (!argument.tensor_map) continue;
      const std::string place = kernel.name + ", map of " + argument.buffer;
      WARPLOOM_TRY(made->maps[i], encode_tensor_map(cuda_, argument.map, addresses[i], place));
      made->values[i] = &made->maps[i];
    }
    return made;
  }

  Status launch(const Kernel& kernel, CUfunction function, void** parameters) {
    std::array<CUlaunchAttribute, 3> attributes;
    CUlaunchConfig config{
        {}, {size(kernel.threads), 1, 1}, size(kernel.shared_bytes), stream_, attributes.data()};
    std::ranges::transform(kernel.grid, config.grid, size);
    const auto attribute_of = [&](int id) -> auto& {
      CUlaunchAttribute& attribute = attributes[config.attribute_count++];
      attribute.id = id;
      return attribute.value;
    };
    if (cluster_size(kernel) > 1) {
      auto& cluster = attribute_of(kLaunchClusterDimension).cluster;
      cluster.x = size(kernel.cluster[0]);
      cluster.y = size(kernel.cluster[1]);
      cluster.z = size(kernel.cluster[2]);
    }
    if (kernel.programmatic_launch) attribute_of(kLaunchProgrammaticSerialization).enabled = 1;
    if (kernel.cooperative) attribute_of(kLaunchCooperative).enabled = 1;
    return cuda_.check(cuda_.cuLaunchKernelEx(&config, function, parameters, nullptr),
                       "cuLaunchKernelEx");
  }

  const Driver& cuda_;
  CUdevice gpu_ = 0;
  bool retained_ = false;
  CUstream own_stream_ = nullptr;
  CUstream stream_ = nullptr;
  std::array<CUevent, 2> events_{};
};
}  // namespace

namespace {
std::string place_of(const Driver& cuda) {
  const auto domain = cuda.attribute(kAttributePciDomain);
  const auto bus = cuda.attribute(kAttributePciBus);
  const auto device = cuda.attribute(kAttributePciDevice);
  if (!domain || !bus || !device) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}", *domain, *bus, *device);
}
}  // namespace

Result<DeviceInfo> gpu_info() {
  WARPLOOM_TRY(const Driver* cuda, Driver::get());
  DeviceInfo info;
  CUdevice gpu = 0;
  std::array<char, 256> text{};
  size_t bytes = 0;
  WARPLOOM_CUDA(*cuda, cuDeviceGet, &gpu, 0);
  WARPLOOM_CUDA(*cuda, cuDeviceGetName, text.data(), as_int(text.size()), gpu);
  WARPLOOM_CUDA(*cuda, cuDeviceTotalMem, &bytes, gpu);
  info.name = text.data();
  info.memory_bytes = as_int64(bytes);
  WARPLOOM_TRY(info.arch, cuda->arch());
  WARPLOOM_TRY(info.num_sms, cuda->attribute(kAttributeProcessors));
  WARPLOOM_TRY(info.cache_bytes, cuda->attribute(kAttributeL2Bytes));
  WARPLOOM_TRY(info.shared_bytes, cuda->attribute(kAttributeSharedBytesOptin));
  WARPLOOM_TRY(info.threads_per_sm, cuda->attribute(kAttributeThreadsPerProcessor));
  // Newer drivers may refuse these: then they are unknown.
  info.ghz = 1e-6 * cuda->attribute(kAttributeClockKhz).value_or(0);
  info.memory_ghz = 1e-6 * cuda->attribute(kAttributeMemoryClockKhz).value_or(0);
  info.bus_bits = cuda->attribute(kAttributeBusBits).value_or(0);
  info.place = place_of(*cuda);
  info.driver = cuda->version();
  return info;
}

Result<std::unique_ptr<Executor>> open_gpu() {
  WARPLOOM_TRY(const Driver* cuda, Driver::get());
  auto device = std::make_unique<GpuExecutor>(*cuda);
  WARPLOOM_CHECK(device->open());
  return device;
}
}  // namespace warploom::runtime
