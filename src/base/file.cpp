#include "base/file.h"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace warploom {
namespace fs = std::filesystem;

namespace {
tl::unexpected<Error> cannot_write(const fs::path& path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return fail({full ? ErrorCode::kDiskFull : ErrorCode::kFileUnwritable, "cannot write a file",
               path.string(), "a writable file with room for it", std::strerror(error_number),
               full ? "free some space or name another folder with --out"
                    : "name another folder with --out"});
}

std::string unique_suffix() {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}-{}", ::getpid(), counter++);
}

// Which processes a process number is one of: containers may share a temporary folder without
// sharing those.
std::string process_space() {
  std::error_code ignored;
  const std::string link =
      fs::read_symlink("/proc/self/ns/pid", ignored).string();  // "pid:[4026531836]"
  return link.size() > 6 ? link.substr(5, link.size() - 6) : "0";
}

// Removes what processes left behind that were killed: "warploom-compile-4026531836-PROCESS-7".
void sweep(const fs::path& temporary) {
  std::error_code ignored;
  const std::string mark = fmt::format("-{}-", process_space());
  for (const auto& entry : fs::directory_iterator(temporary, ignored)) {
    const std::string name = entry.path().filename();
    const std::size_t at = name.find(mark);
    if (!name.starts_with("warploom-") || at == std::string::npos) continue;
    const int process = std::atoi(name.c_str() + at + mark.size());
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      fs::remove_all(entry.path(), ignored);
  }
}
}  // namespace

Result<std::string> read_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return fail({ErrorCode::kFileMissing, "the file does not exist", path.string(), "a file",
                 "nothing", "check the path"});
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  const bool folder = fs::is_directory(path, ignored);
  if (!file || folder || (file.peek() != EOF && !(text << file.rdbuf())))
    return fail({ErrorCode::kFileUnreadable, "the file cannot be read", path.string(),
                 "a readable file", folder ? "a folder" : std::strerror(errno),
                 "check what the path names and its permissions"});
  return std::move(text).str();
}

Status write_all(int file, std::string_view bytes, const fs::path& name) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) return cannot_write(name, errno);
    if (put > 0) bytes.remove_prefix(put);
  }
  return ok();
}

Status write_file(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + ".part-" + unique_suffix();
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return cannot_write(path, errno);
  Status done = write_all(fd, text, path);
  if (done && ::fsync(fd) != 0) done = cannot_write(path, errno);
  if (::close(fd) != 0 && done) done = cannot_write(path, errno);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = cannot_write(path, errno);
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Status make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return cannot_write(path, error.value());
  return ok();
}

fs::path cache_folder() {
  fs::path folder;
  const char *const xdg = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (xdg && *xdg == '/')
    folder = fs::path(xdg) / "warploom";
  else if (home && *home == '/')
    folder = fs::path(home) / ".cache" / "warploom";
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (folder.empty() || error || ::access(folder.c_str(), W_OK) != 0) {
    folder = fs::temp_directory_path() / fmt::format("warploom-cache-{}", ::getuid());
    fs::create_directories(folder, error);
  }
  return folder;
}

ScratchFolder::ScratchFolder(std::string_view purpose) {
  std::error_code ignored;
  const fs::path temporary = fs::temp_directory_path(ignored);
  [[maybe_unused]] static const bool swept = (sweep(temporary), true);  // once a process
  path_ = temporary / fmt::format("warploom-{}-{}-{}", purpose, process_space(), unique_suffix());
  fs::create_directories(path_, ignored);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
}  // namespace warploom
