// Bytes with some of them damaged: flipped, set, cut, said twice or broken off. The same random numbers damage them the same.
#pragma once
#include <string>
#include "base/random.h"
namespace warploom {
inline std::string damaged(std::string bytes, Random& random) {
  for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
    if (bytes.empty()) return " ";
    const std::size_t at = random.below(bytes.size());
    switch (random.below(16)) {
      case 0: bytes.resize(at); break;
      case 1: bytes.insert(random.below(bytes.size()), bytes.substr(at, 1 + random.below(64))); break;
      case 2: bytes.erase(at, 1 + random.below(64)); break;
      case 3:
      case 4:
      case 5: bytes.erase(at, 1 + random.below(4)); break;
      case 6:
      case 7:
      case 8: bytes[at] = static_cast<char>(random.below(256)); break;
      case 9:
      case 10:
      case 11: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8))); break;
      default:
        bytes.insert(at, std::string(1 + random.below(9), static_cast<char>(random.below(2) ? 0xff : random.below(256))));
    }
  }
  return bytes.empty() ? " " : bytes;
}
}  // namespace warploom
