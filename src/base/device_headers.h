// The headers under device/, embedded in the executable: what emitted kernels include and bundles carry along.
#pragma once
#include <string>
#include <vector>
namespace warploom {
struct EmbeddedFile {
  std::string path;  // relative to device/: "ptx/mbarrier.h"
  std::string text;
};
const std::vector<EmbeddedFile>& device_headers();
}  // namespace warploom
