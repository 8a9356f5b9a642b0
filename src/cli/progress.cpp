#include "cli/progress.h"
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include "base/quoted.h"
#include "base/rendered.h"
#include "search/options.h"

namespace warploom::cli {
namespace {
using search::Progress;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Between two lines: on a terminal, where a line is rewritten, and elsewhere.
constexpr milliseconds kTerminalEvery{200};
constexpr milliseconds kPlainEvery{1600};

size_t terminal_width() {
  constexpr size_t kUnknown = 79;
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
  return known ? size.ws_col - 1u : kUnknown;
}

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}
}  // namespace

std::string progress_text(const Progress& progress, size_t width) {
  std::string text = fmt::format("{:.0f}", progress.seconds);
  if (progress.budget_seconds > 0) text += fmt::format(" of {:.0f}", progress.budget_seconds);
  text += " s";
  if (progress.candidates > 0 || progress.phase.empty())
    text += fmt::format(", {} tried", progress.candidates);
  if (progress.regions > 1)
    text += fmt::format(" of region {} of {} ({})", progress.region, progress.regions,
                        printable(progress.region_name));
  if (progress.refused > 0) text += fmt::format(", {} refused", progress.refused);
  if (!progress.phase.empty()) text += ", " + progress.phase;
  if (progress.best_us > 0) text += ", best " + time_text(progress.best_us);
  // No ratio: the two were not timed in turns yet.
  if (progress.best_us > 0 && progress.reference_us > 0)
    text += fmt::format(", the reference {}", time_text(progress.reference_us));
  if (progress.best_us > 0) text += ": " + printable(progress.best);
  return text.substr(0, width);
}

ProgressLine::ProgressLine(bool quiet, std::string phase)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
  latest_.phase = std::move(phase);
  if (!quiet_) ticker_ = std::jthread([this](const std::stop_token& stop) { tick(stop); });
}

ProgressLine::~ProgressLine() {
  if (quiet_) return;
  ticker_.request_stop();
  changed_.notify_all();
  ticker_.join();
  if (terminal_) put("\r\033[K");
}

void ProgressLine::say(Progress progress) {
  const std::lock_guard lock(mutex_);
  latest_ = std::move(progress);
}

void ProgressLine::tick(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto every = terminal_ ? kTerminalEvery : kPlainEvery;
  while (!changed_.wait_for(lock, stop, every, [&] { return stop.stop_requested(); })) {
    latest_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    put(terminal_ ? "\r\033[K" + progress_text(latest_, terminal_width())
                  : progress_text(latest_, 400) + "\n");
  }
}
}  // namespace warploom::cli
