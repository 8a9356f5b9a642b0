// SharedMemory: memory of which other processes may map parts.
//
//   auto memory = SharedMemory::make(bytes);               // address space; pages as they are
//   touched std::shared_ptr<void> buffer = memory->allocate(100);  // whole pages, given back with
//   its owner memory->offset(buffer.get())                           // where it lies in
//   memory->file()
//
// Between two allocations lies a page that belongs to none. What is given back takes no room, and
// its addresses wait for another buffer as large. Within the room only.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
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
  int file_ = -1;
  char* base_ = nullptr;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
  std::map<int64_t, int64_t> extents_;            // of allocations: bytes, by their beginnings
  std::map<int64_t, std::vector<int64_t>> free_;  // beginnings, by bytes
};
}  // namespace warploom::verify
