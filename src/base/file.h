// File access: whole-file reads, atomic writes, the cache folder, and temporary folders that are
// removed at the end of a scope.
//
//   WARPLOOM_TRY(const std::string text, read_file("model.onnx"));    file-missing, file-unreadable
//   WARPLOOM_CHECK(write_file("out/plan.json", text));                file-unwritable, disk-full
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "base/error.h"

namespace warploom {
Result<std::string> read_file(const std::filesystem::path& path);
// Atomic: writes a temporary file beside `path`, syncs it and renames it, so that a reader sees the
// old text or the new, never a part.
Status write_file(const std::filesystem::path& path, std::string_view text);
// Writes all of `bytes` to an open file descriptor; `name` is for the error, whose cause is errno.
Status write_all(int file, std::string_view bytes, const std::filesystem::path& name);
Status make_folders(const std::filesystem::path& path);

// Where temporary files go: the first writable folder of $TMPDIR, /tmp, /var/tmp and /dev/shm. If
// none is writable, $TMPDIR or /tmp: whoever writes there gets the error.
std::filesystem::path temporary_folder();

// Where compiled kernels and the archive are kept from run to run.
struct CacheFolder {
  std::filesystem::path path;
  // The folders of higher priority that cannot be used, each with its reason: "/.cache/warploom:
  // Permission denied".
  std::vector<std::string> passed_over = {};
  bool kept = true;  // false: a scratch folder, removed at the end of this process
};

// The first folder in which, and in whose subfolder `images`, files can be created, of
// $XDG_CACHE_HOME/warploom; ~/.cache/warploom; TMP/warploom-cache-UID, if this user owns it; a
// scratch folder of this process. Determined again when one of those variables has changed.
CacheFolder find_cache_folder();
std::filesystem::path cache_folder();  // its path

// For a child process of this program: use the parent's cache folder. Inside a sandbox the user,
// permissions and environment may differ, so find_cache_folder() might choose another.
void set_cache_folder(const std::filesystem::path& path);

// A folder of its own, under temporary_folder() unless `parent` is given; the destructor removes it
// with its content. The constructor also removes scratch folders that killed processes left there.
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
