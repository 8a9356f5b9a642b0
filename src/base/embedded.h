// Files that the executable carries as text; cmake/Embed.cmake writes them into it.
#pragma once
#include <algorithm>
#include <string>
#include <vector>
namespace warploom {
struct EmbeddedFile {
  std::string path;  // relative to its folder: "ptx/mbarrier.h"
  std::string text;
};
// The headers under device/: what emitted kernels include and bundles carry along.
const std::vector<EmbeddedFile>& device_headers();
// What is under resources/: the parts of bundles and of reference kernels that are the same each time, the archive's tables.
const std::vector<EmbeddedFile>& resources();
inline const std::string& resource(std::string_view path) {
  return std::ranges::find(resources(), path, &EmbeddedFile::path)->text;
}
}  // namespace warploom
