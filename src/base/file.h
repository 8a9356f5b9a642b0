// Files: read whole, write whole or not at all, the cache folder, scratch folders.
#pragma once
#include <filesystem>
#include "base/error.h"

namespace warploom {
Result<std::string> read_file(const std::filesystem::path& path);
// Writes to a temporary name beside `path`, syncs and renames: a reader sees the old text or the
// new, never half.
Status write_file(const std::filesystem::path& path, std::string_view text);
// All of `bytes` to an open file of this name; errno stands behind a failure.
Status write_all(int file, std::string_view bytes, const std::filesystem::path& name);
Status make_folders(const std::filesystem::path& path);
// $XDG_CACHE_HOME/warploom, or ~/.cache/warploom, or a folder in the temporary directory when
// neither can be had.
std::filesystem::path cache_folder();

// A folder of its own under the temporary directory, removed with everything in it at the end of
// life.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string_view purpose);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
}  // namespace warploom
