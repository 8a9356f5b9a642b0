#include "runtime/disk_cache.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <atomic>
#include <cstdlib>
#include "base/file.h"
namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

std::int64_t cap_from_environment() {
  constexpr std::int64_t kDefault = std::int64_t{2} << 30;
  const char* text = std::getenv("WARPLOOM_CACHE_BYTES");
  if (!text || !*text) return kDefault;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' && value >= 0 ? value : kDefault;
}

// Bytes stored by this process since it last looked through the folder.
std::atomic<std::int64_t> unseen_bytes{-1};
}  // namespace
DiskCache::DiskCache(std::string_view name, std::string_view suffix)
    : DiskCache(cache_folder() / name, suffix, cap_from_environment()) {}
DiskCache::DiskCache(fs::path folder, std::string_view suffix, std::int64_t cap_bytes)
    : folder_(std::move(folder)), suffix_(suffix), cap_bytes_(cap_bytes) {}

std::optional<DiskCache::Entry> DiskCache::find(const std::string& key) const {
  const fs::path path = folder_ / (key + suffix_);
  // Setting the time of use doubles as the test of existence.
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return std::nullopt;
  auto log = read_file(folder_ / (key + ".log"));
  return Entry{path, log ? std::move(*log) : std::string()};
}

Result<fs::path> DiskCache::store(const std::string& key, std::string_view image, std::string_view source, std::string_view log) {
  WARPLOOM_CHECK(make_folders(folder_));
  const fs::path path = folder_ / (key + suffix_);
  WARPLOOM_CHECK(write_file(folder_ / (key + ".txt"), source));
  WARPLOOM_CHECK(write_file(folder_ / (key + ".log"), log));
  WARPLOOM_CHECK(write_file(path, image));  // last: whoever sees the image sees its log
  const auto bytes = static_cast<std::int64_t>(image.size() + source.size() + log.size());
  const std::int64_t before = unseen_bytes.fetch_add(bytes);
  if (before < 0 || before + bytes >= cap_bytes_ / 64) {
    unseen_bytes = 0;
    shrink();
  }
  return path;
}

void DiskCache::shrink() const {
  struct Group {
    std::int64_t bytes = 0;
    std::int64_t used = 0;  // nanoseconds, of the image
    std::vector<fs::path> files;
  };
  std::map<std::string, Group> groups;
  std::int64_t total = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder_, error)) {
    struct stat info {};
    if (::stat(file.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    Group& group = groups[file.path().stem().string()];
    group.bytes += info.st_size;
    group.used = std::max(group.used, std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
    group.files.push_back(file.path());
    total += info.st_size;
  }
  if (total <= cap_bytes_) return;
  std::vector<const Group*> by_use;
  for (const auto& [key, group] : groups) by_use.push_back(&group);
  std::sort(by_use.begin(), by_use.end(), [](const Group* a, const Group* b) { return a->used < b->used; });
  if (!by_use.empty()) by_use.pop_back();  // the newest is the one just stored: its maker is about to read it
  const std::int64_t goal = cap_bytes_ - cap_bytes_ / 10;
  for (const Group* group : by_use) {
    if (total <= goal) break;
    for (const fs::path& file : group->files) fs::remove(file, error);
    total -= group->bytes;
  }
}
}  // namespace warploom::runtime
