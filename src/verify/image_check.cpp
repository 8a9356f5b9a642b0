#include "verify/image_check.h"
#include <elf.h>
#include <fmt/format.h>
#include <cwchar>
#include <string>
#include "base/error.h"
#include "verify/cpu_gate.h"
#include "verify/elf_file.h"
#include "verify/gpu_gate.h"

namespace warploom::verify {
Status check_image(const std::string& image, const std::string& place) {
  WARPLOOM_TRY(const ElfFile file, ElfFile::read(image, place));
  if (file.header.e_machine == EM_CUDA) return check_gpu_image(file, place);
  return check_cpu_image(file, place);
}
}  // namespace warploom::verify
