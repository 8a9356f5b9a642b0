// Cell plan: what a process is told that is to become a cell, in the file that holds its code.
// Plain data, since it is read by a process that is about to have no library. Within the room only.
#pragma once
#include <cstdint>

namespace warploom::verify {
// Whole pages of one of the two files, at an address of the cell.
struct CellRegion {
  uint64_t address;
  uint64_t bytes;
  uint64_t offset;
  int32_t of_code;  // 1: of the file that holds the code, 0: of the shared memory
  int32_t rights;   // PROT_READ and its kin
};

// At a place of the code's file, regions behind it.
struct CellPlan {
  uint64_t region_count;
  uint64_t enter;  // addresses of the cell: the function, its argument, the end of a stack
  uint64_t entry;
  uint64_t stack;
};

// Why a process did not become a cell: its exit status.
enum CellFault : int {
  kCellUsage = 90,
  kCellNoPlan = 91,
  kCellNoRoom = 92,     // a region could not be mapped where it belongs
  kCellNotTraced = 93,  // the kernel lets no process be held
};
}  // namespace warploom::verify
