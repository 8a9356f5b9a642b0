// Child processes: started in a session of their own, watched by a clock, killed as a group, never
// left behind.
#pragma once
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <vector>
#include "base/error.h"

namespace warploom {
struct ProcessLimits {
  std::chrono::milliseconds time{60'000};  // wall clock; the whole group is killed after it
  size_t output_bytes = 1 << 20;           // of standard output and error each; the rest is dropped
};

struct ProcessResult {
  int exit_status = 0;  // of a normal exit
  int signal = 0;       // that ended it, 0: none
  bool timed_out = false;
  // standard output and error
  std::string out;
  std::string err;

  bool succeeded() const { return exit_status == 0 && signal == 0 && !timed_out; }
};

// Runs argv[0] (found through PATH) to its end. Fails only when it cannot be started at all.
Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessLimits& limits = {});

// From now on what this thread runs ends with all that it started, as if its time were up, once the
// flag is set.
void end_processes_with(const std::atomic<bool>* flag);

// Starts argv[0] in a session of its own, without standard input and core files, which dies with
// the calling thread; `prepare` runs in it first, between fork and exec. `apart`: as process 1 of
// namespaces of its own (user, processes, mounts, network, IPC), where the kernel has them for us.
// And its end, waited for: its wait status; `kill`: at once. What it started ends with it.
Result<int> start_process(const std::vector<std::string>& argv,
                          const std::function<void()>& prepare, bool apart = false);
int end_process(int process, bool kill);

// A program's full path by PATH, or empty.
std::filesystem::path find_program(const std::string& name);
}  // namespace warploom
