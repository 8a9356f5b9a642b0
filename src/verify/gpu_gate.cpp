#include "verify/gpu_gate.h"

namespace warploom::verify {
namespace {
tl::unexpected<Error> forbidden(const char* what, const std::string& place, const char* expected,
                                std::string_view found) {
  return fail({ErrorCode::kCandidateForbidden, what, place, expected, std::string(found),
               "compute from the buffers alone"});
}
}  // namespace

Status check_gpu_image(const ElfFile& file, const std::string& place) {
  for (const ElfSection& section : file.sections) {
    if (section.header.sh_size > 0 && section.name.starts_with(".nv.global"))
      return forbidden("a candidate has memory that lasts from call to call", place,
                       "constants only", section.name);
    if (section.header.sh_type != SHT_SYMTAB) continue;
    WARPLOOM_TRY(const std::vector<ElfSymbol> symbols, file.symbols_of(section, place));
    for (const ElfSymbol& symbol : symbols)
      // A cubin leaves the loader names of its own open: .nv.reservedSmem.offset0.
      if (symbol.entry.st_shndx == SHN_UNDEF && !symbol.name.empty() &&
          !symbol.name.starts_with(".nv."))
        return forbidden("a candidate calls what it may not", place, "mathematics and copies",
                         symbol.name);
  }
  return ok();
}
}  // namespace warploom::verify
