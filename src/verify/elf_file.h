// An ELF64 file's tables, read from bytes that nobody vouches for.
//
// ElfFile::read() copies the tables out and looks at nothing beyond the bytes: whatever says where
// something lies or how much there is of it is checked first, so that who uses the tables need not.
// What the tables mean is not judged here (cpu_gate.h does that), only that they can be read.
//
//   WARPLOOM_TRY(const ElfFile file, ElfFile::read(image, "kernel 'mm'"));
//   for (const Elf64_Phdr& segment : file.segments)
//     if (segment.p_type == PT_LOAD) copy(file.contents(segment), segment.p_vaddr);
//   for (const Elf64_Rela& one : file.relocations) relocate(one);  // DT_RELA's, then DT_JMPREL's
//
// Sizes are bytes. Addresses are the file's own, from 0, as p_vaddr has them. The bytes must
// outlive the ElfFile. Errors: candidate-forbidden, with what cannot be read and where. Format:
// System V ABI, "Object Files"; tables of the dynamic section by the x86-64 psABI. Within the room
// only.
#pragma once
#include <elf.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::verify {
struct ElfSection {
  std::string_view name;
  Elf64_Shdr header;
};

struct ElfSymbol {
  std::string_view name;
  Elf64_Sym entry;

  uint8_t type() const { return ELF64_ST_TYPE(entry.st_info); }

  uint8_t binding() const { return ELF64_ST_BIND(entry.st_info); }
};

struct ElfFile {
  std::string_view bytes;  // the whole file
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<ElfSection> sections;
  // Of a shared object, as a loader sees them: PT_DYNAMIC's entries before DT_NULL, the symbols of
  // .dynsym by their number (the first is the null symbol), the relocations of DT_RELA and behind
  // them those of DT_JMPREL. Empty where there is no PT_DYNAMIC.
  std::vector<Elf64_Dyn> dynamic;
  std::vector<ElfSymbol> symbols;
  std::vector<Elf64_Rela> relocations;

  static Result<ElfFile> read(std::string_view bytes, const std::string& place);

  // The bytes of the file behind a segment or a section; none of a section that has none.
  std::string_view contents(const Elf64_Phdr& segment) const;
  std::string_view contents(const ElfSection& section) const;
  // The bytes of the file that a PT_LOAD puts at `address`; nothing where they are not all of one.
  std::string_view at(uint64_t address, uint64_t size) const;
  const ElfSection* section(std::string_view name) const;  // nullptr: there is none
  // The symbols of a SHT_SYMTAB or SHT_DYNSYM section.
  Result<std::vector<ElfSymbol>> symbols_of(const ElfSection& table,
                                            const std::string& place) const;
  // The value of the first entry with this tag, or `otherwise`.
  uint64_t dynamic_value(int64_t tag, uint64_t otherwise = 0) const;
};
}  // namespace warploom::verify
