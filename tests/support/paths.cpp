#include "paths.h"
#include <string>
#include <string_view>

namespace warploom::test {
namespace {
std::string below(std::string folder, std::string_view inside) {
  if (inside.empty()) return folder;
  return folder.append("/").append(inside);
}
}  // namespace

std::string source_path(std::string_view inside) {
  return below(WARPLOOM_SOURCE_DIR, inside);
}

std::string built_path(std::string_view inside) {
  return below(WARPLOOM_BINARY_DIR, inside);
}
}  // namespace warploom::test
