#include "cli/print.h"
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

bool coloured() {
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && !(no && *no) && terminal && std::string(terminal) != "dumb";
}

std::string in_colour(const char* code, const std::string& text) {
  return coloured() ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

}  // namespace

std::string bold(const std::string& text) { return in_colour("1", text); }
std::string green(const std::string& text) { return in_colour("32", text); }

std::string two_columns(const Rows& rows) {
  std::size_t width = 0;
  for (const auto& [label, value] : rows) width = std::max(width, label.size());
  std::string out;
  for (const auto& [label, value] : rows) {
    out += "  " + bold(label) + std::string(width - label.size() + 3, ' ');
    for (const char c : value) out += c == '\n' ? "\n" + std::string(width + 5, ' ') : std::string(1, c);
    out += '\n';
  }
  return out;
}

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
