// One text through one compiler in a child process under a clock. For this room alone.
#pragma once
#include "base/embedded.h"
#include "base/process.h"
namespace warploom::runtime {
// The embedded device headers of some kinds, by bare file name.
struct HeaderSet {
  std::vector<EmbeddedFile> files;  // `path` is the bare name
  std::string key;                  // of their names and texts
};
// Those of `device` ("ptx", "cpu", "emulated") and of device/common.
const HeaderSet& headers_of(const std::string& device);

struct Image {
  std::string bytes;
  std::string log;  // the compiler's own words; of CUDA images also ptxas's, with figures
};

// Runs `argv` -I HEADERS -o IMAGE TEXT in a folder of its own, the source in a file with the name's ending `suffix`.
Result<Image> compile_text(const std::string& compiler, std::vector<std::string> argv, const HeaderSet& headers,
                           const std::string& source, const std::string& suffix, std::chrono::milliseconds time);
}  // namespace warploom::runtime
