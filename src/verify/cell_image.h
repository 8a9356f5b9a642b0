// Cell image: the code of a cell (cell.h), put together outside of it.
//
// A loader of our own in place of the system's: it takes what check_image() let through, puts its
// segments at addresses of the cell, and fills in what they refer to: kernels of the list, the
// mathematics of this machine's own libm (a copy of it, relocated as well), our mem* functions
// (cell_code.h), and for every other name a trap. No code runs for that but libm's own choice of
// its functions for this processor, here. So the C library is nowhere in a cell.
//
//   WARPLOOM_TRY(const CellImage image, CellImage::make({.base = …}, {{"/…/5f.image", "gemm"}}));
//   image.kernels[0]    // its address in the cell
//   image.pieces        // what lies where: code, constants, and libm's variables, which are put
//                       // back to `bytes` before every call
//
// Errors: candidate-forbidden where an image is not as check_image() demands, compile-failed where
// it has no such kernel. Formats: System V ABI; relocations by the x86-64 psABI. Within the room
// only.
#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
// Whole pages of the cell.
struct CellPiece {
  uint64_t address = 0;
  std::string bytes;
  bool executable = false;
  bool writable = false;
  bool of_candidate = false;
};

// A section of a candidate's instructions, which begin with its first byte.
struct CellCodeSection {
  uint64_t address = 0;
  std::string bytes;
};

struct CellFunction {
  std::string image;  // the bytes of a shared object
  std::string name;
};

// Where an image's parts are to begin.
struct CellPlaces {
  uint64_t base = 0;                // the first; the others behind it,
  std::function<uint64_t()> apart;  // or, where there is this, each where it says
  uint64_t own_code = 0;            // bytes in front of cell_code() in its first page
};

struct CellImage {
  // The thread pointer of every thread points here within its own page: below it lie the C
  // library's errno, at it the address of itself, above it what a stack protector reads.
  static constexpr int64_t kThreadPointer = 2048;
  static constexpr int64_t kCanary = 0x28;  // what that reads

  std::vector<CellPiece> pieces;  // in the order of their addresses
  std::vector<uint64_t> kernels;  // of each function asked for
  std::vector<uint64_t> bases;    // likewise, what its image's own addresses are added to
  std::set<uint64_t> functions;   // that candidates were given: mathematics, copies, the trap
  std::vector<CellCodeSection> sections;
  uint64_t code = 0;  // where cell_code() begins, within a page
  uint64_t end = 0;   // behind the last piece

  static Result<CellImage> make(const CellPlaces& places,
                                const std::vector<CellFunction>& functions);
};
}  // namespace warploom::verify
