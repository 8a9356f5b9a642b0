#include "cli/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace warploom::cli {
namespace {

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

}  // namespace warploom::cli
