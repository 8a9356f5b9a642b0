#include "verify/cpu_gate.h"
#include <elf.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "verify/elf_file.h"

namespace warploom::verify {
namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // of addresses, from 0
constexpr uint64_t kKinds = SHF_WRITE | SHF_EXECINSTR;
constexpr size_t kMostSections = 200;

const std::set<int64_t> kSegments = {
#define WARPLOOM_SEGMENT(type) type,
#include "verify/cpu_image.def"
};

struct SectionRow {
  std::string_view name;
  uint32_t type;
  uint64_t kinds;
};

constexpr SectionRow kSections[] = {
#define WARPLOOM_SECTION(name, type, flags) {name, type, flags},
#include "verify/cpu_image.def"
};
constexpr std::string_view kUnloaded[] = {
#define WARPLOOM_UNLOADED(name) name,
#include "verify/cpu_image.def"
};

struct TagRow {
  int64_t tag;
  std::string_view section;
  uint64_t Elf64_Shdr::* field;
};

constexpr TagRow kTags[] = {
#define WARPLOOM_TAG(tag, section, field) {tag, section, &Elf64_Shdr::field},
#include "verify/cpu_image.def"
};

struct NumberRow {
  int64_t tag;
  uint64_t bits;
  uint64_t more;
};

constexpr NumberRow kNumbers[] = {
#define WARPLOOM_NUMBER(tag, bits, more) {tag, bits, more},
#include "verify/cpu_image.def"
};
constexpr std::string_view kNeeded[] = {
#define WARPLOOM_NEEDED(name) name,
#include "verify/cpu_image.def"
};
const std::set<uint64_t> kRelocations = {
#define WARPLOOM_RELOCATION(type) type,
#include "verify/cpu_image.def"
};

uint64_t page_after(uint64_t address) {
  return (address + kPage - 1) / kPage * kPage;
}

bool holds(uint64_t begin, uint64_t size, uint64_t address, uint64_t bytes) {
  return address >= begin && address - begin <= size && bytes <= size - (address - begin);
}

// One image under examination: each step is ok or says what is not.
class Examination {
 public:
  Examination(const ElfFile& file, const std::string& place) : file_(file), place_(place) {}

  Status header() const;
  Status segments();
  Status sections() const;
  Status dynamic() const;
  Status symbols() const;
  Status relocations() const;

 private:
  using Refusal = tl::unexpected<Error>;

  Refusal forbidden(const char* what, const char* expected, std::string found) const {
    return fail({ErrorCode::kCandidateForbidden, what, place_, expected, std::move(found),
                 "compute from the buffers alone"});
  }

  Refusal loads(std::string found) const {
    return forbidden("a candidate has code that runs when it is loaded", "a function",
                     std::move(found));
  }

  Refusal lasts(std::string found) const {
    return forbidden("a candidate has memory that lasts from call to call", "constants only",
                     std::move(found));
  }

  Refusal odd(const char* expected, std::string found) const {
    return forbidden("a candidate's file is not as a compiler makes it", expected,
                     std::move(found));
  }

  // Not silently less: what cannot be looked at is not judged.
  Refusal no_decoder() const {
    return fail({ErrorCode::kSandboxMissing, "there is no gate for AArch64", place_,
                 "code of x86-64, the only instructions that are looked at", "code of AArch64",
                 "compile it and compare its results yourself, or judge it on an x86-64"});
  }

  Status segment(const Elf64_Phdr& one) const;
  Status unknown_section(const ElfSection& section) const;
  Status loaded_section(const ElfSection& section) const;
  Status executable_bytes() const;
  Status entry(const Elf64_Dyn& one) const;
  Status needed(uint64_t offset) const;
  Status symbol(const ElfSymbol& one) const;
  Status relocation(const Elf64_Rela& one) const;
  const Elf64_Phdr* only(uint32_t type) const;  // nullptr: none, or several

  const ElfFile& file_;
  const std::string& place_;
  Elf64_Phdr sealed_{};  // what is made read-only after relocation
};

Status Examination::header() const {
  const Elf64_Ehdr& header = file_.header;
  if (header.e_machine == EM_AARCH64) return no_decoder();
  if (header.e_machine != EM_X86_64 || header.e_type != ET_DYN)
    return odd("a shared object for x86-64",
               fmt::format("machine {}, type {}", header.e_machine, header.e_type));
  if (header.e_ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT ||
      (header.e_ident[EI_OSABI] != ELFOSABI_SYSV && header.e_ident[EI_OSABI] != ELFOSABI_GNU) ||
      header.e_flags != 0)
    return odd("the first version of ELF for Linux", "another in its header");
  if (file_.sections.empty() || file_.sections.size() > kMostSections)
    return odd("section headers, at most 200", std::to_string(file_.sections.size()));
  return ok();
}

const Elf64_Phdr* Examination::only(uint32_t type) const {
  const auto found = std::ranges::find(file_.segments, type, &Elf64_Phdr::p_type);
  if (found == file_.segments.end()) return nullptr;
  const bool alone = std::ranges::count(file_.segments, type, &Elf64_Phdr::p_type) == 1;
  return alone ? &*found : nullptr;
}

Status Examination::segments() {
  const Elf64_Phdr* const stack = only(PT_GNU_STACK);
  if (!stack || stack->p_flags & PF_X) return odd("a stack that is not executable", "one that is");
  if (const Elf64_Phdr* const relro = only(PT_GNU_RELRO)) sealed_ = *relro;
  uint64_t free_from = 0;  // the first page that no segment has
  for (const Elf64_Phdr& one : file_.segments) {
    WARPLOOM_CHECK(segment(one));
    if (one.p_type != PT_LOAD || one.p_memsz == 0) continue;
    if (one.p_vaddr / kPage * kPage < free_from)
      return odd("segments with pages of their own, in order",
                 fmt::format("one at {:#x}", one.p_vaddr));
    free_from = page_after(one.p_vaddr + one.p_memsz);
  }
  if (!only(PT_DYNAMIC)) return odd("one dynamic section", "none, or several");
  return ok();
}

Status Examination::segment(const Elf64_Phdr& one) const {
  if (one.p_type == PT_TLS) return lasts("variables of a thread");
  if (!kSegments.contains(one.p_type))
    return odd("segments of a shared object", fmt::format("one of type {:#x}", one.p_type));
  if (one.p_vaddr > kMostBytes || one.p_memsz > kMostBytes || one.p_filesz > one.p_memsz)
    return odd("segments of 256 MB at most",
               fmt::format("{} bytes at {:#x}, {} of them in the file", one.p_memsz, one.p_vaddr,
                           one.p_filesz));
  if (one.p_type != PT_LOAD || one.p_memsz == 0) return ok();
  if (!(one.p_flags & PF_R) || one.p_flags & ~uint32_t{PF_R | PF_W | PF_X} ||
      (one.p_flags & PF_W && one.p_flags & PF_X))
    return odd("memory to read, to write or to execute",
               fmt::format("memory with the rights {:#x}", one.p_flags));
  if (one.p_offset % kPage != one.p_vaddr % kPage || one.p_align > (uint64_t{2} << 20) ||
      (one.p_align & (one.p_align - 1)) != 0 || one.p_align < kPage)
    return odd("segments that pages can be mapped for", fmt::format("one at {:#x}", one.p_vaddr));
  if (one.p_flags & PF_X && one.p_filesz != one.p_memsz)
    return odd("code that is in the file", "code that is not");
  if (!(one.p_flags & PF_W)) return ok();
  // A loader seals whole pages.
  const uint64_t end = one.p_vaddr + one.p_memsz;
  const uint64_t sealed_end = (sealed_.p_vaddr + sealed_.p_memsz) / kPage * kPage;
  if (one.p_vaddr < sealed_.p_vaddr || end > sealed_end)
    return lasts(fmt::format("{} bytes of writable variables",
                             end - std::clamp(sealed_end, one.p_vaddr, end)));
  return ok();
}

// Why a section that is on no row is refused.
Status Examination::unknown_section(const ElfSection& section) const {
  const uint32_t type = section.header.sh_type;
  if (section.header.sh_size == 0) return ok();  // some linkers leave empty ones
  if (type == SHT_FINI_ARRAY || section.name == ".fini") return loads("a destructor");
  if (type == SHT_INIT_ARRAY || type == SHT_PREINIT_ARRAY || section.name == ".init")
    return loads("a constructor");
  if (section.header.sh_flags & SHF_TLS) return lasts("variables of a thread");
  if (section.header.sh_flags & SHF_ALLOC && section.header.sh_flags & SHF_WRITE)
    return lasts(
        fmt::format("{} bytes of writable variables in {}", section.header.sh_size, section.name));
  return odd("the sections that a compiler makes",
             fmt::format("'{}' of type {:#x} with the flags {:#x}", section.name, type,
                         section.header.sh_flags));
}

Status Examination::sections() const {
  std::set<std::string_view> seen;
  for (const ElfSection& section : file_.sections) {
    if (section.header.sh_type == SHT_NULL) {
      if (&section == &file_.sections.front() && section.header.sh_size == 0 &&
          section.header.sh_flags == 0)
        continue;
      return odd("one section of no type, with nothing in it", "another");
    }
    if (!seen.insert(section.name).second)
      return odd("one section of a name", fmt::format("two named '{}'", section.name));
    if (section.header.sh_flags & SHF_ALLOC) {
      WARPLOOM_CHECK(loaded_section(section));
      continue;
    }
    const auto begins = [&](std::string_view row) { return section.name.starts_with(row); };
    if (std::ranges::none_of(kUnloaded, begins)) return unknown_section(section);
  }
  return executable_bytes();
}

Status Examination::loaded_section(const ElfSection& section) const {
  const Elf64_Shdr& header = section.header;
  const auto row = std::ranges::find_if(kSections, [&](const SectionRow& one) {
    return one.name == section.name && one.type == header.sh_type &&
           one.kinds == (header.sh_flags & kKinds) && !(header.sh_flags & SHF_TLS);
  });
  if (row == std::end(kSections) || header.sh_size == 0) return unknown_section(section);
  // It lies in one segment, with that segment's rights, and where its address says.
  for (const Elf64_Phdr& one : file_.segments) {
    if (one.p_type != PT_LOAD || !holds(one.p_vaddr, one.p_memsz, header.sh_addr, header.sh_size))
      continue;
    const uint64_t rights =
        (one.p_flags & PF_W ? SHF_WRITE : 0) | (one.p_flags & PF_X ? SHF_EXECINSTR : 0);
    if (rights != row->kinds) break;
    if (header.sh_type == SHT_NOBITS) return ok();
    if (holds(one.p_vaddr, one.p_filesz, header.sh_addr, header.sh_size) &&
        header.sh_offset - one.p_offset == header.sh_addr - one.p_vaddr)
      return ok();
  }
  return odd("sections within segments of the same rights", fmt::format("'{}'", section.name));
}

// What is executable and in no section is the filling between two.
Status Examination::executable_bytes() const {
  constexpr uint64_t kMostFilling = 64;
  std::vector<const Elf64_Shdr*> code;
  for (const ElfSection& section : file_.sections)
    if (section.header.sh_flags & SHF_ALLOC && section.header.sh_flags & SHF_EXECINSTR &&
        section.header.sh_size > 0)
      code.push_back(&section.header);
  std::ranges::sort(code, {}, &Elf64_Shdr::sh_addr);
  for (const Elf64_Phdr& one : file_.segments) {
    if (one.p_type != PT_LOAD || !(one.p_flags & PF_X)) continue;
    uint64_t known = one.p_vaddr;
    const auto filling_to = [&](uint64_t address) {
      const std::string_view filling = file_.at(known, address - known);
      return filling.size() <= kMostFilling &&
             filling.find_first_not_of(std::string_view("\0\x90\xcc", 3)) == filling.npos;
    };
    for (const Elf64_Shdr* section : code) {
      if (!holds(one.p_vaddr, one.p_memsz, section->sh_addr, section->sh_size)) continue;
      if (section->sh_addr < known || !filling_to(section->sh_addr))
        return odd("sections of code side by side", fmt::format("one at {:#x}", section->sh_addr));
      known = section->sh_addr + section->sh_size;
    }
    if (!filling_to(one.p_vaddr + one.p_memsz))
      return odd("code in sections of code alone", fmt::format("more at {:#x}", known));
  }
  return ok();
}

Status Examination::dynamic() const {
  const Elf64_Phdr* const segment = only(PT_DYNAMIC);
  const ElfSection* const section = file_.section(".dynamic");
  if (!segment || !section || segment->p_vaddr != section->header.sh_addr ||
      segment->p_offset != section->header.sh_offset ||
      segment->p_filesz != section->header.sh_size)
    return odd("the dynamic section where PT_DYNAMIC says", "elsewhere");
  std::set<int64_t> seen;
  for (const Elf64_Dyn& one : file_.dynamic) {
    if (one.d_tag != DT_NEEDED && !seen.insert(one.d_tag).second)
      return odd("one dynamic entry of a kind", fmt::format("two of {:#x}", one.d_tag));
    WARPLOOM_CHECK(entry(one));
  }
  std::string_view behind = file_.contents(*section);
  behind.remove_prefix(std::min(behind.size(), file_.dynamic.size() * sizeof(Elf64_Dyn)));
  if (behind.find_first_not_of('\0') != behind.npos)
    return odd("nothing behind the last dynamic entry", "something");
  for (const auto& [tag, name] : {std::pair{DT_RELASZ, ".rela.dyn"}, {DT_PLTRELSZ, ".rela.plt"}})
    if (file_.section(name) && !seen.contains(tag))
      return odd("relocations that the dynamic section names", fmt::format("'{}'", name));
  // Loaders take the first so many for R_X86_64_RELATIVE without a look.
  const uint64_t relative = file_.dynamic_value(DT_RELACOUNT);
  const auto other = std::ranges::find_if(file_.relocations, [](const Elf64_Rela& one) {
    return ELF64_R_TYPE(one.r_info) != R_X86_64_RELATIVE;
  });
  if (relative > as_uint64(other - file_.relocations.begin()))
    return odd("as many relative relocations as it says", std::to_string(relative));
  return ok();
}

Status Examination::entry(const Elf64_Dyn& one) const {
  const uint64_t value = one.d_un.d_val;
  const std::set<int64_t> initialisers = {DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_PREINIT_ARRAY,
                                          DT_PREINIT_ARRAYSZ};
  if (initialisers.contains(one.d_tag)) return loads("an initialiser");
  if (one.d_tag == DT_FINI || one.d_tag == DT_FINI_ARRAY || one.d_tag == DT_FINI_ARRAYSZ)
    return loads("a destructor");
  if (one.d_tag == DT_NEEDED) return needed(value);
  for (const TagRow& row : kTags) {
    const ElfSection* const section = row.tag == one.d_tag ? file_.section(row.section) : nullptr;
    if (section && section->header.*row.field == value) return ok();
  }
  for (const NumberRow& row : kNumbers)
    if (row.tag == one.d_tag && (value & ~row.more) == row.bits) return ok();
  return odd("the dynamic entries that a linker makes of functions",
             fmt::format("tag {:#x} with {:#x}", one.d_tag, value));
}

Status Examination::needed(uint64_t offset) const {
  const ElfSection* const section = file_.section(".dynstr");
  const std::string_view names = section ? file_.contents(*section) : "";
  const std::string_view from = names.substr(std::min<uint64_t>(offset, names.size()));
  const std::string_view name = from.substr(0, from.find('\0'));
  if (std::ranges::find(kNeeded, name) != std::end(kNeeded)) return ok();
  return forbidden("a candidate asks for a library", "mathematics and copies",
                   std::string(name.substr(0, 100)));
}

Status Examination::symbols() const {
  for (size_t i = 1; i < file_.symbols.size(); ++i)
    WARPLOOM_CHECK(symbol(file_.symbols[i]));
  return ok();
}

Status Examination::symbol(const ElfSymbol& one) const {
  if (one.type() == STT_GNU_IFUNC) return loads(fmt::format("a resolver of {}", one.name));
  if (one.type() == STT_TLS) return lasts(fmt::format("'{}', a variable of a thread", one.name));
  if (one.entry.st_shndx == SHN_UNDEF) {
    if (is_listed_function(one.name) && (one.type() == STT_FUNC || one.type() == STT_NOTYPE))
      return ok();
    return forbidden("a candidate calls what it may not", "mathematics and copies",
                     std::string(one.name));
  }
  if (one.entry.st_shndx >= SHN_LORESERVE ||
      (one.type() != STT_FUNC && one.type() != STT_OBJECT && one.type() != STT_NOTYPE))
    return odd("functions and constants", fmt::format("symbol '{}'", one.name));
  const Elf64_Shdr& home = file_.sections[one.entry.st_shndx].header;
  const bool code = home.sh_flags & SHF_EXECINSTR;
  if (!(home.sh_flags & SHF_ALLOC) ||
      !holds(home.sh_addr, home.sh_size, one.entry.st_value, one.entry.st_size) ||
      (one.type() == STT_FUNC && !code))
    return odd("symbols within their sections", fmt::format("symbol '{}'", one.name));
  return ok();
}

Status Examination::relocations() const {
  for (const Elf64_Rela& one : file_.relocations)
    WARPLOOM_CHECK(relocation(one));
  return ok();
}

Status Examination::relocation(const Elf64_Rela& one) const {
  const uint64_t type = ELF64_R_TYPE(one.r_info);
  const uint64_t symbol = ELF64_R_SYM(one.r_info);
  if (type == R_X86_64_IRELATIVE) return loads("a resolver of its own addresses");
  if (!kRelocations.contains(type))
    return odd("addresses of functions and constants", fmt::format("relocation of type {}", type));
  if ((type == R_X86_64_RELATIVE) != (symbol == 0))
    return odd("relocations by their symbols", fmt::format("one at {:#x}", one.r_offset));
  constexpr uint64_t kPointer = 8;
  const auto target = std::ranges::find_if(file_.sections, [&](const ElfSection& section) {
    return section.header.sh_flags & SHF_ALLOC && section.header.sh_type == SHT_PROGBITS &&
           section.header.sh_flags & SHF_WRITE &&
           holds(section.header.sh_addr, section.header.sh_size, one.r_offset, kPointer);
  });
  if (target == file_.sections.end())
    return odd("relocations in tables of pointers", fmt::format("one at {:#x}", one.r_offset));
  // What it makes of its symbol stays near it: not an address of anything else in the process.
  const auto addend = as_uint64(one.r_addend);
  const bool inside = type == R_X86_64_RELATIVE && file_.at(addend, 0).data() != nullptr;
  const bool own = symbol != 0 && file_.symbols[symbol].entry.st_shndx != SHN_UNDEF;
  const uint64_t to = own ? file_.symbols[symbol].entry.st_value + addend : addend;
  if (inside || (own && file_.at(to, 0).data() != nullptr) || (symbol != 0 && !own && addend == 0))
    return ok();
  return odd("pointers to what is loaded", fmt::format("a pointer to {:#x}", to));
}
}  // namespace

bool is_listed_function(std::string_view name) {
  static const std::set<std::string_view> kFunctions = {
#define WARPLOOM_MATHEMATICS(name) #name, #name "f",
#define WARPLOOM_COPY(name, ours) #name,
#include "verify/cpu_functions.def"
  };
  return kFunctions.contains(name);
}

Status check_cpu_image(const ElfFile& file, const std::string& place, const PlaceAt& place_at) {
  Examination examination(file, place);
  WARPLOOM_CHECK(examination.header());
  WARPLOOM_CHECK(examination.segments());
  WARPLOOM_CHECK(examination.sections());
  WARPLOOM_CHECK(examination.dynamic());
  WARPLOOM_CHECK(examination.symbols());
  WARPLOOM_CHECK(examination.relocations());
  return check_cpu_code(file, place, place_at);
}
}  // namespace warploom::verify
