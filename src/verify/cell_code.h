// Cell code: the few functions of ours that run inside a cell (cell.h), beside the candidate.
//
// They are compiled into a section of their own, which is copied as a whole into the cell's code:
// there is no C library there, no variable and no other code of this program. So they call nothing
// outside of the section, use no constants in memory and no stack protector.
//
// A round (one launch of a kernel, or a series of launches):
//
//   supervisor   fills `Control`, sets every thread's registers to run_thread(), lets them go
//   thread       reads a byte of each page or line of `spans`, counts itself in (`arrived`), waits
//   for `go`,
//                takes blocks by the counter, and stops at an int3 instruction, which the
//                supervisor is told of by the kernel
//   supervisor   starts the clock when all have arrived, and sets `go`
//
// Where every core has a thread, one of them shares the supervisor's. It looks at its pages in a
// round before, stands still until the others have arrived, and sets `go` itself (run_last): so
// what its start takes is the same with and without work, and can be taken off.
//
// Buffers are filled by the supervisor, at addresses of its own. Without that first look a kernel
// would pay for every page that its core does not know by the cell's address, which in a program
// that fills its buffers itself it does not.
//
// The supervisor believes nothing that it reads here: a candidate can write to all of it. It only
// waits for `arrived` before the candidate has run. Within the room only.
#pragma once
#include <cstddef>
#include <cstdint>
#include "codegen/launch_list.h"

namespace warploom::verify {
// One launch: blocks (first + i * stride) mod total, for i in [begin, end).
struct CellStep {
  CpuKernel function;
  void* const* buffers;
  int64_t total;
  int64_t first;
  int64_t stride;
  int64_t begin;
  int64_t end;
  int64_t chunk;  // blocks that a thread takes at once
};

// Bytes that a cell's threads look at before a round, one of so many.
struct CellSpan {
  const unsigned char* begin;
  uint64_t bytes;
  uint64_t step;
};

// What a kernel finds in the registers that hold none of its arguments, where it is called as any
// program might call it (call_as_any): in the order in which that function loads them.
struct CellWords {
  static constexpr size_t kCount = 14;
  uint64_t words[kCount];
};

// Addresses that the process that becomes a cell gives back.
struct CellGap {
  uint64_t begin;
  uint64_t bytes;
};

// The page between the supervisor and the threads of a cell. What different threads write to lies
// in different cache lines.
struct CellControl {
  // Written by the supervisor, before a round.
  alignas(64) const CellStep* steps;
  int64_t step_count;
  int64_t times;    // how often the steps are carried out
  int64_t threads;  // of the round
  const CellSpan* spans;
  int64_t span_count;
  const CellWords* words;  // null: kernels are called as the compiler does it
  alignas(64) uint32_t go;
  // Written by the threads.
  alignas(64) uint32_t arrived;
  alignas(64) uint32_t finished;  // threads that are done with a step, of all steps so far
  alignas(64) uint32_t released;  // the step that threads may begin
  alignas(64) int64_t next[2];    // the next block that nobody took: of even and of odd steps
};

// What the process that becomes a cell must do last, with the C library still there: nothing of it
// is left when its threads come to their first stop. All addresses are the cell's own.
struct CellEntry {
  const CellGap* gaps;  // all addresses but the cell's own
  int64_t gap_count;
  int64_t threads;         // to be made
  const uint64_t* stacks;  // the ends of their stacks
  const void* filter;      // of seccomp (struct sock_fprog); null: none
  int64_t filter_refused;  // out: seccomp's error, 0: it is in force
};

// The section's bytes, and where in them its functions begin.
struct CellCode {
  const std::byte* bytes;
  size_t size;
  size_t enter;       // void (CellEntry*), which never returns
  size_t look;        // void (const CellControl*): reads `spans`, no more; never returns
  size_t run_thread;  // void (CellControl*, void* scratch), which never returns
  size_t run_last;    // likewise, of the one that comes last, has looked, and lets all go
  size_t stop;        // the address of the int3 at a thread's end, and where it is found stopped
  size_t parked;      // likewise, before its first round
  size_t fill;        // a kernel: buffers {address, bytes, word}, kFillPiece bytes a block
  size_t nothing;     // a kernel that does nothing
  size_t trap;        // what stands for a function that a candidate may not call
  size_t changed;     // where a thread ends whose kernel did not give registers back as they were
  size_t memcpy;
  size_t memmove;
  size_t memset;
  size_t memcmp;
};

inline constexpr int64_t kFillPiece = 1 << 18;

CellCode cell_code();
}  // namespace warploom::verify
