// For tests: CPU kernels compiled together into one shared object and called block by block on the
// calling thread.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <memory>
#include "base/file.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "cpu/pool.h"
#include "support/paths.h"

namespace warploom {
class CpuLibrary {
 public:
  void add(const Kernel& kernel) { source_ += kernel.source; }

  // False, with a test failure, when the compiler refuses.
  bool compile(const std::vector<std::string>& flags = {}) {
    const auto file = folder_.path() / "kernels.cpp";
    const auto object = folder_.path() / "kernels.so";
    if (!write_file(file, source_)) return false;
    std::vector<std::string> argv = {"g++",
                                     "-O1",
                                     "-std=c++20",
                                     "-shared",
                                     "-fPIC",
                                     "-I",
                                     test::source_path("device/cpu"),
                                     "-I",
                                     test::source_path("device/common")};
    argv.insert(argv.end(), flags.begin(), flags.end());
    if (flags.empty()) argv.emplace_back("-march=native");
    argv.insert(argv.end(), {file.string(), "-o", object.string()});
    const auto result = run_process(argv);
    if (!result || !result->succeeded()) {
      ADD_FAILURE() << (result ? result->err.substr(0, 3000) : result.error().message);
      return false;
    }
    wl::allow_tiles();
    library_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library_ != nullptr;
  }

  // Runs every block. Scratch memory starts as NaN, so that what is read before it is written
  // shows.
  void run(const Kernel& kernel, const std::vector<void*>& buffers) {
    auto* function = reinterpret_cast<CpuKernel>(dlsym(library_, kernel.name.c_str()));
    ASSERT_NE(function, nullptr) << kernel.name;
    const auto bytes = static_cast<size_t>((kernel.shared_bytes + 8191) / 4096 * 4096);
    const std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(4096, bytes),
                                                         std::free);
    auto* floats = static_cast<float*>(scratch.get());
    std::fill(floats, floats + bytes / 4, __builtin_nanf(""));
    for (long long task = 0; task < kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; ++task)
      function(buffers.data(), task, scratch.get());
  }

  ~CpuLibrary() {
    if (library_) dlclose(library_);
  }

 private:
  ScratchFolder folder_{"cpu-kernels"};
  std::string source_;
  void* library_ = nullptr;
};
}  // namespace warploom
