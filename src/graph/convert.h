// Runs of elements of any type as doubles, fast: what the reference reads its inputs with.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace warploom::graph {

// to[i] = element (offset + i·stride) of the packed array `data`, for i below count.
void load_run(Dtype dtype, const void* data, std::int64_t offset, std::int64_t stride, std::int64_t count, double* to);

}  // namespace warploom::graph
