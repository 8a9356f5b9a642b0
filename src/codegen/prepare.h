// Prepare: the kernels of a launch list that run once, when it is loaded, and not in each call.
//
// A kernel prepares where all that it reads is constant: inputs that hold the same in every call
// (LaunchList::constants), or what other such kernels made of them. It packs weights, splits them,
// transposes them, finds their largest element.
//
//   constants  w
//   kernels    0 amax: w -> m    1 split: w, m -> high, low    2 gemm: x, high, low -> y
//   prepare    0, 1;    kept between calls: high, low
//
// Who calls a list owes it this order: constants are there; every kernel of `prepare` runs; then
// calls run the others, as often as they like, on the same workspaces. Once a constant has changed,
// what was prepared of it is stale, and no call notices: prepare must run again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>
#include "codegen/launch_list.h"

namespace warploom {
// Sets list.prepare by list.constants and what kernels are known to write. A list of which nothing
// is known prepares nothing.
void mark_prepare(LaunchList& list);

bool prepares(const LaunchList& list, size_t kernel);

// The numbers of the kernels that run in each call, ascending.
std::vector<size_t> called_kernels(const LaunchList& list);

// The workspaces that calls read as the preparation left them.
std::vector<BufferSpec> prepared_buffers(const LaunchList& list);
int64_t prepared_bytes(const LaunchList& list);
}  // namespace warploom
