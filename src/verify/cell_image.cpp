#include "verify/cell_image.h"
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "verify/cell_code.h"
#include "verify/cpu_gate.h"
#include "verify/elf_file.h"

namespace warploom::verify {
namespace {
constexpr uint64_t kPage = 4096;
// Where errno lies from the thread pointer.
constexpr uint64_t kErrno = as_uint64(-64);

tl::unexpected<Error> unfit(const std::string& place, const std::string& expected,
                            const std::string& found) {
  return fail({ErrorCode::kCandidateForbidden, "a compiled candidate cannot be placed in a cell",
               place, expected, found, "compute from the buffers alone"});
}

// A shared object whose segments lie at `base` of the cell.
struct Placed {
  ElfFile file;
  std::string place;  // for errors
  uint64_t base = 0;
  uint64_t size = 0;   // whole pages
  std::string memory;  // all of it, with zeros between segments

  uint64_t address_of(uint64_t virtual_address) const { return base + virtual_address; }

  Status put(uint64_t at, uint64_t value) {
    if (at > size || size - at < sizeof value)
      return unfit(place, "relocations within its segments", fmt::format("one at {:#x}", at));
    std::memcpy(memory.data() + at, &value, sizeof value);
    return ok();
  }

  Result<uint64_t> get(uint64_t at) const {
    uint64_t value = 0;
    if (at > size || size - at < sizeof value)
      return unfit(place, "relocations within its segments", fmt::format("one at {:#x}", at));
    std::memcpy(&value, memory.data() + at, sizeof value);
    return value;
  }
};

Result<Placed> place_segments(std::string_view bytes, const std::string& place, uint64_t base) {
  constexpr uint64_t kMost = 256 << 20;
  WARPLOOM_TRY(ElfFile file, ElfFile::read(bytes, place));
  Placed placed{std::move(file), place, base};
  for (const Elf64_Phdr& segment : placed.file.segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_vaddr > kMost || segment.p_memsz > kMost)
      return unfit(place, "segments of at most 256 MB", "a larger one");
    const uint64_t end = segment.p_vaddr + segment.p_memsz;
    placed.size = std::max(placed.size, (end + kPage - 1) / kPage * kPage);
  }
  placed.memory.assign(placed.size, '\0');
  for (const Elf64_Phdr& segment : placed.file.segments) {
    if (segment.p_type != PT_LOAD) continue;
    const std::string_view contents = placed.file.contents(segment);
    const uint64_t count = std::min<uint64_t>(contents.size(), segment.p_memsz);
    std::memcpy(placed.memory.data() + segment.p_vaddr, contents.data(), count);
  }
  return placed;
}

// The address of a name that an object does not define itself.
using Resolve = std::function<uint64_t(std::string_view name)>;
// What an indirect function of the object at this address of its own chooses, in the cell.
using Choose = std::function<std::optional<uint64_t>(uint64_t virtual_address)>;

// The value of a symbol that a relocation refers to.
Result<uint64_t> value_of(const Placed& object, uint64_t number, const Resolve& resolve,
                          const Choose& choose) {
  if (number == 0) return 0;
  if (number >= object.file.symbols.size())
    return unfit(object.place, "symbols of its own table", fmt::format("number {}", number));
  const ElfSymbol& symbol = object.file.symbols[number];
  if (symbol.entry.st_shndx == SHN_UNDEF) return resolve(symbol.name);
  if (symbol.type() != STT_GNU_IFUNC) return object.address_of(symbol.entry.st_value);
  const auto chosen = choose(symbol.entry.st_value);
  if (!chosen) return unfit(object.place, "plain functions", "an indirect one");
  return *chosen;
}

Status relocate(Placed& object, const Elf64_Rela& one, const Resolve& resolve,
                const Choose& choose) {
  const auto addend = as_uint64(one.r_addend);
  switch (ELF64_R_TYPE(one.r_info)) {
    case R_X86_64_NONE: return ok();
    case R_X86_64_RELATIVE: return object.put(one.r_offset, object.base + addend);
    case R_X86_64_IRELATIVE: {
      const auto chosen = choose(addend);
      if (!chosen) return unfit(object.place, "plain functions", "an indirect one");
      return object.put(one.r_offset, *chosen);
    }
    case R_X86_64_TPOFF64: return object.put(one.r_offset, kErrno);
    case R_X86_64_64:
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT: {
      WARPLOOM_TRY(const uint64_t value,
                   value_of(object, ELF64_R_SYM(one.r_info), resolve, choose));
      const bool plain = ELF64_R_TYPE(one.r_info) == R_X86_64_64;
      return object.put(one.r_offset, plain ? value + addend : value);
    }
    default:
      return unfit(object.place, "relocations that a loader of data knows",
                   fmt::format("one of type {}", ELF64_R_TYPE(one.r_info)));
  }
}

// The packed relative relocations: an address, or a map of the 63 words behind the last one.
Status relocate_packed(Placed& object) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  const uint64_t bytes = object.file.dynamic_value(DT_RELRSZ);
  const std::string_view table = object.file.at(object.file.dynamic_value(DT_RELR), bytes);
  uint64_t next = 0;
  const auto add_base = [&](uint64_t at) -> Status {
    WARPLOOM_TRY(const uint64_t old, object.get(at));
    return object.put(at, object.base + old);
  };
  for (size_t i = 0; i + kWord <= table.size(); i += kWord) {
    uint64_t entry = 0;
    std::memcpy(&entry, table.data() + i, kWord);
    if ((entry & 1) == 0) {
      WARPLOOM_CHECK(add_base(entry));
      next = entry + kWord;
      continue;
    }
    for (int bit = 1; bit < 64; ++bit)
      if (entry >> bit & 1) WARPLOOM_CHECK(add_base(next + kWord * as_uint64(bit - 1)));
    next += 63 * kWord;
  }
  return ok();
}

// The pages of an object: one piece for each run of pages with the same rights. What is made
// read-only after relocation is so from the beginning.
void add_pieces(const Placed& object, std::vector<CellPiece>& pieces) {
  const size_t pages = object.size / kPage;
  enum class Rights { none, read, execute, write };
  std::vector<Rights> rights(pages, Rights::none);
  const auto mark = [&](uint64_t from, uint64_t to, Rights right) {
    for (uint64_t page = from; page < to && page < pages; ++page)
      rights[page] = right;
  };
  for (const Elf64_Phdr& segment : object.file.segments) {
    if (segment.p_type != PT_LOAD) continue;
    Rights right = Rights::read;
    if (segment.p_flags & PF_X) right = Rights::execute;
    if (segment.p_flags & PF_W) right = Rights::write;
    mark(segment.p_vaddr / kPage, (segment.p_vaddr + segment.p_memsz + kPage - 1) / kPage, right);
  }
  for (const Elf64_Phdr& segment : object.file.segments)
    if (segment.p_type == PT_GNU_RELRO)
      mark(segment.p_vaddr / kPage, (segment.p_vaddr + segment.p_memsz) / kPage, Rights::read);
  for (size_t from = 0; from < pages;) {
    size_t to = from;
    while (to < pages && rights[to] == rights[from])
      ++to;
    if (rights[from] != Rights::none)
      pieces.push_back({.address = object.base + from * kPage,
                        .bytes = object.memory.substr(from * kPage, (to - from) * kPage),
                        .executable = rights[from] == Rights::execute,
                        .writable = rights[from] == Rights::write});
    from = to;
  }
}

// This machine's mathematics as this process has it: where it was loaded from and to. Never closed.
struct Mathematics {
  void* handle = ::dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  uint64_t base = 0;
  std::string bytes;

  Mathematics() {
    link_map* map = nullptr;
    if (!handle || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
    base = map->l_addr;
    if (auto file = read_file(map->l_name)) bytes = *std::move(file);
  }

  // Of the function that this process would call.
  std::optional<uint64_t> place_of(std::string_view name) const {
    const void* found = handle ? ::dlsym(handle, std::string(name).c_str()) : nullptr;
    if (!found) return std::nullopt;
    const auto address = reinterpret_cast<uint64_t>(found);
    if (address < base || address - base >= bytes.size()) return std::nullopt;  // libc's
    return address - base;
  }

  // What the resolver at an address of libm's chooses, as such an address.
  uint64_t choice_of(uint64_t resolver) const {
    using Resolver = uint64_t (*)();
    return reinterpret_cast<Resolver>(base + resolver)() - base;
  }
};

const Mathematics& mathematics() {
  static const Mathematics instance;
  return instance;
}

uint64_t page_up(uint64_t address) {
  return (address + kPage - 1) / kPage * kPage;
}

class Maker {
 public:
  explicit Maker(const CellPlaces& places) : places_(places), next_(places.base) {}

  Result<CellImage> make(const std::vector<CellFunction>& functions) {
    add_own_code();
    WARPLOOM_CHECK(add_mathematics());
    for (const CellFunction& function : functions) {
      WARPLOOM_TRY(const Placed* const object, object_of(function));
      WARPLOOM_TRY(image_.kernels.emplace_back(), kernel_of(*object, function.name));
      image_.bases.push_back(object->base);
    }
    image_.end = next_;
    return std::move(image_);
  }

 private:
  void add_own_code() {
    const CellCode code = cell_code();
    std::string bytes(page_up(places_.own_code + code.size), '\xcc');
    std::memcpy(bytes.data() + places_.own_code, code.bytes, code.size);
    image_.code = next_ + places_.own_code;
    image_.pieces.push_back({next_, std::move(bytes), true, false});
    next_ += image_.pieces.back().bytes.size();
    trap_ = image_.code + code.trap;
    own_ = {
#define WARPLOOM_COPY(name, ours) {#name, image_.code + code.ours},
#include "verify/cpu_functions.def"
    };
  }

  uint64_t own(std::string_view name) const {
    const auto found = own_.find(name);
    return found == own_.end() ? trap_ : found->second;
  }

  // What a candidate's name comes to: the gate's list is this one's (cpu_functions.def).
  uint64_t listed(std::string_view name) const {
    if (!is_listed_function(name) || own_.contains(name)) return own(name);
    const auto place = mathematics().place_of(name);
    return place && libm_base_ != 0 ? libm_base_ + *place : trap_;
  }

  // A page apart from what lies before, so that running over an end faults; or far from it.
  Result<Placed> placed(std::string_view bytes, const std::string& place) {
    constexpr int kMostApart = 16;
    next_ += kPage;
    if (places_.apart && apart_++ < kMostApart) next_ = places_.apart();
    WARPLOOM_TRY(Placed object, place_segments(bytes, place, next_));
    next_ += object.size;
    return object;
  }

  Status finish(Placed& object, const Resolve& resolve, const Choose& choose) {
    WARPLOOM_CHECK(relocate_packed(object));
    for (const Elf64_Rela& one : object.file.relocations)
      WARPLOOM_CHECK(relocate(object, one, resolve, choose));
    add_pieces(object, image_.pieces);
    return ok();
  }

  Status add_mathematics() {
    const Mathematics& libm = mathematics();
    if (libm.bytes.empty()) return ok();  // its functions are traps then
    WARPLOOM_TRY(Placed object, placed(libm.bytes, "libm"));
    libm_base_ = object.base;
    const auto choose = [&](uint64_t resolver) {
      return std::optional(object.base + libm.choice_of(resolver));
    };
    return finish(object, [&](std::string_view name) { return own(name); }, choose);
  }

  // Kernels of one list may lie in one image.
  Result<const Placed*> object_of(const CellFunction& function) {
    const auto known = objects_.find(function.image);
    if (known != objects_.end()) return &known->second;
    const auto bytes = objects_.try_emplace(function.image).first;
    WARPLOOM_TRY(bytes->second, placed(bytes->first, function.name));
    const auto resolve = [&](std::string_view name) {
      const uint64_t address = listed(name);
      image_.functions.insert(address);
      return address;
    };
    const size_t others = image_.pieces.size();
    const auto choose = [](uint64_t) { return std::optional<uint64_t>(); };
    WARPLOOM_CHECK(finish(bytes->second, resolve, choose));
    for (size_t i = others; i < image_.pieces.size(); ++i)
      image_.pieces[i].of_candidate = true;
    for (const ElfSection& section : bytes->second.file.sections)
      if (section.header.sh_flags & SHF_ALLOC && section.header.sh_flags & SHF_EXECINSTR)
        image_.sections.push_back({bytes->second.address_of(section.header.sh_addr),
                                   std::string(bytes->second.file.contents(section))});
    return &bytes->second;
  }

  static Result<uint64_t> kernel_of(const Placed& object, const std::string& name) {
    for (const ElfSymbol& symbol : object.file.symbols)
      if (symbol.name == name && symbol.entry.st_shndx != SHN_UNDEF && symbol.type() == STT_FUNC)
        return object.address_of(symbol.entry.st_value);
    return fail({ErrorCode::kCompileFailed, "a compiled kernel cannot be loaded", name,
                 "a shared object with the kernel", "none of that name",
                 "define it as extern \"C\" with the name of its kernel line"});
  }

  const CellPlaces& places_;
  CellImage image_;
  uint64_t next_;
  int apart_ = 0;  // objects that lie far from others
  uint64_t libm_base_ = 0;
  uint64_t trap_ = 0;  // an address in the cell, as those of own_
  std::map<std::string, uint64_t, std::less<>> own_;
  std::map<std::string, Placed> objects_;
};
}  // namespace

Result<CellImage> CellImage::make(const CellPlaces& places,
                                  const std::vector<CellFunction>& functions) {
  return Maker(places).make(functions);
}
}  // namespace warploom::verify
