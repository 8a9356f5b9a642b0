#include "verify/image_check.h"
#include <elf.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cwchar>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
namespace {
// What a kernel may call, besides these with an f behind them: fp32's.
const std::set<std::string, std::less<>> kMathematics = {
    "acos",   "acosh",    "asin",      "asinh",    "atan",   "atan2",  "atanh",  "cbrt",
    "ceil",   "copysign", "cos",       "cosh",     "erf",    "erfc",   "exp",    "exp2",
    "expm1",  "fabs",     "fdim",      "floor",    "fma",    "fmax",   "fmin",   "fmod",
    "frexp",  "hypot",    "ldexp",     "log",      "log10",  "log1p",  "log2",   "lrint",
    "lround", "modf",     "pow",       "rint",     "round",  "scalbn", "sin",    "sincos",
    "sinh",   "sqrt",     "tan",       "tanh",     "tgamma", "trunc",  "lgamma", "nearbyint",
    "llrint", "llround",  "remainder", "roundeven"};
// The compiler's own calls, some with a distribution's hardening.
const std::set<std::string, std::less<>> kCopies = {
    "memcpy",       "memset",       "memmove",       "memcmp",
    "__memcpy_chk", "__memset_chk", "__memmove_chk", "__stack_chk_fail"};

bool is_allowed(std::string_view name) {
  if (kCopies.contains(name) || kMathematics.contains(name)) return true;
  if (!name.ends_with('f')) return false;
  name.remove_suffix(1);
  return kMathematics.contains(name);
}

// `count` records at `offset` of the file; fewer where it ends before.
template <class T> std::vector<T> table(std::string_view file, uint64_t offset, uint64_t count) {
  if (offset > file.size()) return {};
  const uint64_t there = (file.size() - offset) / sizeof(T);
  std::vector<T> out(std::min<uint64_t>(count, there));
  if (!out.empty()) std::memcpy(out.data(), file.data() + offset, out.size() * sizeof(T));
  return out;
}

template <class T> std::vector<T> contents(std::string_view file, const Elf64_Shdr& section) {
  return table<T>(file, section.sh_offset, section.sh_size / sizeof(T));
}

std::string name_at(const std::vector<char>& names, uint64_t offset) {
  const auto place = std::min<uint64_t>(offset, names.size());
  const auto begin = names.begin() + static_cast<ptrdiff_t>(place);
  return {begin, std::find(begin, names.end(), '\0')};
}
}  // namespace

Status check_image(const std::string& image, const std::string& place) {
  const auto forbidden = [&](const char* what, const char* expected, std::string found) {
    return fail({ErrorCode::kCandidateForbidden, what, place, expected, std::move(found),
                 "compute from the buffers alone"});
  };
  const auto loads =
      std::bind_front(forbidden, "a candidate has code that runs when it is loaded", "a function");
  const auto lasts = std::bind_front(
      forbidden, "a candidate has memory that lasts from call to call", "constants only");
  const auto headers = table<Elf64_Ehdr>(image, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0)
    return forbidden("a compiled candidate is no ELF file", "a shared object or a cubin",
                     "another file");
  const Elf64_Ehdr& header = headers[0];
  const bool gpu = header.e_machine == EM_CUDA;
  const auto sections = table<Elf64_Shdr>(image, header.e_shoff, header.e_shnum);
  const auto names_of = [&](uint64_t section) {
    if (section >= sections.size()) return std::vector<char>();
    return contents<char>(image, sections[section]);
  };
  const std::vector<char> section_names = names_of(header.e_shstrndx);
  for (const Elf64_Shdr& section : sections) {
    const std::string name = name_at(section_names, section.sh_name);
    if (gpu && section.sh_size > 0 && name.starts_with(".nv.global")) return lasts(name);
    if (section.sh_type == (gpu ? SHT_SYMTAB : SHT_DYNSYM)) {
      const std::vector<char> names = names_of(section.sh_link);
      for (const Elf64_Sym& symbol : contents<Elf64_Sym>(image, section)) {
        const std::string wanted = name_at(names, symbol.st_name);
        if (!gpu && ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
          return loads("a resolver of " + wanted);
        // A cubin leaves the loader names of its own open: .nv.reservedSmem.offset0.
        if (symbol.st_shndx == SHN_UNDEF && !wanted.empty() &&
            (gpu ? !wanted.starts_with(".nv.") : !is_allowed(wanted)))
          return forbidden("a candidate calls what it may not", "mathematics and copies", wanted);
      }
    }
    if (gpu) continue;
    if (section.sh_type == SHT_INIT_ARRAY || section.sh_type == SHT_PREINIT_ARRAY ||
        section.sh_type == SHT_FINI_ARRAY)
      return loads(section.sh_type == SHT_FINI_ARRAY ? "a destructor" : "a constructor");
    if (section.sh_type == SHT_DYNAMIC)
      for (const Elf64_Dyn& entry : contents<Elf64_Dyn>(image, section))
        if (entry.d_tag == DT_INIT || entry.d_tag == DT_FINI) return loads("an initialiser");
    if (section.sh_type == SHT_RELA)
      for (const Elf64_Rela& entry : contents<Elf64_Rela>(image, section))
        if (ELF64_R_TYPE(entry.r_info) == R_X86_64_IRELATIVE)
          return loads("a resolver of its own addresses");
  }
  // What the loader fills in and then makes read-only may be writable in the file; nothing else.
  const auto segments = table<Elf64_Phdr>(image, header.e_phoff, gpu ? 0 : header.e_phnum);
  const auto relro = std::ranges::find(segments, PT_GNU_RELRO, &Elf64_Phdr::p_type);
  const Elf64_Phdr sealed = relro != segments.end() ? *relro : Elf64_Phdr{};
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_TLS) return lasts("variables of a thread");
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W) || segment.p_memsz == 0) continue;
    const uint64_t end = segment.p_vaddr + segment.p_memsz;
    const uint64_t sealed_end = sealed.p_vaddr + sealed.p_memsz;
    if (segment.p_vaddr < sealed.p_vaddr || end > sealed_end)
      return lasts(fmt::format("{} bytes of writable variables",
                               end - std::max(segment.p_vaddr, sealed_end)));
  }
  return ok();
}
}  // namespace warploom::verify
