// Aligned tables for people. Colours only on a terminal and only without NO_COLOR.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace warploom::cli {

using Rows = std::vector<std::pair<std::string, std::string>>;
// One "label   value" a row, labels padded to the widest. Lines of a value after the first are indented alike.
std::string two_columns(const Rows& rows);

// `text` in bold or green where standard output is a terminal that may be coloured.
std::string bold(const std::string& text);
std::string green(const std::string& text);

}  // namespace warploom::cli
