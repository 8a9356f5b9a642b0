// Child processes. Each runs in a session of its own, within a wall-clock limit, and is killed with
// its whole process group, so that nothing it started outlives the call.
//
//   WARPLOOM_TRY(const ProcessResult ran, run_process({"g++", "--version"}, {.time = 5s}));
//   if (ran.succeeded()) use(ran.out);
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
  // Runs in the child between fork and exec: confine.h.
  std::function<void()> prepare = {};
};

struct ProcessResult {
  int exit_status = 0;  // of a normal exit
  int signal = 0;       // the signal that ended it; 0: none
  bool timed_out = false;
  // standard output and error
  std::string out;
  std::string err;

  bool succeeded() const { return exit_status == 0 && signal == 0 && !timed_out; }
};

// Runs argv[0] (found through PATH) to its end. Fails only when it cannot be started at all.
Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessLimits& limits = {});

// From now on run_process() of this thread treats a set flag as the end of its time limit: it kills
// the process group and returns.
void end_processes_with(const std::atomic<bool>* flag);

// Starts argv[0] in a session of its own, with /dev/null as standard input and no core files; the
// kernel kills it when the calling thread ends. `prepare` runs in the child between fork and exec.
// end_process waits for it, after killing it if `kill` is set, kills what is left of its process
// group and returns its wait status.
Result<int> start_process(const std::vector<std::string>& argv,
                          const std::function<void()>& prepare);
int end_process(int process, bool kill);

// A program's full path by PATH, or empty.
std::filesystem::path find_program(const std::string& name);
}  // namespace warploom
