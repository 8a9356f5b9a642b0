#include <Zydis/DecoderTypes.h>
#include <Zydis/MetaInfo.h>
#include <Zydis/Mnemonic.h>
#include <Zydis/SharedTypes.h>
#include <elf.h>
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "verify/cpu_gate.h"
#include "verify/disassembler.h"
#include "verify/elf_file.h"

namespace warploom::verify {
namespace {
template <size_t Size, class Index>
constexpr std::array<bool, Size> marks(std::initializer_list<Index> ones) {
  std::array<bool, Size> out{};
  for (const Index one : ones)
    out[as_size(one)] = true;
  return out;
}

constexpr auto kIsaSets = marks<ZYDIS_ISA_SET_MAX_VALUE + 1, ZydisISASet>({
#define WARPLOOM_ISA_SET(name) ZYDIS_ISA_SET_##name,
#include "verify/cpu_instructions.def"
});
constexpr auto kInstructions = marks<ZYDIS_MNEMONIC_MAX_VALUE + 1, ZydisMnemonic>({
#define WARPLOOM_INSTRUCTION(name) ZYDIS_MNEMONIC_##name,
#include "verify/cpu_instructions.def"
});

struct Reason {
  ZydisMnemonic instruction;
  const char* does;
};

constexpr Reason kReasons[] = {
#define WARPLOOM_NO_COMPUTATION(name, does) {ZYDIS_MNEMONIC_##name, does},
#include "verify/cpu_instructions.def"
};
constexpr auto kNoComputation = marks<ZYDIS_MNEMONIC_MAX_VALUE + 1, ZydisMnemonic>({
#define WARPLOOM_NO_COMPUTATION(name, does) ZYDIS_MNEMONIC_##name,
#include "verify/cpu_instructions.def"
});

bool has_prefix(const ZydisDecodedInstruction& one, uint8_t value) {
  const auto* const end = one.raw.prefixes + one.raw.prefix_count;
  return std::find_if(one.raw.prefixes, end,
                      [&](const auto& prefix) { return prefix.value == value; }) != end;
}

// A load of what the stack's protector compares with, in all forms that compilers have: mov, sub,
// xor or cmp of a register and fs:0x28.
bool is_stack_protector(const ZydisDecodedInstruction& one) {
  constexpr std::array<uint8_t, 4> kLoads = {0x8b, 0x2b, 0x33, 0x3b};
  return one.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
         std::ranges::find(kLoads, one.opcode) != kLoads.end() && one.raw.modrm.mod == 0 &&
         one.raw.modrm.rm == 4 && one.raw.sib.base == 5 && one.raw.sib.index == 4 &&
         !(one.attributes & ZYDIS_ATTRIB_HAS_EVEX) && one.raw.rex.X == 0 &&
         one.raw.disp.value == 0x28;
}

// Why an instruction is refused that is known by its name, or nothing.
const char* form_refused(const ZydisDecodedInstruction& one) {
  constexpr uint8_t kFs = 0x64;
  constexpr uint8_t kGs = 0x65;
  if (one.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) return "is the system's";
  if (one.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return "goes to another segment";
  if (has_prefix(one, kGs) || (has_prefix(one, kFs) && !is_stack_protector(one)))
    return "reaches memory of the thread";
  const bool first = one.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
  const bool second = one.opcode_map == ZYDIS_OPCODE_MAP_0F;
  const bool moves = one.mnemonic == ZYDIS_MNEMONIC_MOV;
  const bool stacks = one.mnemonic == ZYDIS_MNEMONIC_PUSH || one.mnemonic == ZYDIS_MNEMONIC_POP;
  if ((moves && first && (one.opcode == 0x8c || one.opcode == 0x8e)) || (stacks && second))
    return "reaches a segment's register";
  if (moves && second) return "reaches a register of the system";
  return nullptr;
}

// What it does that it may not; nothing where it may be.
const char* refused(const ZydisDecodedInstruction& one) {
  if (kNoComputation[one.mnemonic])
    return std::ranges::find(kReasons, one.mnemonic, &Reason::instruction)->does;
  if (!kIsaSets[one.meta.isa_set] && !kInstructions[one.mnemonic])
    return "is not on the list of instructions that compute, move or branch";
  return form_refused(one);
}

// rdrand, rdseed or rdpid, by their bytes.
constexpr size_t kRandomBytes = 3;

bool is_random(std::string_view bytes) {
  return bytes[0] == '\x0f' && bytes[1] == '\xc7' && static_cast<uint8_t>(bytes[2]) >= 0xf0;
}

// The executable sections of one image.
class Code {
 public:
  Code(const ElfFile& file, const std::string& place, const PlaceAt& place_at,
       const Disassembler& zydis)
      : file_(file), place_(place), place_at_(place_at), zydis_(zydis) {}

  Status decode();
  Status check_targets() const;
  Status check_pointers() const;

 private:
  struct Section {
    uint64_t begin;
    std::string_view bytes;
    std::vector<bool> starts;  // a byte: an instruction begins there
  };

  struct Jump {
    uint64_t from;
    uint64_t to;
  };

  Status decode(Section& section);
  Status check(const ZydisDecodedInstruction& one, std::string_view rest, uint64_t address);
  const Section* section_of(uint64_t address) const;
  bool starts_at(uint64_t address) const;
  std::string where(uint64_t address) const;

  tl::unexpected<Error> forbidden(std::string found, uint64_t address) const {
    return fail({ErrorCode::kCandidateForbidden,
                 "a candidate has an instruction that it may not have",
                 place_at_ ? place_at_(address) : place_,
                 "arithmetic, moves, and branches to instructions of its own",
                 fmt::format("{} at {}", found, where(address)),
                 "compute from the buffers alone, in plain C++ or with the vectors' intrinsics"});
  }

  const ElfFile& file_;
  const std::string& place_;
  const PlaceAt& place_at_;
  const Disassembler& zydis_;
  std::vector<Section> sections_;
  std::vector<Jump> jumps_;
};

Status Code::decode() {
  for (const ElfSection& section : file_.sections)
    if (section.header.sh_flags & SHF_EXECINSTR && section.header.sh_flags & SHF_ALLOC) {
      const std::string_view bytes = file_.contents(section);
      sections_.push_back({section.header.sh_addr, bytes, std::vector<bool>(bytes.size())});
    }
  for (Section& section : sections_)
    WARPLOOM_CHECK(decode(section));
  return ok();
}

Status Code::decode(Section& section) {
  ZydisDecodedInstruction one;
  for (size_t at = 0; at < section.bytes.size(); at += one.length) {
    const std::string_view rest = section.bytes.substr(at);
    if (!zydis_.decode(rest, one))
      return forbidden("bytes that are no instruction", section.begin + at);
    section.starts[at] = true;
    WARPLOOM_CHECK(check(one, rest, section.begin + at));
  }
  return ok();
}

Status Code::check(const ZydisDecodedInstruction& one, std::string_view rest, uint64_t address) {
  if (const char* const does = refused(one))
    return forbidden(fmt::format("{}, which {},", zydis_.name(one.mnemonic), does), address);
  for (size_t i = 1; i < one.length && i + kRandomBytes <= rest.size(); ++i)
    if (is_random(rest.substr(i)))
      return forbidden(
          fmt::format("rdrand, rdseed or rdpid within the bytes of {}", zydis_.name(one.mnemonic)),
          address);
  for (const auto& immediate : one.raw.imm)
    if (immediate.size != 0 && immediate.is_relative)
      jumps_.push_back({address, address + one.length + as_uint64(immediate.value.s)});
  return ok();
}

const Code::Section* Code::section_of(uint64_t address) const {
  for (const Section& section : sections_)
    if (address >= section.begin && address - section.begin < section.bytes.size()) return &section;
  return nullptr;
}

bool Code::starts_at(uint64_t address) const {
  const Section* const section = section_of(address);
  return section && section->starts[address - section->begin];
}

Status Code::check_targets() const {
  for (const Jump& jump : jumps_)
    if (!starts_at(jump.to))
      return forbidden(fmt::format("a branch to {:#x}, where no instruction begins,", jump.to),
                       jump.from);
  return ok();
}

// What names code in the file's tables.
Status Code::check_pointers() const {
  const auto check_pointer = [&](uint64_t address) -> Status {
    if (!section_of(address) || starts_at(address)) return ok();
    return forbidden("a pointer into the middle of an instruction", address);
  };
  for (const ElfSymbol& one : file_.symbols)
    if (one.entry.st_shndx != SHN_UNDEF) WARPLOOM_CHECK(check_pointer(one.entry.st_value));
  for (const Elf64_Rela& one : file_.relocations) {
    const ElfSymbol* const symbol =
        ELF64_R_SYM(one.r_info) ? &file_.symbols[ELF64_R_SYM(one.r_info)] : nullptr;
    if (symbol && symbol->entry.st_shndx == SHN_UNDEF) continue;
    const uint64_t base = symbol ? symbol->entry.st_value : 0;
    WARPLOOM_CHECK(check_pointer(base + as_uint64(one.r_addend)));
  }
  return ok();
}

// "0x1042 in relu+0x22", for a person. The symbols are whatever the file says.
std::string Code::where(uint64_t address) const {
  const std::string number = fmt::format("{:#x}", address);
  const ElfSection* const table = file_.section(".symtab");
  const Result<std::vector<ElfSymbol>> named =
      table ? file_.symbols_of(*table, place_) : file_.symbols;
  if (!named) return number;
  const auto holds = [&](const ElfSymbol& one) {
    return one.type() == STT_FUNC && address >= one.entry.st_value &&
           address - one.entry.st_value < one.entry.st_size;
  };
  const auto found = std::ranges::find_if(*named, holds);
  if (found == named->end()) return number;
  return fmt::format("{} in {}+{:#x}", number, found->name, address - found->entry.st_value);
}
}  // namespace

Status check_cpu_code(const ElfFile& file, const std::string& place, const PlaceAt& place_at) {
  WARPLOOM_TRY(const Disassembler* const zydis, Disassembler::open());
  Code code(file, place, place_at, *zydis);
  WARPLOOM_CHECK(code.decode());
  WARPLOOM_CHECK(code.check_targets());
  return code.check_pointers();
}
}  // namespace warploom::verify
