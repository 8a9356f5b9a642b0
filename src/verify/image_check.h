// What a compiled kernel may be made of, read from its ELF file before anything loads it.
//
// A kernel is a pure function of its buffers. So a shared object asks for nothing but mathematics
// and copies of memory, has no code that runs when it is loaded, and no memory that is writable
// once it is: where it could keep an answer for the next call there is nothing. A cubin has no
// global variables and calls nothing (printf, malloc, launches of its own). Compiled by
// runtime::compile(), which adds nothing of the kind either. Within the room only.
#pragma once
#include "base/error.h"

namespace warploom::verify {
// ok, or candidate-forbidden with what was found in `place`.
Status check_image(const std::string& image, const std::string& place);
}  // namespace warploom::verify
