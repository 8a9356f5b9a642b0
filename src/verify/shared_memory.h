// SharedMemory: memory of which other processes may map parts.
//
//   auto memory = SharedMemory::make(bytes);  // address space; pages when touched
//   std::shared_ptr<void> buffer = memory->allocate(100);  // whole pages, until it goes
//   memory->offset(buffer.get());  // where it lies in memory->file()
//
// Between two allocations lies a page that belongs to none. The addresses of what is given back
// wait for another buffer as large. Small ones have new pages each time, zeros. Large ones keep
// theirs, up to an eighth of the machine's memory in all, and so what was written there: making
// pages is dear (a virtual machine's at 0.4 GB/s where the host has to find them first), and
// whoever hands out buffers to a candidate writes all of their pages before every call.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace warploom::verify {
class SharedMemory {
 public:
  // Null where there is none.
  static std::shared_ptr<SharedMemory> make(int64_t bytes);
  ~SharedMemory();
  std::shared_ptr<void> allocate(int64_t bytes);  // null when it is used up

  char* base() const { return base_; }

  int64_t offset(const void* address) const { return static_cast<const char*>(address) - base_; }

  // The allocation in which an address lies: its offset and its whole pages; 0 bytes: none.
  struct Extent {
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  Extent extent_of(const void* address) const;

  int file() const { return file_; }

  // The whole of another process's, at a multiple of a huge page; null where that fails.
  static char* map(int file);

 private:
  void give_back(int64_t at, int64_t bytes);

  int file_ = -1;
  char* base_ = nullptr;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
  std::map<int64_t, int64_t> extents_;            // of allocations: bytes, by their beginnings
  std::map<int64_t, std::vector<int64_t>> free_;  // beginnings, by bytes
  std::set<int64_t> kept_;                        // of these those that have pages
  int64_t kept_bytes_ = 0;
  int64_t most_kept_ = 0;
};
}  // namespace warploom::verify
