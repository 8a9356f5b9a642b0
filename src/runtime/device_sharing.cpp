#include "runtime/device_sharing.h"
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include "base/error.h"
#include "runtime/driver.h"
#include "runtime/executor.h"

namespace warploom::runtime {
namespace {
// Another process's memory at addresses of this one.
class Mapped {
 public:
  Mapped(const Driver& cuda, size_t bytes) : cuda_(cuda), bytes_(bytes) {}

  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  ~Mapped() {
    (void)cuda_.cuCtxSynchronize();
    if (mapped_) cuda_.cuMemUnmap(address_, bytes_);
    if (memory_ != 0) cuda_.cuMemRelease(memory_);
    if (address_ != 0) cuda_.cuMemAddressFree(address_, bytes_);
  }

  Status map(int file) {
    auto* const named = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
    CUmemAccess access;
    WARPLOOM_CUDA(cuda_, cuDeviceGet, &access.place.device, 0);
    WARPLOOM_CUDA(cuda_, cuMemImportFromShareableHandle, &memory_, named, kMemoryAsFile);
    WARPLOOM_CUDA(cuda_, cuMemAddressReserve, &address_, bytes_, 0, 0, 0);
    WARPLOOM_CUDA(cuda_, cuMemMap, address_, bytes_, 0, memory_, 0);
    mapped_ = true;
    WARPLOOM_CUDA(cuda_, cuMemSetAccess, address_, bytes_, &access, 1);
    return ok();
  }

  void* address() const { return reinterpret_cast<void*>(address_); }

 private:
  const Driver& cuda_;
  size_t bytes_;
  CUdeviceptr address_ = 0;
  CUmemHandle memory_ = 0;
  bool mapped_ = false;
};
}  // namespace

Result<int> share_memory(const Buffer& whole) {
  WARPLOOM_TRY(const Driver* const cuda, Driver::get());
  CUmemHandle memory = 0;
  WARPLOOM_CUDA(*cuda, cuMemRetainAllocationHandle, &memory, whole.address());
  int file = -1;
  const Status made =
      cuda->check(cuda->cuMemExportToShareableHandle(&file, memory, kMemoryAsFile, 0),
                  "cuMemExportToShareableHandle");
  cuda->cuMemRelease(memory);
  WARPLOOM_CHECK(made);
  return file;
}

Result<Buffer> map_memory(int file, int64_t bytes) {
  WARPLOOM_TRY(const Driver* const cuda, Driver::get());
  auto mapped = std::make_shared<Mapped>(*cuda, static_cast<size_t>(bytes));
  WARPLOOM_CHECK(mapped->map(file));
  void* const address = mapped->address();
  return Buffer(std::move(mapped), address, bytes);
}
}  // namespace warploom::runtime
