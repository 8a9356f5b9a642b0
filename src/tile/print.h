// A program as text, and text as a program: parse(print(p)) prints the same. The grammar stands in
// docs/tile.md.
#pragma once
#include "base/error.h"
#include "tile/program.h"

namespace warploom::tile {
std::string print(const Program& program);
std::string print(const Program& program,
                  const Statement& statement);  // one statement, its body left out: for comments
Result<Program> parse(std::string_view text, std::string_view file = "<text>");
}  // namespace warploom::tile
