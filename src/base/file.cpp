#include "base/file.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom {
namespace fs = std::filesystem;

namespace {
tl::unexpected<Error> cannot_write(const fs::path& path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  Error error{ErrorCode::kFileUnwritable, "cannot write a file", path.string()};
  error.expected = "a writable file with room for it";
  error.found = std::strerror(error_number);
  error.remedy = "name another folder with --out";
  if (full) {
    error.code = ErrorCode::kDiskFull;
    error.remedy = "free some space or name another folder with --out";
  }
  return fail(error);
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
    const size_t at = name.find(mark);
    const bool ours = name.starts_with("warploom-") || name.starts_with(".warploom-");
    if (!ours || at == std::string::npos) continue;
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
  if (!file || folder || (file.peek() != EOF && !(text << file.rdbuf()))) {
    const std::string found = folder ? "a folder" : std::strerror(errno);
    Error error{ErrorCode::kFileUnreadable, "the file cannot be read", path.string()};
    error.expected = "a readable file";
    error.found = found;
    error.remedy = "check what the path names and its permissions";
    return fail(error);
  }
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

fs::path temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  std::vector<fs::path> places = {"/tmp", "/var/tmp", "/dev/shm"};
  if (named && *named) places.insert(places.begin(), named);
  std::error_code ignored;
  for (const fs::path& place : places)
    if (fs::is_directory(place, ignored) && ::access(place.c_str(), W_OK | X_OK) == 0) return place;
  return places.front();
}

namespace {
// The folder, made where it is missing, takes new files. Else errno's words.
std::string why_unusable(const fs::path& folder, bool own) {
  if (own) ::mkdir(folder.c_str(), 0700);
  for (const fs::path& part : {folder, folder / "images"}) {
    std::error_code error;
    fs::create_directories(part, error);
    if (error) return error.message();
    if (::access(part.c_str(), W_OK | X_OK) != 0) return std::strerror(errno);
  }
  // Where anybody may make folders, another user may have made this one.
  struct stat facts{};
  if (own && (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
              facts.st_uid != ::geteuid()))
    return "it belongs to another user";
  if (own && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return "";
}

struct Place {
  fs::path path;
  bool own;  // in a folder that everybody shares
  friend bool operator==(const Place&, const Place&) = default;
};

std::vector<Place> cache_places() {
  std::vector<Place> places;
  const char* const xdg = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (xdg && *xdg == '/')
    places.push_back({fs::path(xdg) / "warploom", false});
  else if (home && *home == '/')
    places.push_back({fs::path(home) / ".cache" / "warploom", false});
  places.push_back({temporary_folder() / fmt::format("warploom-cache-{}", ::geteuid()), true});
  return places;
}

CacheFolder look_for_cache_folder(const std::vector<Place>& places) {
  CacheFolder found;
  for (const Place& place : places) {
    const std::string why = why_unusable(place.path, place.own);
    if (why.empty()) {
      found.path = place.path;
      return found;
    }
    found.passed_over.push_back(fmt::format("{}: {}", place.path.string(), why));
  }
  static const ScratchFolder own("cache");  // one a process
  found.path = own.path();
  found.kept = false;
  return found;
}

std::mutex cache_mutex;
std::optional<CacheFolder> handed_over;
}  // namespace

CacheFolder find_cache_folder() {
  static std::vector<Place> looked_through;
  static CacheFolder found;
  const std::lock_guard lock(cache_mutex);
  if (handed_over) return *handed_over;
  const auto places = cache_places();
  if (places != looked_through) {
    found = look_for_cache_folder(places);
    looked_through = places;
  }
  return found;
}

fs::path cache_folder() {
  return find_cache_folder().path;
}

void set_cache_folder(const fs::path& path) {
  const std::lock_guard lock(cache_mutex);
  handed_over = CacheFolder{path};
}

ScratchFolder::ScratchFolder(std::string_view purpose, const fs::path& parent) {
  std::error_code ignored;
  static std::mutex mutex;
  static std::set<fs::path> swept;  // once a process
  const fs::path folder = parent.empty() ? temporary_folder() : parent;
  {
    const std::lock_guard lock(mutex);
    if (swept.insert(folder).second) sweep(folder);
  }
  const std::string name =
      fmt::format("warploom-{}-{}-{}", purpose, process_space(), unique_suffix());
  path_ = folder / (parent.empty() ? name : "." + name);
  fs::create_directories(path_, ignored);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}
}  // namespace warploom
