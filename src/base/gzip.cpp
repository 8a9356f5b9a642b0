#include "base/gzip.h"
#include <zconf.h>
#include <zlib.h>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include "base/casts.h"

namespace warploom {
namespace {
constexpr int kGzip = 15 + 16;  // windowBits of zlib: the largest window, with gzip's header

Bytef* bytes_of(std::string& text) {
  return reinterpret_cast<Bytef*>(text.data());
}
}  // namespace

std::string gzipped(const std::string& text) {
  constexpr int kMemory = 8;
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY);
  std::string in = text;
  std::string out(deflateBound(&stream, in.size()), '\0');
  stream.next_in = bytes_of(in);
  stream.avail_in = as_uint32(in.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = as_uint32(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::optional<std::string> gunzipped(const std::string& bytes, size_t most) {
  z_stream stream = {};
  inflateInit2(&stream, kGzip);
  std::string in = bytes;
  stream.next_in = bytes_of(in);
  stream.avail_in = as_uint32(in.size());
  std::string out;
  std::array<char, 1 << 16> part = {};
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = as_uint32(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(part.data(), part.size() - stream.avail_out);
  }
  const bool is_whole = state == Z_STREAM_END && stream.avail_in == 0 && out.size() <= most;
  inflateEnd(&stream);
  if (!is_whole) return std::nullopt;
  return out;
}
}  // namespace warploom
