// Memory of a GPU that two processes look at: one names it by a file, the other maps that.
//
//   // in a process whose executor made `whole` by allocate_apart()
//   WARPLOOM_TRY(const int file, share_memory(whole));       // to be sent over a socket, and
//   closed
//   // in the other
//   WARPLOOM_TRY(const Buffer same, map_memory(file, whole.bytes()));
//
// Both see what either writes, once it is done. The memory stays until both have let go of it.
//
// Errors: cuda-call where the driver or the machine cannot do that (memory of cuMemAlloc has no
// such file, nor has any under some virtual machines): then bytes must be copied by way of the
// host.
//
// Source: CUDA Driver API reference, "Virtual Memory Management".
#pragma once
#include <cstdint>
#include "runtime/executor.h"

namespace warploom::runtime {
Result<int> share_memory(const Buffer& whole);
// `bytes`: the whole allocation's. The file may be closed then.
Result<Buffer> map_memory(int file, int64_t bytes);
}  // namespace warploom::runtime
