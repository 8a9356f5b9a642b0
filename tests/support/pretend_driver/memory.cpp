// Device memory: the host's, of which no process may have more than the card is said to have.
#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include "pretend.h"
#include "runtime/driver.h"

using namespace warploom::runtime;

namespace {
constexpr CUresult kOutOfMemory = 2;
constexpr CUresult kInvalidValue = 1;
constexpr size_t kPage = size_t{2} << 20;

struct Memory {
  std::mutex mutex;
  size_t used = 0;
  std::map<CUdeviceptr, size_t> allocated;
  std::map<CUmemHandle, size_t> files;  // of what cuMemCreate made
  std::map<CUdeviceptr, CUmemHandle> mapped;
};

Memory& memory() {
  static Memory* const one = new Memory;
  return *one;
}

size_t total_bytes() {
  return static_cast<size_t>(pretend::settings().memory_mb) << 20;
}

// With the lock held.
bool take(size_t bytes) {
  if (memory().used + bytes > total_bytes()) return false;
  memory().used += bytes;
  return true;
}

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}
}  // namespace

extern "C" {
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = total_bytes();
  return pretend::answer();
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const std::lock_guard lock(memory().mutex);
  *total = total_bytes();
  *free = *total - memory().used;
  return pretend::answer();
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  if (pretend::is_lost()) return pretend::kUnknown;
  const std::lock_guard lock(memory().mutex);
  if (!take(bytes)) return kOutOfMemory;
  *address = reinterpret_cast<CUdeviceptr>(std::calloc(1, bytes));
  memory().allocated[*address] = bytes;
  return 0;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().allocated.find(address);
  if (found == memory().allocated.end()) return kInvalidValue;
  memory().used -= found->second;
  memory().allocated.erase(found);
  std::free(pointer(address));
  return 0;
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemProperties*, int) {
  *bytes = kPage;
  return pretend::answer();
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr,
                             unsigned long long) {
  void* const made =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  *address = reinterpret_cast<CUdeviceptr>(made);
  return pretend::answer();
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  ::munmap(pointer(address), bytes);
  return 0;
}

CUresult cuMemCreate(CUmemHandle* handle, size_t bytes, const CUmemProperties*,
                     unsigned long long) {
  if (pretend::is_lost()) return pretend::kUnknown;
  const std::lock_guard lock(memory().mutex);
  if (!take(bytes)) return kOutOfMemory;
  const int file = ::memfd_create("pretended", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  *handle = static_cast<CUmemHandle>(file);
  memory().files[*handle] = bytes;
  return 0;
}

CUresult cuMemRelease(CUmemHandle handle) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().files.find(handle);
  if (found != memory().files.end()) {
    memory().used -= found->second;
    memory().files.erase(found);
  }
  ::close(static_cast<int>(handle));
  return 0;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemHandle handle,
                  unsigned long long) {
  const std::lock_guard lock(memory().mutex);
  void* const made = ::mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                            static_cast<int>(handle), 0);
  if (made == MAP_FAILED) return kOutOfMemory;
  memory().mapped[address] = handle;
  return pretend::answer();
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().mapped.erase(address);
  const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return ::mmap(pointer(address), bytes, PROT_NONE, how, -1, 0) == MAP_FAILED ? kOutOfMemory : 0;
}

CUresult cuMemRetainAllocationHandle(CUmemHandle* handle, void* address) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().mapped.find(reinterpret_cast<CUdeviceptr>(address));
  if (found == memory().mapped.end()) return kInvalidValue;
  *handle = static_cast<CUmemHandle>(::dup(static_cast<int>(found->second)));
  return pretend::answer();
}

CUresult cuMemExportToShareableHandle(void* file, CUmemHandle handle, int, unsigned long long) {
  *static_cast<int*>(file) = ::dup(static_cast<int>(handle));
  return pretend::answer();
}

CUresult cuMemImportFromShareableHandle(CUmemHandle* handle, void* file, int) {
  *handle = static_cast<CUmemHandle>(::dup(static_cast<int>(reinterpret_cast<intptr_t>(file))));
  return pretend::answer();
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  return pretend::answer();
}

CUresult cuMemFreeHost(void* address) {
  std::free(address);
  return 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  std::memcpy(pointer(to), from, bytes);
  return pretend::answer();
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  std::memcpy(to, pointer(from), bytes);
  return pretend::answer();
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream) {
  std::memset(pointer(address), value, count);
  return pretend::answer();
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream) {
  auto* const words = static_cast<unsigned*>(pointer(address));
  for (size_t i = 0; i < count; ++i)
    words[i] = value;
  return pretend::answer();
}
}
