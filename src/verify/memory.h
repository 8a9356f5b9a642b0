// Buffers with guard bytes round them. Within the room only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include "base/error.h"
#include "runtime/executor.h"

namespace warploom::verify {

inline constexpr std::int64_t kGuardBytes = 64 << 10;

struct Guarded {
  runtime::Buffer whole, data;  // data starts kGuardBytes into whole and ends kGuardBytes before its end
};

Result<Guarded> allocate_guarded(runtime::Executor& device, std::int64_t bytes);
// ok, or candidate-wrote-input naming the buffer and the side.
Status check_guards(runtime::Executor& device, const Guarded& buffer, const std::string& name);
// Fills the data with poison, so that what is left unwritten shows.
Status poison(runtime::Executor& device, const Guarded& buffer);

}  // namespace warploom::verify
