#include "runtime/text_places.h"
#include <fmt/format.h>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace warploom::runtime {
namespace {
constexpr std::string_view kMark = "//: line ";
constexpr std::string_view kOf = " of ";
}  // namespace

std::string place_mark(int line, std::string_view file) {
  return fmt::format("{}{}{}{}\n", kMark, line, kOf, file);
}

TextPlace place_in(std::string_view text, int line) {
  TextPlace found{.line = line};
  int behind = 0;  // the mark
  for (int number = 1; number < line && !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!one.starts_with(kMark)) continue;
    one.remove_prefix(kMark.size());
    int of_file = 0;
    const auto read = std::from_chars(one.data(), one.data() + one.size(), of_file);
    const std::string_view rest = one.substr(static_cast<size_t>(read.ptr - one.data()));
    if (read.ec != std::errc() || !rest.starts_with(kOf)) continue;
    behind = number;
    found = {std::string(rest.substr(kOf.size())), of_file};
  }
  if (!found.file.empty()) found.line += line - behind - 1;
  return found;
}

std::string described(const std::string& name, const TextPlace& place) {
  if (place.line <= 0) return name;
  const std::string of = place.file.empty() ? "" : " of " + place.file;
  return fmt::format("{}, line {}{}", name, place.line, of);
}
}  // namespace warploom::runtime
