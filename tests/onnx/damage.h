// Bytes with some of them damaged: flipped, set, cut, said twice or broken off. The same random
// numbers damage them the same.
#pragma once
#include <string>
#include "base/random.h"

namespace warploom {
// Every second one keeps its length, so that what surrounds the damage still reads.
inline std::string damaged(std::string bytes, Random& random) {
  const bool same_length = random.below(2) == 0;
  for (uint64_t edits = 1 + random.below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = random.below(bytes.size());
    const size_t from = random.below(bytes.size());
    switch (random.below(same_length ? 4 : 9)) {
      case 0:
      case 1: bytes[at] = static_cast<char>(random.below(256)); break;
      case 2: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8))); break;
      case 3: bytes[at] = bytes[from]; break;
      case 4: bytes.resize(at); break;
      case 5: bytes.insert(from, bytes.substr(at, 1 + random.below(64))); break;
      case 6: bytes.erase(at, 1 + random.below(64)); break;
      case 7: bytes.erase(at, 1 + random.below(4)); break;
      default:
        bytes.insert(at,
                     std::string(1 + random.below(9),
                                 static_cast<char>(random.below(2) ? 0xff : random.below(256))));
    }
  }
  return bytes.empty() ? " " : bytes;
}
}  // namespace warploom
