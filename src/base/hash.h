// Non-cryptographic hashes of text (XXH3): keys of caches and archives, and comparison of texts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace warploom {
uint64_t hash64(std::string_view text);       // XXH3, 64 bits
std::string hash_hex(std::string_view text);  // XXH3, 128 bits, as 32 hexadecimal digits
}  // namespace warploom
