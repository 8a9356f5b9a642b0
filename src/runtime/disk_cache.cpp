#include <fcntl.h>
#include <sys/stat.h>
#include <atomic>
#include <cstdlib>
#include "base/file.h"
#include "runtime/compilers.h"
namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

constexpr const char *kImage = ".image", *kSource = ".txt", *kLog = ".log";

// Bytes stored by this process since it last looked through the folder.
std::atomic<std::int64_t> unseen_bytes{-1};

void shrink(const DiskCache& cache) {
  std::vector<std::pair<fs::file_time_type, fs::path>> images;
  std::int64_t total = 0;
  std::error_code error;  // another process may be shrinking it as well
  for (const auto& file : fs::directory_iterator(cache.folder, error)) {
    total += static_cast<std::int64_t>(file.file_size(error));
    if (file.path().extension() == kImage) images.emplace_back(file.last_write_time(error), file.path());
  }
  if (total <= cache.cap_bytes) return;
  std::ranges::sort(images);
  if (!images.empty()) images.pop_back();  // the newest is the one just stored: its maker is about to read it
  for (auto& [used, file] : images) {
    if (total <= cache.cap_bytes - cache.cap_bytes / 10) break;
    for (const char* part : {kImage, kSource, kLog}) {
      total -= static_cast<std::int64_t>(fs::file_size(file.replace_extension(part), error));
      fs::remove(file, error);
    }
  }
}
}  // namespace
DiskCache image_cache() {
  constexpr std::int64_t kDefault = std::int64_t{2} << 30;
  const char* const text = std::getenv("WARPLOOM_CACHE_BYTES");
  char* end = nullptr;
  const long long cap = text ? std::strtoll(text, &end, 10) : -1;
  return {cache_folder() / "images", text && *text && *end == '\0' && cap >= 0 ? cap : kDefault};
}

std::optional<Image> DiskCache::find(const std::string& key) const {
  const fs::path path = folder / (key + kImage);
  // Setting the time of use doubles as the test of existence.
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return std::nullopt;
  return Image{path, read_file(folder / (key + kLog)).value_or("")};
}

Result<Image> DiskCache::store(const std::string& key, std::string_view image, std::string_view source,
                               std::string_view log) const {
  WARPLOOM_CHECK(make_folders(folder));
  const fs::path path = folder / (key + kImage);
  WARPLOOM_CHECK(write_file(folder / (key + kSource), source));
  WARPLOOM_CHECK(write_file(folder / (key + kLog), log));
  WARPLOOM_CHECK(write_file(path, image));  // last: whoever sees the image sees its log
  const auto bytes = static_cast<std::int64_t>(image.size() + source.size() + log.size());
  const std::int64_t before = unseen_bytes.fetch_add(bytes);
  if (before < 0 || before + bytes >= cap_bytes / 64) {
    unseen_bytes = 0;
    shrink(*this);
  }
  return Image{path, std::string(log)};
}
}  // namespace warploom::runtime
