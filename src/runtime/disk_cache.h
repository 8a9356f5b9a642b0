// DiskCache: compiled images by the content that made them.
//
// An entry is KEY.SUFFIX, with its source KEY.txt beside it and the compiler's log KEY.log. Entries are written under another name
// and renamed, so a reader finds whole files or none, from any number of processes. When the folder outgrows the cap (2 GiB, or
// $WARPLOOM_CACHE_BYTES), the entries not used for longest go.
#pragma once
#include <filesystem>
#include <optional>
#include "base/error.h"
namespace warploom::runtime {
class DiskCache {
 public:
  // The folder cache_folder()/name, made when first written to.
  explicit DiskCache(std::string_view name, std::string_view suffix);
  DiskCache(std::filesystem::path folder, std::string_view suffix, std::int64_t cap_bytes);

  struct Entry {
    std::filesystem::path path;
    std::string log;
  };
  std::optional<Entry> find(const std::string& key) const;  // marks it as used
  // Failure to store is an error the caller may pass over: the image itself is at hand.
  Result<std::filesystem::path> store(const std::string& key, std::string_view image, std::string_view source,
                                      std::string_view log);
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void shrink() const;
  std::filesystem::path folder_;
  std::string suffix_;
  std::int64_t cap_bytes_;
};
}  // namespace warploom::runtime
