#include "shrink.h"
#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include "fuzz/check.h"
#include "fuzz/program.h"
#include "tile/print.h"

namespace warploom::fuzz {
namespace {
size_t indent_of(const std::string& line) {
  return line.find_first_not_of(' ');
}

std::vector<std::string> without(const std::vector<std::string>& lines, size_t at) {
  std::vector<std::string> out(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(at));
  size_t next = at + 1;
  while (next < lines.size() && indent_of(lines[next]) > indent_of(lines[at]))
    ++next;
  out.insert(out.end(), lines.begin() + static_cast<ptrdiff_t>(next), lines.end());
  return out;
}
}  // namespace

Case shrunk(const Case& failing, const std::string& target, const std::string& code) {
  Case best = failing;
  best.targets = {target};
  std::vector<std::string> lines;
  std::istringstream text(tile::print(failing.program));
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t at = lines.size();
         at-- > 1;) {  // the last first: they use what the ones before declare
      const std::vector<std::string> fewer = without(lines, at);
      std::string joined;
      for (const std::string& line : fewer)
        joined += line + "\n";
      auto program = tile::parse(joined);
      const auto next = program ? with_program(best, std::move(*program)) : std::nullopt;
      if (!next || check_case(*next)[0].code != code) continue;
      best = *next;
      lines = fewer;
      smaller = true;
      at = std::min(at, lines.size());
    }
  }
  return best;
}
}  // namespace warploom::fuzz
