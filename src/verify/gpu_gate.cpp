#include "verify/gpu_gate.h"
#include <elf.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "runtime/compilers.h"
#include "verify/elf_file.h"
#include "verify/ptx_check.h"

namespace warploom::verify {
namespace {
constexpr std::string_view kSections[] = {
#define CUBIN_SECTION(name) name,
#include "verify/cubin_parts.def"
};
const std::map<int, const char*> kNoAttributes = {
#define CUBIN_ATTRIBUTE(code, why) {code, why},
#include "verify/cubin_parts.def"
};
const std::set<int> kRegisters = {
#define SASS_REGISTER(code, name) code,
#include "verify/cubin_parts.def"
};

// Instructions of 16 bytes from sm_75 on: which one in bits 0 to 11, the special register in bits
// 72 to 79. S2R, CS2R (of 32 and 64 bits), S2UR and, from sm_120 on, CS2UR.
constexpr int64_t kInstructionBytes = 16;
constexpr std::array kReadsSpecial = {0x919, 0x805, 0x9c3, 0x8cb};

constexpr int kFrameSize = 0x11;
constexpr int kStackSize = 0x12;  // of a kernel with all that it calls

tl::unexpected<Error> forbidden(const char* what, const std::string& place, const char* expected,
                                std::string found) {
  return fail({ErrorCode::kCandidateForbidden, what, place, expected, std::move(found),
               "compute from the buffers and the block's numbers alone"});
}

bool is_known(std::string_view name) {
  return std::ranges::any_of(kSections, [&](std::string_view known) {
    return known.empty() ? name.empty() : name.starts_with(known);
  });
}

template <class T> T read_as(std::string_view bytes, size_t at) {
  T out{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

// An entry of .nv.info: {form, code, value} of 4 bytes, and in form 4 as many bytes more as the
// value says.
struct Attribute {
  int code = 0;
  std::string_view bytes;
};

Result<std::vector<Attribute>> attributes_of(std::string_view section, const std::string& place) {
  constexpr int kWithBytes = 4;
  std::vector<Attribute> out;
  for (size_t at = 0; at < section.size();) {
    if (section.size() - at < 4)
      return forbidden("a compiled candidate cannot be read", place, "whole attributes",
                       "a part of one");
    const auto form = read_as<uint8_t>(section, at);
    const size_t more = form == kWithBytes ? read_as<uint16_t>(section, at + 2) : 0;
    if (more > section.size() - at - 4)
      return forbidden("a compiled candidate cannot be read", place, "whole attributes",
                       "a part of one");
    out.push_back({read_as<uint8_t>(section, at + 1), section.substr(at + 4, more)});
    at += 4 + more;
  }
  return out;
}

bool holds_attributes(const ElfSection& section) {
  return section.name == ".nv.info" || section.name.starts_with(".nv.info.");
}

Status check_attributes(const ElfFile& file, const ElfSection& section, const std::string& place) {
  WARPLOOM_TRY(const std::vector<Attribute> attributes,
               attributes_of(file.contents(section), place));
  for (const Attribute& one : attributes)
    if (const auto found = kNoAttributes.find(one.code); found != kNoAttributes.end())
      return forbidden("a candidate calls what it may not", place, "functions of its own text",
                       found->second);
  return ok();
}

// What is left open: a cubin leaves the loader names of its own, .nv.reservedSmem.offset0.
Status check_symbols(const ElfFile& file, const ElfSection& section, const std::string& place) {
  WARPLOOM_TRY(const std::vector<ElfSymbol> symbols, file.symbols_of(section, place));
  for (const ElfSymbol& symbol : symbols)
    if (symbol.entry.st_shndx == SHN_UNDEF && !symbol.name.empty() &&
        !symbol.name.starts_with(".nv."))
      return forbidden("a candidate calls what it may not", place, "functions of its own text",
                       std::string(symbol.name));
  return ok();
}

// Relocations by symbols of this file: whatever they fill in is its own.
Status check_relocations(const ElfFile& file, const ElfSection& section, const std::string& place) {
  const std::string_view bytes = file.contents(section);
  const size_t size = section.header.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
  const ElfSection* const table = file.section(".symtab");
  if (bytes.empty() || !table) return ok();
  WARPLOOM_TRY(const std::vector<ElfSymbol> symbols, file.symbols_of(*table, place));
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    const auto info = read_as<uint64_t>(bytes, at + offsetof(Elf64_Rel, r_info));
    if (ELF64_R_SYM(info) >= symbols.size())
      return forbidden("a compiled candidate cannot be read", place,
                       "relocations by symbols that are there",
                       fmt::format("symbol {} of {}", ELF64_R_SYM(info), symbols.size()));
  }
  return ok();
}

Status check_code(std::string_view code, const std::string& place) {
  constexpr uint64_t kOpcode = 0xfff;
  for (size_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    const auto opcode = as_int(read_as<uint64_t>(code, at) & kOpcode);
    if (std::ranges::find(kReadsSpecial, opcode) == kReadsSpecial.end()) continue;
    const int which = read_as<uint8_t>(code, at + 9);
    if (kRegisters.contains(which)) continue;
    return forbidden("a candidate reads what tells one launch from another", place,
                     "where in the grid it is",
                     fmt::format("special register {:#x}, at {:#x} of its code", which, at));
  }
  return ok();
}

Status check_section(const ElfFile& file, const ElfSection& section, const std::string& place,
                     bool constants) {
  const std::string_view name = section.name;
  const bool empty = section.header.sh_size == 0;
  const bool kept_constant = constants && name == ".nv.global.init";
  if (!empty && !is_known(name) && !kept_constant) {
    const bool lasts = name.starts_with(".nv.global");
    return forbidden(lasts ? "a candidate has memory that lasts from call to call"
                           : "a compiled candidate has a part that no kernel needs",
                     place, lasts ? "constants only" : "code, constants and shared memory",
                     std::string(name));
  }
  if (section.header.sh_type == SHT_SYMTAB) WARPLOOM_CHECK(check_symbols(file, section, place));
  if (section.header.sh_type == SHT_RELA || section.header.sh_type == SHT_REL)
    WARPLOOM_CHECK(check_relocations(file, section, place));
  if (holds_attributes(section)) WARPLOOM_CHECK(check_attributes(file, section, place));
  if (name.starts_with(".text.")) WARPLOOM_CHECK(check_code(file.contents(section), place));
  return ok();
}
}  // namespace

Result<int64_t> local_bytes_of(const ElfFile& file, const std::string& place) {
  int64_t most = 0;
  for (const ElfSection& section : file.sections) {
    if (!holds_attributes(section)) continue;
    WARPLOOM_TRY(const std::vector<Attribute> attributes,
                 attributes_of(file.contents(section), place));
    for (const Attribute& one : attributes)
      if (one.code == kFrameSize || one.code == kStackSize)
        most = std::max(most, int64_t{read_as<uint32_t>(one.bytes, 4)});
  }
  return most;
}

Status check_gpu_image(const ElfFile& file, const std::string& place, const GpuText& text) {
  if (file.header.e_machine != EM_CUDA)
    return forbidden("a compiled candidate cannot be read", place, "a cubin", "another ELF file");
  // First what has a line of the source.
  if (text.foreign) WARPLOOM_CHECK(check_ptx(text.ptx, place, text.programmatic, text.source));
  for (const ElfSection& section : file.sections)
    WARPLOOM_CHECK(check_section(file, section, place, text.foreign));
  WARPLOOM_TRY(const int64_t local, local_bytes_of(file, place));
  if (local > kMostLocalBytes)
    return forbidden("a candidate's threads have too much local memory", place,
                     "at most 4096 bytes", fmt::format("{} bytes", local));
  return ok();
}

Result<int64_t> local_bytes_of(const std::string& image, const std::string& place) {
  WARPLOOM_TRY(const std::string bytes, read_file(image));
  WARPLOOM_TRY(const ElfFile file, ElfFile::read(bytes, place));
  return local_bytes_of(file, place);
}

Status check_gpu_kernel(const Kernel& kernel, const std::string& image, bool foreign) {
  WARPLOOM_TRY(const std::string bytes, read_file(image));
  WARPLOOM_TRY(const ElfFile file, ElfFile::read(bytes, kernel.name));
  if (!foreign) return check_gpu_image(file, kernel.name);
  WARPLOOM_TRY(const std::string ptx, read_file(runtime::ptx_beside(image)));
  return check_gpu_image(file, kernel.name, {ptx, true, kernel.programmatic_launch, kernel.source});
}
}  // namespace warploom::verify
