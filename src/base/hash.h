// Content keys: 64 and 128 bits of XXH3, for caches, archives and "is this the same text" (not for
// security).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace warploom {
uint64_t hash64(std::string_view text);
std::string hash_hex(std::string_view text);  // 32 hexadecimal digits
}  // namespace warploom
