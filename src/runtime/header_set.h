// The embedded device headers of some kinds, by bare file name, for compilers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/device_headers.h"
#include "base/error.h"

namespace warploom::runtime {

struct HeaderSet {
  std::vector<EmbeddedFile> files;  // `path` is the bare name
  std::string key;                  // of their names and texts
};
const HeaderSet& cuda_headers();      // device/ptx and device/common
const HeaderSet& cpu_headers();       // device/cpu and device/common
const HeaderSet& emulated_headers();  // device/emulated and device/common

// The set on disk, flat in one folder of the cache; written once.
Result<std::filesystem::path> header_folder(const HeaderSet& set);

}  // namespace warploom::runtime
