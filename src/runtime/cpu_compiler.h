// The system's C++ compiler, for CPU kernels and emulated ones.
//
// $CXX, else the first of g++-14, g++-13, g++-12, g++, clang++, c++ on the PATH. Kernels see the device headers by
// bare name.
#pragma once
#include "runtime/compile_text.h"
namespace warploom::runtime {
struct CpuCompiler {
  std::filesystem::path path;
  std::string version;  // "g++ 12.2.0"
};
Result<CpuCompiler> find_cpu_compiler();  // fails with no-compiler

// The flags every CPU kernel is compiled with.
const std::vector<std::string>& cpu_compile_flags();

// `source` to a shared object in the cache: its path, ~/.cache/warploom/cpu/5f…e1.so.
Result<std::filesystem::path> compile_shared_object(const std::string& source, const std::vector<std::string>& flags,
                                                    const HeaderSet& headers, std::chrono::milliseconds time);
}  // namespace warploom::runtime
