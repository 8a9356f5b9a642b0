// Gzip: texts as small files, and back.
//
//   const std::string bytes = gzipped(text);                         // no time in it: equal texts
//                                                                    // give equal bytes
//   const std::optional<std::string> text = gunzipped(bytes, 1 << 20);
//
// Back it gives nothing where the bytes are no gzip file, are cut off, have something behind their
// end, or are more than `most` bytes unpacked: a small file may unpack to gigabytes.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace warploom {
std::string gzipped(const std::string& text);
std::optional<std::string> gunzipped(const std::string& bytes, size_t most);
}  // namespace warploom
