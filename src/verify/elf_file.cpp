#include "verify/elf_file.h"
#include <elf.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
namespace {
tl::unexpected<Error> unreadable(const std::string& place, const char* expected,
                                 std::string found) {
  return fail({ErrorCode::kCandidateForbidden, "a compiled candidate's ELF file cannot be read",
               place, expected, std::move(found),
               "compile plain functions; leave the file's own tables to compiler and linker"});
}

std::optional<std::string_view> part(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, size);
}

template <class T> T first_of(std::string_view bytes) {
  T out{};
  std::memcpy(&out, bytes.data(), sizeof(T));
  return out;
}

// Whole records; what is left behind the last one is not looked at.
template <class T> std::vector<T> records(std::string_view bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

// A limit, so that a million names of one endless string take no time.
constexpr size_t kLongestName = 4096;

std::optional<std::string_view> name_at(std::string_view names, uint64_t offset) {
  if (offset >= names.size()) return std::nullopt;
  const std::string_view name = names.substr(offset, kLongestName);
  const size_t end = name.find('\0');
  if (end == name.npos) return std::nullopt;
  return name.substr(0, end);
}

Status read_header(ElfFile& file, const std::string& place) {
  const auto bytes = part(file.bytes, 0, sizeof(Elf64_Ehdr));
  if (!bytes || std::memcmp(bytes->data(), ELFMAG, SELFMAG) != 0)
    return unreadable(place, "a shared object or a cubin", "another file");
  file.header = first_of<Elf64_Ehdr>(*bytes);
  const Elf64_Ehdr& header = file.header;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_ehsize != sizeof(Elf64_Ehdr))
    return unreadable(place, "ELF64, little-endian", "another class of ELF file");
  if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr))
    return unreadable(place, "program headers of 56 bytes", std::to_string(header.e_phentsize));
  if (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr))
    return unreadable(place, "section headers of 64 bytes", std::to_string(header.e_shentsize));
  return ok();
}

Status read_segments(ElfFile& file, const std::string& place) {
  const auto bytes =
      part(file.bytes, file.header.e_phoff, uint64_t{file.header.e_phnum} * sizeof(Elf64_Phdr));
  if (!bytes) return unreadable(place, "program headers within the file", "beyond its end");
  file.segments = records<Elf64_Phdr>(*bytes);
  for (const Elf64_Phdr& segment : file.segments)
    if (!part(file.bytes, segment.p_offset, segment.p_filesz))
      return unreadable(place, "segments within the file",
                        fmt::format("{} bytes at {:#x} of {}", segment.p_filesz, segment.p_offset,
                                    file.bytes.size()));
  return ok();
}

Status read_sections(ElfFile& file, const std::string& place) {
  const auto bytes =
      part(file.bytes, file.header.e_shoff, uint64_t{file.header.e_shnum} * sizeof(Elf64_Shdr));
  if (!bytes) return unreadable(place, "section headers within the file", "beyond its end");
  for (const Elf64_Shdr& header : records<Elf64_Shdr>(*bytes)) {
    if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
        !part(file.bytes, header.sh_offset, header.sh_size))
      return unreadable(place, "sections within the file",
                        fmt::format("{} bytes at {:#x} of {}", header.sh_size, header.sh_offset,
                                    file.bytes.size()));
    file.sections.push_back({"", header});
  }
  if (file.sections.empty()) return ok();
  if (file.header.e_shstrndx >= file.sections.size())
    return unreadable(place, "a section of names", fmt::format("{}", file.header.e_shstrndx));
  const std::string_view names = file.contents(file.sections[file.header.e_shstrndx]);
  for (ElfSection& section : file.sections) {
    const auto name = name_at(names, section.header.sh_name);
    if (!name) return unreadable(place, "names of sections", "one without an end");
    section.name = *name;
  }
  return ok();
}

// What PT_DYNAMIC says of a loader's tables.
Status read_dynamic(ElfFile& file, const std::string& place) {
  const auto segment = std::ranges::find(file.segments, PT_DYNAMIC, &Elf64_Phdr::p_type);
  if (segment == file.segments.end()) return ok();
  file.dynamic = records<Elf64_Dyn>(file.contents(*segment));
  const auto end = std::ranges::find(file.dynamic, DT_NULL, &Elf64_Dyn::d_tag);
  if (end == file.dynamic.end())
    return unreadable(place, "a dynamic section that ends with DT_NULL", "none");
  file.dynamic.erase(end, file.dynamic.end());
  const auto append = [&](int64_t address_tag, int64_t size_tag) -> Status {
    const uint64_t size = file.dynamic_value(size_tag);
    if (size == 0) return ok();
    const std::string_view bytes = file.at(file.dynamic_value(address_tag), size);
    if (bytes.empty() || size % sizeof(Elf64_Rela) != 0)
      return unreadable(place, "relocations of 24 bytes in what is loaded",
                        fmt::format("{} bytes at {:#x}", size, file.dynamic_value(address_tag)));
    const auto more = records<Elf64_Rela>(bytes);
    file.relocations.insert(file.relocations.end(), more.begin(), more.end());
    return ok();
  };
  WARPLOOM_CHECK(append(DT_RELA, DT_RELASZ));
  WARPLOOM_CHECK(append(DT_JMPREL, DT_PLTRELSZ));
  // No tag says how many symbols there are; the section's header does.
  for (const ElfSection& section : file.sections)
    if (section.header.sh_type == SHT_DYNSYM) {
      if (section.header.sh_addr != file.dynamic_value(DT_SYMTAB))
        return unreadable(place, "the symbols of .dynsym where DT_SYMTAB says", "elsewhere");
      WARPLOOM_TRY(file.symbols, file.symbols_of(section, place));
    }
  for (const Elf64_Rela& one : file.relocations)
    if (ELF64_R_SYM(one.r_info) != 0 && ELF64_R_SYM(one.r_info) >= file.symbols.size())
      return unreadable(
          place, "relocations by symbols that are there",
          fmt::format("symbol {} of {}", ELF64_R_SYM(one.r_info), file.symbols.size()));
  return ok();
}
}  // namespace

Result<ElfFile> ElfFile::read(std::string_view bytes, const std::string& place) {
  ElfFile file;
  file.bytes = bytes;
  for (const auto step : {&read_header, &read_segments, &read_sections, &read_dynamic})
    WARPLOOM_CHECK(step(file, place));
  return file;
}

std::string_view ElfFile::contents(const Elf64_Phdr& segment) const {
  return part(bytes, segment.p_offset, segment.p_filesz).value_or("");
}

std::string_view ElfFile::contents(const ElfSection& section) const {
  if (section.header.sh_type == SHT_NOBITS || section.header.sh_type == SHT_NULL) return "";
  return part(bytes, section.header.sh_offset, section.header.sh_size).value_or("");
}

std::string_view ElfFile::at(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr)
      if (const auto found = part(contents(segment), address - segment.p_vaddr, size))
        return *found;
  return {};
}

const ElfSection* ElfFile::section(std::string_view name) const {
  const auto found = std::ranges::find(sections, name, &ElfSection::name);
  return found == sections.end() ? nullptr : &*found;
}

Result<std::vector<ElfSymbol>> ElfFile::symbols_of(const ElfSection& table,
                                                   const std::string& place) const {
  if (table.header.sh_link >= sections.size())
    return unreadable(place, "a section of symbols' names", std::to_string(table.header.sh_link));
  const std::string_view names = contents(sections[table.header.sh_link]);
  std::vector<ElfSymbol> out;
  for (const Elf64_Sym& entry : records<Elf64_Sym>(contents(table))) {
    const auto name = name_at(names, entry.st_name);
    if (!name) return unreadable(place, "names of symbols", "one without an end");
    if (entry.st_shndx < SHN_LORESERVE && entry.st_shndx >= sections.size())
      return unreadable(place, "symbols in sections that are there",
                        fmt::format("'{}' in section {}", *name, entry.st_shndx));
    out.push_back({*name, entry});
  }
  return out;
}

uint64_t ElfFile::dynamic_value(int64_t tag, uint64_t otherwise) const {
  const auto found = std::ranges::find(dynamic, tag, &Elf64_Dyn::d_tag);
  return found == dynamic.end() ? otherwise : found->d_un.d_val;
}
}  // namespace warploom::verify
