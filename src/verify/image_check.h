// What a compiled kernel may be made of, read from its ELF file before anything loads it: a shared
// object by cpu_gate.h, a cubin by gpu_gate.h. Compiled by runtime::compile(), which adds nothing
// that they refuse. Within the room only.
#pragma once
#include "base/error.h"

namespace warploom::verify {
// ok, or candidate-forbidden with what was found in `place`.
Status check_image(const std::string& image, const std::string& place);
}  // namespace warploom::verify
