// What a compiled GPU kernel may be made of, read from its cubin before anything loads it: no
// global variables, which would outlive a launch, and no calls (printf, malloc, launches of its
// own). Within the room only.
#pragma once
#include "verify/elf_file.h"

namespace warploom::verify {
// ok, or candidate-forbidden with what was found in `place`.
Status check_gpu_image(const ElfFile& file, const std::string& place);
}  // namespace warploom::verify
