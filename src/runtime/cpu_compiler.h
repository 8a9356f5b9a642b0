// The system's C++ compiler, for CPU kernels.
//
// $CXX, else the first of g++-14, g++-13, g++-12, g++, clang++, c++ on the PATH. Kernels see the headers under device/cpu and
// device/common by bare name; they are written once to the cache folder, keyed by their content.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/compile.h"

namespace warploom::runtime {

// Example: compile_shared_object(text, {}, &log) -> ~/.cache/warploom/cpu/5f…e1.so

struct CpuCompiler {
  std::filesystem::path path;
  std::string version;  // "g++ 12.2.0"
};
Result<CpuCompiler> find_cpu_compiler();  // fails with no-compiler

// The flags every CPU kernel is compiled with, before those of the options.
std::span<const char* const> cpu_compile_flags();

// `source` to a shared object; its path. The log goes to `log`.
Result<std::filesystem::path> compile_shared_object(const std::string& source, const CompileOptions& options,
                                                    std::string* log);

}  // namespace warploom::runtime
