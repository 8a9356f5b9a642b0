// One text through one compiler in a child process under a clock. For this room alone.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "runtime/header_set.h"

namespace warploom::runtime {

struct Image {
  std::string bytes;
  std::string log;  // the compiler's own words; of CUDA images also ptxas's, with figures
};

// Runs `argv` -I HEADERS -o IMAGE TEXT in a folder of its own, the source in a file with the name's ending `suffix`.
Result<Image> compile_text(const std::string& compiler, std::vector<std::string> argv, const HeaderSet& headers,
                           const std::string& source, const std::string& suffix, std::chrono::milliseconds time);

// compile-timeout, or compile-failed with the compiler's words.
tl::unexpected<Error> compiler_failed(const std::string& compiler, const ProcessResult& done,
                                      std::chrono::milliseconds time);

}  // namespace warploom::runtime
