// Files: read whole, write whole or not at all, the cache folder, scratch folders.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "base/error.h"

namespace warploom {
Result<std::string> read_file(const std::filesystem::path& path);
// Writes to a temporary name beside `path`, syncs and renames: a reader sees the old text or the
// new, never half.
Status write_file(const std::filesystem::path& path, std::string_view text);
// All of `bytes` to an open file of this name; errno stands behind a failure.
Status write_all(int file, std::string_view bytes, const std::filesystem::path& name);
Status make_folders(const std::filesystem::path& path);

// Where temporary files go: $TMPDIR, else /tmp, /var/tmp or /dev/shm, the first that is a folder
// which can be written. $TMPDIR, or /tmp, where none is: what writes there says why it cannot.
std::filesystem::path temporary_folder();

// Where compiled kernels and the archive are kept from run to run.
struct CacheFolder {
  std::filesystem::path path;
  // Of every folder that comes before it and cannot be had, its path and why: "/.cache/warploom:
  // Permission denied".
  std::vector<std::string> passed_over = {};
  bool kept = true;  // false: this process's own, which goes with it
};

// $XDG_CACHE_HOME/warploom; ~/.cache/warploom; TMP/warploom-cache-UID, where it is the user's own;
// a scratch folder of this process. The first in which, and in whose `images`, files can be made.
// Worked out anew where those variables have changed.
CacheFolder find_cache_folder();
std::filesystem::path cache_folder();  // its path

// In a process that another one of this program started: the folder that the other works with.
// Users, rights and variables may look different from within.
void set_cache_folder(const std::filesystem::path& path);

// A folder of its own, under temporary_folder() unless another parent is named, removed with
// everything in it at the end of life. What processes left behind that were killed goes when
// another is made beside it.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string_view purpose, const std::filesystem::path& parent = {});
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};
}  // namespace warploom
