// Bytes of large memory: copied, compared and filled, by several threads where that is worth waking
// them; and what memory is filled with that a candidate may find. Within the room only.
//
//   fill_words(output, runtime::kPoison, bytes);   // also where bytes are no multiple of 4
//   fill_words(scratch, garbage(random), bytes);   // who reads it unwritten is visibly wrong
#pragma once
#include <cstdint>
#include "base/random.h"

namespace warploom::verify {
void copy_bytes(void* to, const void* from, int64_t bytes);
bool same_bytes(const void* a, const void* b, int64_t bytes);
void fill_words(void* to, uint32_t word, int64_t bytes);
// A page of garbage() words, again and again.
void fill_pattern(void* to, Random& random, int64_t bytes);
uint32_t garbage(Random& random);
uint32_t ordinary(Random& random);
}  // namespace warploom::verify
