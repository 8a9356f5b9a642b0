// Softmax and log-softmax over rows on the CPU, with pointwise operators before and behind.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer one is walked in chunks: with
// resident=1 its values stay in scratch memory (the L2 cache) between the passes for the maximum, the sum and the result, so
// memory is read once and written once; with resident=0 a running maximum and sum in each lane take one pass, and the row is
// read again for the result. streaming=1 writes the result past the caches.
#pragma once

#include "kernels/family.h"
#include "kernels/match.h"

namespace warploom::kernels {

const Family& cpu_softmax_family();

}  // namespace warploom::kernels
