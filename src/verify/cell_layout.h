// Cell layout: what lies where in a cell, and its memory of this side.
//
// Everything that a cell can write to is shared memory, which this process maps as well: so it can
// be put back to what it was, from outside, before every call. Within the room only.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "verify/cell.h"
#include "verify/cell_code.h"
#include "verify/cell_image.h"
#include "verify/cell_plan.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
struct CellControl;

class CellLayout {
 public:
  static constexpr uint64_t kStack = 1 << 20;  // bytes of each thread's

  CellLayout(std::shared_ptr<SharedMemory> memory, const CellOptions& options)
      : memory_(std::move(memory)), options_(options) {}

  ~CellLayout();
  CellLayout(const CellLayout&) = delete;
  CellLayout& operator=(const CellLayout&) = delete;

  // Draws addresses, places the code, takes memory, and writes what the process will be told.
  Status make();

  uint64_t address_of(const void* ours) const;
  // The input whose copy lies at an address of the cell; empty: none's.
  std::string input_at(uint64_t address) const;

  const CellImage& image() const { return image_; }

  // For the process that becomes the cell: files, and where in the first its plan lies.
  int code_file() const { return code_file_; }

  int memory_file() const { return memory_->file(); }

  uint64_t plan_place() const { return plan_place_; }

  // Whether seccomp's filter came into force, by what the cell left in its page.
  bool is_filtered() const;
  // Whether a line of /proc/…/maps is of a mapping that was planned.
  bool is_planned(const std::string& line) const;

  // Stacks, thread pointers' pages, libm's variables and the control page, as new.
  void renew(uint64_t seed);

  // Which contents of those are put back: see Cell::keep().
  enum Kept { kLeft, kNew };

  void keep();
  void put_back(Kept kept);
  // The round as the threads find it; resource-limit where it has too many launches.
  Result<CellControl*> write_control(const Round& round);

  // Where the list of a step's buffers lies, in the cell, after write_control().
  uint64_t step_buffers(size_t step) const;

  uint64_t control() const { return address_of(control_.get()); }

  // Of the first thread, 0, which only makes the others, and of those: 1, 2, …
  uint64_t thread_pointer(int thread) const;
  uint64_t end_of_stack(int thread) const;
  // The stack pointer with which a thread begins a round: another one after each renewal.
  uint64_t begin_of_stack(int thread) const;

  // Whether kernels are called as any program might: lists of buffers on a stack, registers that
  // hold no argument filled with what nobody knows.
  bool is_elsewhere() const { return options_.elsewhere > 0; }

  // What the registers of vectors hold then.
  uint64_t garbage_seed() const { return garbage_seed_; }

 private:
  // A thread's parts of the shared memory.
  struct ThreadMemory {
    std::shared_ptr<void> stack;  // a page that is not mapped, then the stack
    std::shared_ptr<void> local;  // a page round the thread pointer
  };

  // All of the shared memory that renew() sets, but the control page.
  struct Part {
    char* begin;
    uint64_t bytes;
  };

  // Mapped memory that lies apart from the arena.
  struct Apart {
    SharedMemory::Extent extent;
    uint64_t arena = 0;
  };

  Status place_image();
  std::vector<CellGap> gaps() const;
  char* place_of_lists(char* behind, uint64_t bytes);
  std::vector<Part> renewed() const;
  std::vector<CellSpan> spans() const;
  Status allocate();
  Result<std::shared_ptr<void>> take(uint64_t bytes);
  void map_shared(const void* ours, uint64_t bytes, uint64_t address, bool writable = true);
  void list_regions();
  Status write_code_file();
  void write_entry();
  uint64_t function_of(const CellLaunch& launch) const;

  std::shared_ptr<SharedMemory> memory_;
  CellOptions options_;
  // The cell's address of the shared memory's first byte, but for what lies apart.
  uint64_t arena_ = 0;
  std::vector<Apart> apart_;
  Random garbage_{1};
  uint64_t garbage_seed_ = 0;
  uint64_t drop_ = 0;       // of a stack, from its end to where it is used
  uint64_t kept_drop_ = 0;  // when contents were kept
  CellImage image_;
  std::shared_ptr<void> control_;
  std::vector<ThreadMemory> threads_;
  // Writable pieces of the image, and where they lie in the shared memory.
  std::vector<std::pair<const CellPiece*, std::shared_ptr<void>>> variables_;
  std::array<std::vector<std::string>, 2> kept_;  // contents of renewed()
  std::vector<CellRegion> regions_;
  uint64_t plan_place_ = 0;  // in the code's file
  int code_file_ = -1;
};
}  // namespace warploom::verify
