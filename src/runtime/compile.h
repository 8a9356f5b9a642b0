// compile: a launch list's source to machine code, for both engines, cached on disk.
//
// CUDA kernels go through NVRTC or else nvcc, a cubin for each text; CPU kernels through the
// system's C++ compiler (compilers.h), many texts in one shared object (units.h). Compilers run in
// child processes under a clock, since they crash and hang on odd input.
//
// Errors: no-nvrtc, no-compiler; compile-failed with the compiler's own words in `found` (also for
// serialised wgmma and for many spilled registers); compile-timeout.
#pragma once
#include <atomic>
#include <chrono>
#include <filesystem>
#include <semaphore>
#include "codegen/launch_list.h"

namespace warploom::runtime {
inline constexpr int kAnySpills = std::numeric_limits<int>::max();

using Turns = std::counting_semaphore<>;

struct CompileOptions {
  int most_spills = 512;  // bytes that a thread may store and load of registers that have no room
  std::chrono::milliseconds time{60'000};  // of a text; four texts or more have four times that
  // Compilers that may run beside the first, which the caller has a turn for: as many as there are
  // turns free. Null: none.
  Turns* turns = nullptr;
  const std::atomic<bool>* ended = nullptr;  // once set, compilers end as if their time were up
  // The text is a stranger's: a C++ text's image is found in the cache by what it came to when it
  // was preprocessed, and its asm statements are checked before they are assembled.
  bool foreign = false;
};

struct Binary {
  std::string compiler;             // "NVRTC 13.0", "nvcc 13.0", "g++ 12.2.0"
  std::vector<std::string> images;  // one a kernel, often the same: the file in the cache
};

Result<Binary> compile(const LaunchList& list, const CompileOptions& options = {});

// What holds compilers on this machine, for a verdict: "landlock, rlimits", or "rlimits" where the
// kernel has no Landlock and a text's #include may read what the user may.
std::string compiler_confinement();

// The hidden subcommand of the host program: true when `argv` is one, and then `*status` is what
// the program should exit with. Once the program is registered, which is done before anything is
// compiled, NVRTC runs in a fresh process of it; else in this one, unwatched.
void set_helper_program(const std::filesystem::path& program);
bool compiler_main(int argc, char** argv, int* status);
}  // namespace warploom::runtime
