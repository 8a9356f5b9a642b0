// ProgressLine: how far a command is, on standard error, as long as it lives. A thread of its own
// says it every two seconds (on a terminal five times a second, one line rewritten), so that nobody
// waits in silence, whatever the command is busy with.
//
//   ProgressLine line(quiet, "warploom verify");                  // "4 s, warploom verify"
//   line.say({.budget_seconds = 60, .phase = "reading the model"});  // "5 of 60 s, reading …"
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include "cli/command.h"

namespace warploom::cli {
class ProgressLine {
 public:
  ProgressLine(bool quiet, std::string phase);
  ~ProgressLine();  // on a terminal the line is wiped

  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void say(search::Progress progress);

 private:
  void tick(const std::stop_token& stop);

  const bool quiet_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  search::Progress latest_;
  std::jthread ticker_;
};

// "12 of 60 s, 41 tried of region 2 of 3 (MatMul+Add), 3 refused, best 812.0 us, the reference
// 1.00 ms: matmul_cpu …", at most `width` bytes.
std::string progress_text(const search::Progress& progress, size_t width);
}  // namespace warploom::cli
