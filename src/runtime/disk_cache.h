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

struct DiskCache {
  std::filesystem::path folder;  // made when first written to
  std::int64_t cap_bytes = 0;
  std::optional<Image> find(const std::string& key) const;  // marks it as used
  Result<Image> store(const std::string& key, std::string_view image, std::string_view source, std::string_view log) const;
};
DiskCache image_cache();  // cache_folder()/images, with the environment's cap
}  // namespace warploom::runtime
