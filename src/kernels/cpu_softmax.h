// Softmax and log-softmax over rows on the CPU, with pointwise operators before and behind.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer one is walked in chunks twice: for
// its maximum and sum together, then for the result. With resident=1 its exponentials stay in scratch memory (the L2 cache) in
// between, so memory is read once and written once; with resident=0 the row is read again. A row's second walk goes chunk by chunk
// with the next row's first. streaming=1 writes the result past the caches.
#pragma once

#include "kernels/family.h"
#include "kernels/match.h"

namespace warploom::kernels {

const Family& cpu_softmax_family();

}  // namespace warploom::kernels
