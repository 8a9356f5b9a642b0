#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace warploom::cli {
namespace {

constexpr double kPlainEverySeconds = 5, kTerminalEverySeconds = 0.1;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - 1u : 79u;
}

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

std::string time_text(double us) {
  if (us <= 0) return "-";
  if (us < 1000) return fmt::format("{:.{}f} us", us, us < 100 ? 2 : 1);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string progress_text(const search::Progress& progress, std::size_t width) {
  std::string text =
      fmt::format("{:.0f} of {:.0f} s, {} tried", progress.seconds, progress.budget_seconds, progress.candidates);
  if (progress.refused > 0) text += fmt::format(", {} refused", progress.refused);
  if (progress.best_us > 0) {
    text += ", best " + time_text(progress.best_us);
    if (progress.reference_us > 0)
      text += fmt::format(" ({:.2f}x the reference's speed)", progress.reference_us / progress.best_us);
    text += ": " + progress.best;
  }
  return text.substr(0, width);
}

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const search::Progress& progress) {
  if (quiet_ || progress.seconds < next_seconds_) return;
  next_seconds_ = progress.seconds + (terminal_ ? kTerminalEverySeconds : kPlainEverySeconds);
  if (terminal_) put("\r\033[K" + progress_text(progress, terminal_width()));
  else put(progress_text(progress, 400) + "\n");
  open_ = terminal_;
}

void ProgressLine::clear() {
  if (open_) put("\r\033[K");
  open_ = false;
}

}  // namespace warploom::cli
