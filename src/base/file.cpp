#include "base/file.h"
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
namespace warploom {
namespace fs = std::filesystem;
namespace {
Error write_error(const fs::path& path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return {full ? ErrorCode::kDiskFull : ErrorCode::kFileUnwritable,
          "cannot write a file",
          path.string(),
          "a writable file with room for it",
          std::strerror(error_number),
          full ? "free some space or name another folder with --out" : "name another folder with --out"};
}

std::string unique_suffix() {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}-{}", ::getpid(), counter++);
}
}  // namespace
Result<std::string> read_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return fail({ErrorCode::kFileMissing, "the file does not exist", path.string(), "a file", "nothing", "check the path"});
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  const bool folder = fs::is_directory(path, ignored);
  if (!file || folder || (file.peek() != EOF && !(text << file.rdbuf())))
    return fail({ErrorCode::kFileUnreadable, "the file cannot be read", path.string(), "a readable file",
                 folder ? "a folder" : std::strerror(errno), "check what the path names and its permissions"});
  return std::move(text).str();
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) return false;
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

Status write_file(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + ".part-" + unique_suffix();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(write_error(path, errno));
  int error_number = write_all(fd, text) ? 0 : errno;
  if (!error_number && ::fsync(fd) != 0) error_number = errno;
  if (::close(fd) != 0 && !error_number) error_number = errno;
  if (!error_number && ::rename(temporary.c_str(), path.c_str()) != 0) error_number = errno;
  if (!error_number) return ok();
  ::unlink(temporary.c_str());
  return fail(write_error(path, error_number));
}

Status make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(write_error(path, error.value()));
  return ok();
}

fs::path cache_folder() {
  fs::path folder;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') {
    folder = fs::path(xdg) / "warploom";
  } else if (const char* home = std::getenv("HOME"); home && *home == '/') {
    folder = fs::path(home) / ".cache" / "warploom";
  }
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (folder.empty() || error || ::access(folder.c_str(), W_OK) != 0) {
    folder = fs::temp_directory_path() / fmt::format("warploom-cache-{}", ::getuid());
    fs::create_directories(folder, error);
  }
  return folder;
}

ScratchFolder::ScratchFolder(std::string_view purpose)
    : path_(fs::temp_directory_path() / fmt::format("warploom-{}-{}", purpose, unique_suffix())) {
  std::error_code ignored;
  fs::create_directories(path_, ignored);
}
ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
}  // namespace warploom
