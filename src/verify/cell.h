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
// Errors: candidate-forbidden (a system call; a function that is not there; registers that are not
// given back), candidate-wrote-input, candidate-crashed, candidate-hung; sandbox-missing where the
// kernel lets no process be held so. After an error of a candidate the cell is gone. Source:
// ptrace(2), seccomp(2), clone(2). Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>
#include "base/error.h"
#include "verify/cell_image.h"
#include "verify/cores.h"
#include "verify/read_watch.h"
#include "verify/shared_memory.h"
#include "verify/traced.h"

namespace warploom::verify {
inline constexpr const char* kCellCommand = "__cell";

// An extent of the shared memory, whole pages, that the cell maps.
struct CellMapped {
  SharedMemory::Extent extent;
  std::string input = "";  // whose copy lies there, which the cell can read alone; empty: none's
};

struct CellOptions {
  std::vector<CellFunction> functions;
  std::vector<CellMapped> mapped;  // all that is bound
  int threads = 1;                 // at most the cores that this process may use
  uint64_t seed = 1;               // of where in its address space things lie
  // The number of a place where programs have their memory, and not where cells have it otherwise;
  // in vain where that is taken. 0: as otherwise.
  int elsewhere = 0;
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

// What was seen of a candidate's reads.
struct ReadReport {
  std::optional<ReadFinding> finding;  // what it would have read that is not its own
  size_t watched = 0;                  // instructions that read, or go to a computed address
  size_t seen = 0;  // of them, those that were carried out; 0: none were looked at
};

class CellLayout;
struct CellControl;
class Watch;

class Cell {
 public:
  static Result<std::unique_ptr<Cell>> start(std::shared_ptr<SharedMemory> memory,
                                             const CellOptions& options);
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  // The cell's address of an address of ours within what it maps.
  uint64_t address_of(const void* ours) const;
  // All that threads could have written to but buffers and scratch, as new; seeds differ.
  void renew(uint64_t seed);
  // Of the same, and of the registers of vectors and floating point, what is there now: the other
  // renewals put it back, or, by the same work, what was there when it was last as new.
  void keep();
  void renew_as_left();
  void renew_as_new();
  // Until it is renewed, rounds begin with what the one before left in such registers.
  void go_on();
  // Microseconds from when the threads were let go to when all stood still.
  Result<double> run(const Round& round);
  // A round of one launch by one thread, of which is looked at what it reads, for half a second
  // or so, and some seconds on a machine that others use.
  // `readable`: its buffers and scratch; `every`: as of ReadWatch. The cell ends with it.
  Result<ReadReport> watch_reads(const Round& round, std::vector<Readable> readable, bool every,
                                 uint64_t seed);
  // What an address of the cell is of the image that the kernel with this number lies in.
  uint64_t address_in_image(uint64_t address, int function) const;

  // What holds it, in words: "no system calls (seccomp), no descriptors, …".
  const std::string& held() const { return held_; }

  int process() const { return process_; }

  // The core of a round's first thread: who fills its memory there leaves it in that core's caches,
  // as a program that calls the kernel would.
  int home(int threads) const { return core_of(0, leaves_a_core(threads)); }

  // Whether a round of so many threads leaves the thread that calls run() a core of its own, all of
  // it: then their times are known best, and none of them is slowed down by this one beside it.
  bool leaves_a_core(int threads) const { return threads < cores_.physical; }

 private:
  struct Ended;

  // What registers of vectors and floating point hold where a round begins.
  enum class Begins { as_new, as_kept, as_left };

  Cell(std::shared_ptr<SharedMemory> memory, const CellOptions& options);

  void keep_registers();
  Status open(int threads);
  // Of a round's threads, the one with this number. Where this thread keeps the first core, they
  // are as far from it as they can: virtual machines do not say which cores are really one.
  int core_of(int thread, bool apart) const;
  // Ends the process and takes leave of each of its threads: the kernel keeps those that are traced
  // until then. Its wait status.
  int end();
  Status start_process_of_cell();
  // From the first stop until all threads are parked. The first thread stays so for good: the end
  // of a process is told of its first thread only when the others have been taken leave of, so
  // nobody must have to wait for that one.
  Status bring_in();
  // The thread that was made just now, which stands still at its first instruction.
  Status take_in_worker();
  tl::unexpected<Error> never_came();
  // That nothing is left in it but what it should have.
  Status look_round();
  // The thread that shares this one's core looks at the pages.
  bool look_by_first(const Round& round);
  bool prepare_thread(int number, const Round& round, size_t function, bool apart);
  // Where this thread has a core for itself it sees all others arrive, lets them go, and asks until
  // they stand still. Else the first of them runs on this one's core as soon as this one sleeps,
  // and lets the others go.
  Result<double> let_go(CellControl& control, const Round& round, bool apart);
  // In the order in which they come to stand still, until one does so otherwise than by a trap:
  // threads wait for one another, so that one that faulted lets the others hang.
  std::optional<Ended> await_end(int count, Wait wait) const;
  bool stands_at_end(const TracedThread& thread) const;
  tl::unexpected<Error> lost();
  // What a thread that does not stand where it should has done. The cell ends with it.
  tl::unexpected<Error> fault_of(const TracedThread& thread, const Stop& stop);

  Cores cores_;
  std::unique_ptr<CellLayout> layout_;
  int process_ = 0;
  std::unique_ptr<Watch> watch_;
  std::vector<TracedThread> workers_;
  Begins begins_ = Begins::as_new;
  std::vector<std::vector<char>> kept_registers_;  // of each worker
  std::string held_;
};

// The hidden subcommand: true when `argv` is one, and then `*status` is what the program should
// exit with; but for faults of the set-up it never comes back.
bool cell_main(int argc, char** argv, int* status);
}  // namespace warploom::verify
