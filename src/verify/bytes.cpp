#include "verify/bytes.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/random.h"
#include "graph/parallel.h"

namespace warploom::verify {
namespace {
constexpr int64_t kAlone = 64 << 20;  // bytes that one thread copies: caches hold them
constexpr int64_t kPiece = 1 << 20;   // of memory that threads share

// By several threads where that is worth waking them.
void for_pieces(int64_t bytes, const std::function<void(int64_t from, int64_t count)>& work) {
  if (bytes <= kAlone) return work(0, bytes);
  graph::parallel_for(ceil_div(bytes, kPiece), 0, [&](int64_t piece) {
    const int64_t from = piece * kPiece;
    work(from, std::min(kPiece, bytes - from));
  });
}
}  // namespace

void copy_bytes(void* to, const void* from, int64_t bytes) {
  for_pieces(bytes, [&](int64_t at, int64_t count) {
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, as_size(count));
  });
}

bool same_bytes(const void* a, const void* b, int64_t bytes) {
  std::atomic<bool> same = true;
  for_pieces(bytes, [&](int64_t at, int64_t count) {
    if (std::memcmp(static_cast<const char*>(a) + at, static_cast<const char*>(b) + at,
                    as_size(count)) != 0)
      same = false;
  });
  return same;
}

void fill_words(void* to, uint32_t word, int64_t bytes) {
  for_pieces(bytes, [&](int64_t at, int64_t count) {
    char* const begin = static_cast<char*>(to) + at;
    std::fill_n(reinterpret_cast<uint32_t*>(begin), count / 4, word);
    std::memcpy(begin + count / 4 * 4, &word, as_size(count % 4));
  });
}

// Who reads what no kernel wrote gets a number from 5e14 to 2e19 of either sign, or the like of
// another type.
uint32_t garbage(Random& random) {
  const auto digits = as_uint32(random.below(uint64_t{1} << 27));
  const auto sign = as_uint32(random.below(2)) << 31;
  return sign | (0x58000000u + digits);
}

// A number as outputs may hold from a call before: from 0.125 to 8 of either sign.
uint32_t ordinary(Random& random) {
  const auto digits = as_uint32(random.below(3 << 24));
  const auto sign = as_uint32(random.below(2)) << 31;
  return sign | (0x3e000000u + digits);
}

void fill_pattern(void* to, Random& random, int64_t bytes) {
  constexpr int64_t kPage = 4096;
  std::array<uint32_t, kPage / sizeof(uint32_t)> page{};
  for (uint32_t& word : page)
    word = garbage(random);
  for_pieces(bytes, [&](int64_t at, int64_t count) {
    for (int64_t done = 0; done < count; done += kPage) {
      const auto size = as_size(std::min(kPage, count - done));
      std::memcpy(static_cast<char*>(to) + at + done, page.data(), size);
    }
  });
}
}  // namespace warploom::verify
