// A buffer whose ends are the ends of pages that can be read, up to 63 bytes of padding, so that a
// kernel that reads on faults. Of the standard library and POSIX alone: programs for other
// processors are made with it too (kernel_driver).
#pragma once
#include <sys/mman.h>
#include <cstddef>
#include <cstring>

namespace warploom::test {
class Guarded {
 public:
  Guarded(const std::byte* from, size_t bytes) : bytes_(bytes) {
    const size_t body = (bytes + 63) / 64 * 64;
    mapped_ = (body + 4095) / 4096 * 4096 + 2 * 4096;
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + 4096, mapped_ - 2 * 4096, PROT_READ | PROT_WRITE);
    std::memset(base_ + 4096, 0xa5, mapped_ - 2 * 4096);
    data_ = base_ + mapped_ - 4096 - body;
    if (bytes > 0) std::memcpy(data_, from, bytes);
  }

  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  ~Guarded() { ::munmap(base_, mapped_); }

  std::byte* data() const { return data_; }

  bool intact() const {  // round the buffer
    for (const std::byte* p = base_ + 4096; p < base_ + mapped_ - 4096; ++p)
      if ((p < data_ || p >= data_ + bytes_) && *p != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
};
}  // namespace warploom::test
