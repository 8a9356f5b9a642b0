// The two executors, and what is particular to each: for this room alone.
#pragma once

#include <memory>
#include "cpu/pool.h"
#include "runtime/driver.h"
#include "runtime/executor.h"

namespace warploom::runtime {

Result<std::unique_ptr<Executor>> open_gpu();
Result<std::unique_ptr<Executor>> open_cpu(int threads);

// The driver's form of `map` over the memory at `address`.
Result<CUtensorMap> encode_tensor_map(const Driver& cuda, const TensorMapSpec& map, void* address,
                                      const std::string& place);

}  // namespace warploom::runtime
