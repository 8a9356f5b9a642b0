// Cell: a process that runs a candidate's kernels and has no hands.
//
// What it holds is what it may touch: the buffers that are bound, the candidate's code and a copy
// of the mathematics it calls (cell_image.h), a stack and scratch for each thread, and the page in
// which a round is described (cell_code.h). There is no C library in it, no descriptor, no
// environment, and no system call that it could make: the first one ends it (seccomp). Its time
// stamp counter is off where the kernel can switch it off.
//
//   WARPLOOM_TRY(auto cell, Cell::start(memory, {.functions = …, .mapped = …, .threads = 2}));
//   cell->renew(seed);                       // stacks, variables of libm, the page: as at the
//   start WARPLOOM_TRY(const double us, cell->run({.steps = {…}, .threads = 2}));
//
// Its threads stand still but in a round, held by ptrace: their registers are set from outside
// before it, and it is over when the kernel says that all of them stand still again. The time is
// this process's clock's, from when they are let go to then. What letting go and standing still
// take without any work is what a round of the kernel `nothing` takes, which who measures takes
// off.
//
// Where threads need all cores, this one sleeps meanwhile; else it watches them from a core of its
// own, which makes the time known better.
//
// Errors: candidate-forbidden (a system call; a function that is not there), candidate-crashed,
// candidate-hung; sandbox-missing where the kernel lets no process be held so. After an error of a
// candidate the cell is gone. Source: ptrace(2), seccomp(2), clone(2). Within the room only.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "base/error.h"
#include "verify/cell_image.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
inline constexpr const char* kCellCommand = "__cell";

struct CellOptions {
  std::vector<CellFunction> functions;
  // Extents of the shared memory, whole pages, that the cell maps: all that is bound.
  std::vector<SharedMemory::Extent> mapped;
  int threads = 1;    // at most the cores that this process may use
  uint64_t seed = 1;  // of where in its address space things lie
};

// A launch: all of its blocks, or some of them.
struct CellLaunch {
  // Of the options' functions; below 0: one of ours.
  static constexpr int kNothing = -1;
  static constexpr int kFill = -2;  // buffers: an address, bytes, a 32-bit word
  int function = kNothing;
  std::vector<uint64_t> buffers;  // addresses in the cell
  int64_t blocks = 1;
  // Blocks (first + i * stride) mod blocks, for i in [begin, end).
  int64_t first = 0;
  int64_t stride = 1;
  int64_t begin = 0;
  int64_t end = 1;
};

struct Round {
  std::vector<CellLaunch> launches;  // one after the other
  int64_t times = 1;                 // all of them so often, without a stop between
  int threads = 1;
  std::vector<uint64_t> scratch;  // of each thread, an address in the cell; empty: none
  double limit_ms = 10'000;       // after which it counts as hung
};

class Cell {
 public:
  static Result<std::unique_ptr<Cell>> start(std::shared_ptr<SharedMemory> memory,
                                             const CellOptions& options);
  virtual ~Cell() = default;

  // The cell's address of an address of ours within what it maps.
  virtual uint64_t address_of(const void* ours) const = 0;
  // All that threads could have written to but buffers and scratch, as new; seeds differ.
  virtual void renew(uint64_t seed) = 0;
  // Of the same, what is there now: the other renewals put it back, or, by the same work, what was
  // there when it was last as new.
  virtual void keep() = 0;
  virtual void renew_as_left() = 0;
  virtual void renew_as_new() = 0;
  // Microseconds from when the threads were let go to when all stood still.
  virtual Result<double> run(const Round& round) = 0;
  // What holds it, in words: "no system calls (seccomp), no descriptors, …".
  virtual const std::string& held() const = 0;
  virtual int process() const = 0;
  // The core of a round's first thread: who fills its memory there leaves it in that core's caches,
  // as a program that calls the kernel would.
  virtual int home(int threads) const = 0;
  // Whether a round of so many threads leaves the thread that calls run() a core of its own: then
  // their times are known best.
  virtual bool leaves_a_core(int threads) const = 0;
};

// The hidden subcommand: true when `argv` is one, and then `*status` is what the program should
// exit with; but for faults of the set-up it never comes back.
bool cell_main(int argc, char** argv, int* status);
}  // namespace warploom::verify
