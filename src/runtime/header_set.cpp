#include "runtime/header_set.h"

#include <initializer_list>
#include <string_view>

#include "base/file.h"
#include "base/hash.h"

namespace warploom::runtime {
namespace {

namespace fs = std::filesystem;

HeaderSet headers_of(std::initializer_list<std::string_view> kinds) {
  HeaderSet set;
  std::string all;
  for (const EmbeddedFile& file : device_headers()) {
    const fs::path path = file.path;
    for (std::string_view kind : kinds) {
      if (path.parent_path() != kind) continue;
      set.files.push_back({path.filename().string(), file.text});
      all += path.filename().string() + '\0' + file.text + '\0';
    }
  }
  set.key = hash_hex(all);
  return set;
}

}  // namespace

const HeaderSet& cuda_headers() {
  static const HeaderSet set = headers_of({"ptx", "common"});
  return set;
}
const HeaderSet& cpu_headers() {
  static const HeaderSet set = headers_of({"cpu", "common"});
  return set;
}
const HeaderSet& emulated_headers() {
  static const HeaderSet set = headers_of({"emulated", "common"});
  return set;
}

Result<fs::path> header_folder(const HeaderSet& set) {
  const fs::path folder = cache_folder() / "headers" / set.key;
  const fs::path complete = folder / ".complete";
  std::error_code error;
  if (fs::exists(complete, error)) return folder;
  WARPLOOM_CHECK(make_folders(folder));
  for (const EmbeddedFile& file : set.files) WARPLOOM_CHECK(write_file(folder / file.path, file.text));
  WARPLOOM_CHECK(write_file(complete, ""));
  return folder;
}

}  // namespace warploom::runtime
