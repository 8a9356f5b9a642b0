// Work in a fork of this process, under a clock: for library calls that may crash or hang.
#pragma once

#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/process.h"

namespace warploom::runtime {

// Forks, calls `work` in the child and ends it with the returned status; the child's output is dropped. Whatever the child wants
// to say it writes to a file.
Result<ProcessResult> run_in_fork(const std::function<int()>& work, std::chrono::milliseconds limit);

}  // namespace warploom::runtime
