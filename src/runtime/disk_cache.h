// DiskCache: compiled images by the content that made them.
//
// An entry is KEY.image, with its source KEY.txt beside it and the compiler's log KEY.log. Entries are written under another name
// and renamed, so a reader finds whole files or none, from any number of processes. When the folder outgrows the cap (2 GiB, or
// $WARPLOOM_CACHE_BYTES), the entries not used for longest go.
#pragma once
#include <filesystem>
#include <optional>
#include "base/error.h"
namespace warploom::runtime {
struct Image {
  std::filesystem::path path;  // ~/.cache/warploom/images/5f…e1.image
  std::string log;             // the compiler's own words; of CUDA images also ptxas's, with figures
};

class DiskCache {
 public:
  DiskCache();  // the folder cache_folder()/images, made when first written to
  DiskCache(std::filesystem::path folder, std::int64_t cap_bytes) : folder_(std::move(folder)), cap_bytes_(cap_bytes) {}
  std::optional<Image> find(const std::string& key) const;  // marks it as used
  Result<Image> store(const std::string& key, std::string_view image, std::string_view source, std::string_view log);

 private:
  void shrink() const;
  std::filesystem::path folder_;
  std::int64_t cap_bytes_;
};
}  // namespace warploom::runtime
