#pragma once

#include <string_view>

namespace warploom::cli {

inline constexpr std::string_view kVersion = "0.1.0";  // as in CMakeLists.txt

}  // namespace warploom::cli
