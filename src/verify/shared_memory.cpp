#include "verify/shared_memory.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/parallel.h"

namespace warploom::verify {
namespace {
constexpr int64_t kPage = 4096;
constexpr int64_t kHuge = int64_t{2} << 20;
#if !defined(MADV_COLLAPSE)
// Linux 6.1: huge pages now, whatever the setting for shared memory.
constexpr int MADV_COLLAPSE = 25;
#endif

// Huge pages, by all cores. The kernel makes none of a range that holds no page at all.
void collapse(char* begin, int64_t bytes) {
  graph::parallel_for(bytes / kHuge, 0, [begin](int64_t page) {
    char* const at = begin + page * kHuge;
    *at = 0;
    ::madvise(at, kHuge, MADV_COLLAPSE);
  });
}

int64_t memory_of_machine() {
  return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

// The whole of a file, at a multiple of a huge page; null where that fails.
char* map_whole(int file, int64_t bytes) {
  const auto size = as_size(bytes);
  constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const room = ::mmap(nullptr, size + kHuge, PROT_NONE, kReserved, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const base =
      reinterpret_cast<char*>(round_up(reinterpret_cast<std::intptr_t>(room), kHuge));
  constexpr int kOver = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  void* const made = ::mmap(base, size, PROT_READ | PROT_WRITE, kOver, file, 0);
  return made == MAP_FAILED ? nullptr : base;
}
}  // namespace

char* SharedMemory::map(int file) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return nullptr;
  return map_whole(file, facts.st_size);
}

std::shared_ptr<SharedMemory> SharedMemory::make(int64_t bytes) {
  auto made = std::make_shared<SharedMemory>();
  made->bytes_ = round_up(bytes, kHuge);
  made->file_ = ::memfd_create("warploom", MFD_CLOEXEC);
  if (made->file_ < 0 || ::ftruncate(made->file_, made->bytes_) != 0) return nullptr;
  made->most_kept_ = memory_of_machine() / 8;
  made->base_ = map_whole(made->file_, made->bytes_);
  return made->base_ ? made : nullptr;
}

SharedMemory::~SharedMemory() {
  if (base_) ::munmap(base_, as_size(bytes_));
  if (file_ >= 0) ::close(file_);
}

std::shared_ptr<void> SharedMemory::allocate(int64_t bytes) {
  const int64_t pages = round_up(std::max<int64_t>(bytes, 1), kPage);
  const int64_t alignment = pages >= 2 * kHuge ? kHuge : kPage;
  const int64_t wanted = round_up(pages, alignment);
  int64_t at = round_up(used_, alignment);
  if (auto& free = free_[wanted]; !free.empty()) {
    at = free.back();
    free.pop_back();
  } else if (at + wanted <= bytes_) {
    used_ = at + wanted + kPage;  // no two lie side by side
  } else {
    return nullptr;
  }
  if (kept_.erase(at) != 0)
    kept_bytes_ -= wanted;
  else if (alignment == kHuge)
    collapse(base_ + at, wanted);
  extents_[at] = wanted;
  return {base_ + at, [this, at, wanted](void*) { give_back(at, wanted); }};
}

void SharedMemory::give_back(int64_t at, int64_t bytes) {
  const bool is_large = bytes >= 2 * kHuge;
  if (is_large && kept_bytes_ + bytes <= most_kept_) {
    kept_.insert(at);
    kept_bytes_ += bytes;
  } else {
    ::madvise(base_ + at, as_size(bytes), MADV_REMOVE);
  }
  extents_.erase(at);
  free_[bytes].push_back(at);
}

SharedMemory::Extent SharedMemory::extent_of(const void* address) const {
  const int64_t place = offset(address);
  const auto behind = extents_.upper_bound(place);
  if (behind == extents_.begin()) return {};
  const auto [begin, bytes] = *std::prev(behind);
  return place < begin + bytes ? Extent{begin, bytes} : Extent{};
}
}  // namespace warploom::verify
