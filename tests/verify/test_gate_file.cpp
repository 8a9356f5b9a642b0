// What the gate says of the tables of a candidate's file.
#include <elf.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "gate_images.h"
#include "verify/image_check.h"

namespace warploom::verify {
namespace {
constexpr const char* kOdd = "a candidate's file is not as a compiler makes it";
constexpr const char* kLoads = "a candidate has code that runs when it is loaded";
constexpr const char* kLasts = "a candidate has memory that lasts from call to call";
constexpr const char* kUnreadable = "a compiled candidate's ELF file cannot be read";

// One change to the bytes of an honest image, and how its refusal begins.
struct Damage {
  std::string name;
  std::function<void(std::string&)> change;
  std::string said;
};

void PrintTo(const Damage& one, std::ostream* out) {
  *out << one.name;
}

std::vector<Damage> segments() {
  return {
      {"CodeThatCanBeWritten",
       [](std::string& image) { segment(image, PT_LOAD, PF_X).p_flags |= PF_W; }, kOdd},
      {"ConstantsThatCanBeExecuted",
       [](std::string& image) { segment(image, PT_LOAD).p_flags |= PF_X; }, kOdd},
      {"AStackThatCanBeExecuted",
       [](std::string& image) { segment(image, PT_GNU_STACK).p_flags |= PF_X; }, kOdd},
      {"NoWordOfTheStack",
       [](std::string& image) { segment(image, PT_GNU_STACK).p_type = PT_NULL; }, kOdd},
      {"AnInterpreter", [](std::string& image) { segment(image, PT_NOTE).p_type = PT_INTERP; },
       kOdd},
      {"VariablesOfAThread", [](std::string& image) { segment(image, PT_NOTE).p_type = PT_TLS; },
       kLasts},
      {"ASegmentOfNoKnownType",
       [](std::string& image) { segment(image, PT_NOTE).p_type = 0x60001234; }, kOdd},
      {"NothingSealed", [](std::string& image) { segment(image, PT_GNU_RELRO).p_type = PT_NULL; },
       kLasts},
      {"LessSealedThanIsWritable",
       [](std::string& image) { segment(image, PT_GNU_RELRO).p_memsz -= 8; }, kLasts},
      {"MoreMemoryThanIsSealed",
       [](std::string& image) { segment(image, PT_LOAD, PF_W).p_memsz += 4096; }, kLasts},
      {"SegmentsThatOverlap",
       [](std::string& image) {
         segment(image, PT_LOAD).p_memsz = segment(image, PT_LOAD, PF_X).p_vaddr + 1;
       },
       kOdd},
      {"HugeMemory", [](std::string& image) { segment(image, PT_LOAD).p_memsz = 1ull << 62; },
       kOdd},
      {"AnAddressThatOverflows",
       [](std::string& image) { segment(image, PT_LOAD, PF_W).p_vaddr = ~0ull - 4095; }, kOdd},
      {"AnOddAlignment", [](std::string& image) { segment(image, PT_LOAD, PF_X).p_align = 4097; },
       kOdd},
      {"ASegmentBeyondTheFile",
       [](std::string& image) { segment(image, PT_LOAD, PF_X).p_filesz = image.size() + 1; },
       kUnreadable},
      {"CodeBehindTheSections",
       [](std::string& image) {
         Elf64_Phdr& code = segment(image, PT_LOAD, PF_X);
         code.p_filesz = code.p_memsz = 4096;
         image[code.p_offset + 4095] = '\x0f';
       },
       kOdd},
      {"ADynamicSectionElsewhere",
       [](std::string& image) {
         segment(image, PT_DYNAMIC).p_vaddr -= 16;
         segment(image, PT_DYNAMIC).p_offset -= 16;
       },
       ""},
  };
}

std::vector<Damage> sections() {
  return {
      {"AConstructor",
       [](std::string& image) { section(image, ".rodata").sh_type = SHT_INIT_ARRAY; }, kLoads},
      {"ADestructor",
       [](std::string& image) { section(image, ".rodata").sh_type = SHT_FINI_ARRAY; }, kLoads},
      {"WritableConstants",
       [](std::string& image) { section(image, ".rodata").sh_flags |= SHF_WRITE; }, kLasts},
      {"ASectionOfAThread",
       [](std::string& image) { section(image, ".rodata").sh_flags |= SHF_TLS; }, kLasts},
      {"CodeCalledConstants",
       [](std::string& image) { section(image, ".text").sh_flags &= ~uint64_t{SHF_EXECINSTR}; },
       kOdd},
      {"CodeOfAnotherPlaceInTheFile",
       [](std::string& image) { section(image, ".text").sh_offset -= 16; }, kOdd},
      {"LessCodeThanIsExecutable",
       [](std::string& image) { section(image, ".text").sh_size -= 128; }, kOdd},
      {"MoreCodeThanThereIs",
       [](std::string& image) { section(image, ".text").sh_size += 1 << 20; }, kUnreadable},
      {"ASecondSectionOfAName",
       [](std::string& image) {
         section(image, ".comment").sh_name = section(image, ".rodata").sh_name;
       },
       kOdd},
      {"ANameBeyondTheNames",
       [](std::string& image) { section(image, ".comment").sh_name = 0xfffffff0; }, kUnreadable},
      {"CodeInASectionOfNoType",
       [](std::string& image) { section(image, ".text").sh_type = SHT_NULL; }, kOdd},
      {"ADynamicSectionOfNoType",
       [](std::string& image) { section(image, ".dynamic").sh_type = SHT_NULL; }, kOdd},
      {"NoSections", [](std::string& image) { record<Elf64_Ehdr>(image, 0).e_shnum = 0; }, ""},
  };
}

std::vector<Damage> dynamic_entries() {
  std::vector<Damage> all;
  const auto replaced = [](int64_t tag) {
    return [tag](std::string& image) { dynamic_entry(image, DT_VERNEEDNUM).d_tag = tag; };
  };
  all.push_back({"AnInitialiser", replaced(DT_INIT), kLoads});
  all.push_back({"AnArrayOfInitialisers", replaced(DT_INIT_ARRAY), kLoads});
  all.push_back({"AnEarlyInitialiser", replaced(DT_PREINIT_ARRAY), kLoads});
  all.push_back({"AFinaliser", replaced(DT_FINI), kLoads});
  all.push_back({"AnArrayOfFinalisers", replaced(DT_FINI_ARRAY), kLoads});
  all.push_back({"APathForLibraries", replaced(DT_RPATH), kOdd});
  all.push_back({"ARunPath", replaced(DT_RUNPATH), kOdd});
  all.push_back({"AnAuditor", replaced(0x6ffffefc), kOdd});
  all.push_back({"AFilter", replaced(DT_FILTER), kOdd});
  all.push_back({"RelocatedCode", replaced(DT_TEXTREL), kOdd});
  all.push_back({"SymbolsOfItsOwnFirst", replaced(DT_SYMBOLIC), kOdd});
  all.push_back({"CompactRelocations", replaced(36), kOdd});
  all.push_back({"ATagOfNoKnownMeaning", replaced(0x6ffffff5), kOdd});
  all.push_back({"ASecondTableOfSymbols", replaced(DT_SYMTAB), kOdd});
  all.push_back({"AnotherLibrary",
                 [](std::string& image) { ++dynamic_entry(image, DT_NEEDED).d_un.d_val; },
                 "a candidate asks for a library"});
  all.push_back(
      {"AFlagOfRelocatedCode",
       [](std::string& image) { dynamic_entry(image, DT_FLAGS).d_un.d_val |= DF_TEXTREL; }, kOdd});
  all.push_back(
      {"AFlagThatKeepsItLoaded",
       [](std::string& image) { dynamic_entry(image, DT_FLAGS_1).d_un.d_val |= DF_1_NODELETE; },
       kOdd});
  all.push_back({"NamesElsewhere",
                 [](std::string& image) { ++dynamic_entry(image, DT_STRTAB).d_un.d_ptr; }, kOdd});
  all.push_back({"SymbolsElsewhere",
                 [](std::string& image) { dynamic_entry(image, DT_SYMTAB).d_un.d_ptr += 24; },
                 kUnreadable});
  all.push_back({"FewerRelocationsThanThereAre",
                 [](std::string& image) { dynamic_entry(image, DT_RELASZ).d_un.d_val -= 24; },
                 kOdd});
  all.push_back(
      {"RelocationsBeyondTheFile",
       [](std::string& image) { dynamic_entry(image, DT_RELASZ).d_un.d_val = 24ull << 40; },
       kUnreadable});
  all.push_back({"MoreRelativeRelocationsThanThereAre",
                 [](std::string& image) { dynamic_entry(image, DT_RELACOUNT).d_un.d_val += 1000; },
                 kOdd});
  return all;
}

std::vector<Damage> symbols_and_relocations() {
  const auto typed = [](uint64_t type) {
    return [type](std::string& image) {
      Elf64_Rela& one = relocation(image, R_X86_64_RELATIVE);
      one.r_info = ELF64_R_INFO(ELF64_R_SYM(one.r_info), type);
    };
  };
  std::vector<Damage> all;
  all.push_back({"AResolvedRelocation", typed(R_X86_64_IRELATIVE), ""});
  all.push_back({"ACopy", typed(R_X86_64_COPY), kOdd});
  all.push_back({"AThreadsOffset", typed(R_X86_64_TPOFF64), kOdd});
  all.push_back({"AThreadsModule", typed(R_X86_64_DTPMOD64), kOdd});
  all.push_back({"A32BitAddress", typed(R_X86_64_32), kOdd});
  all.push_back({"ARelocationOfCode",
                 [](std::string& image) {
                   relocation(image, R_X86_64_RELATIVE).r_offset = symbol(image, "k").st_value;
                 },
                 kOdd});
  all.push_back({"ARelocationOfTheDynamicSection",
                 [](std::string& image) {
                   relocation(image, R_X86_64_RELATIVE).r_offset =
                       section(image, ".dynamic").sh_addr + 8;
                 },
                 kOdd});
  all.push_back(
      {"ARelocationOutsideTheImage",
       [](std::string& image) { relocation(image, R_X86_64_RELATIVE).r_offset = ~0ull - 3; },
       kOdd});
  all.push_back(
      {"APointerOutsideTheImage",
       [](std::string& image) { relocation(image, R_X86_64_RELATIVE).r_addend = 1ll << 40; },
       kOdd});
  all.push_back({"AnAddressNearAFunctionOfALibrary",
                 [](std::string& image) { relocation(image, R_X86_64_JUMP_SLOT).r_addend = 64; },
                 kOdd});
  all.push_back({"ARelocationByNoSymbol",
                 [](std::string& image) {
                   relocation(image, R_X86_64_JUMP_SLOT).r_info =
                       ELF64_R_INFO(1u << 30, R_X86_64_JUMP_SLOT);
                 },
                 kUnreadable});
  all.push_back({"AResolver",
                 [](std::string& image) {
                   symbol(image, "k").st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
                 },
                 kLoads});
  all.push_back(
      {"AThreadsVariable",
       [](std::string& image) { symbol(image, "k").st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS); },
       kLasts});
  all.push_back({"AnObjectOfALibrary",
                 [](std::string& image) {
                   symbol(image, "expf").st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
                 },
                 "a candidate calls what it may not"});
  all.push_back({"AnAbsoluteSymbol",
                 [](std::string& image) { symbol(image, "k").st_shndx = SHN_ABS; }, kOdd});
  all.push_back({"ASymbolInNoSection",
                 [](std::string& image) { symbol(image, "k").st_shndx = 999; }, kUnreadable});
  all.push_back({"AFunctionLongerThanItsSection",
                 [](std::string& image) { symbol(image, "k").st_size = 1 << 30; }, kOdd});
  return all;
}

std::vector<Damage> header() {
  const auto changed = [](auto member, auto value) {
    return [member, value](std::string& image) {
      record<Elf64_Ehdr>(image, 0).*member =
          static_cast<std::decay_t<decltype(std::declval<Elf64_Ehdr>().*member)>>(value);
    };
  };
  return {
      {"AnExecutable", changed(&Elf64_Ehdr::e_type, ET_EXEC), kOdd},
      {"AnObject", changed(&Elf64_Ehdr::e_type, ET_REL), kOdd},
      {"AnotherMachine", changed(&Elf64_Ehdr::e_machine, EM_PPC64), kOdd},
      {"ManySegments", changed(&Elf64_Ehdr::e_phnum, 0xffff), kUnreadable},
      {"ManySections", changed(&Elf64_Ehdr::e_shnum, 0xffff), kUnreadable},
      {"SegmentsBeyondTheFile", changed(&Elf64_Ehdr::e_phoff, ~0ull), kUnreadable},
      {"SectionsBeyondTheFile", changed(&Elf64_Ehdr::e_shoff, ~0ull - 63), kUnreadable},
      {"SmallSegmentHeaders", changed(&Elf64_Ehdr::e_phentsize, 8), kUnreadable},
      {"SmallSectionHeaders", changed(&Elf64_Ehdr::e_shentsize, 8), kUnreadable},
      {"NamesInNoSection", changed(&Elf64_Ehdr::e_shstrndx, 0xfffe), kUnreadable},
      {"Of32Bits", [](std::string& image) { image[EI_CLASS] = ELFCLASS32; }, kUnreadable},
      {"NoElfFile", [](std::string& image) { image[0] = 'M'; }, kUnreadable},
  };
}

class GateOfFile : public testing::TestWithParam<Damage> {};

TEST_P(GateOfFile, Refuses) {
  std::string image = honest_image();
  ASSERT_FALSE(image.empty());
  GetParam().change(image);
  ASSERT_NE(image, honest_image());
  const std::string found = verdict(image);
  EXPECT_NE(found, "ok");
  EXPECT_TRUE(found.starts_with(GetParam().said)) << found;
}

const auto named = [](const auto& one) { return one.param.name; };
INSTANTIATE_TEST_SUITE_P(Header, GateOfFile, testing::ValuesIn(header()), named);
INSTANTIATE_TEST_SUITE_P(Segment, GateOfFile, testing::ValuesIn(segments()), named);
INSTANTIATE_TEST_SUITE_P(Section, GateOfFile, testing::ValuesIn(sections()), named);
INSTANTIATE_TEST_SUITE_P(Dynamic, GateOfFile, testing::ValuesIn(dynamic_entries()), named);
INSTANTIATE_TEST_SUITE_P(Pointer, GateOfFile, testing::ValuesIn(symbols_and_relocations()), named);

// The gate has no list of its instructions, and says so.
TEST(GateOfFile, AnImageForAarch64IsNotLookedAt) {
  std::string image = honest_image();
  ASSERT_FALSE(image.empty());
  record<Elf64_Ehdr>(image, 0).e_machine = EM_AARCH64;
  const Status checked = check_image(image, "k");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kSandboxMissing);
}

TEST(GateOfFile, TheImageThatIsChangedIsAcceptedAsItIs) {
  EXPECT_EQ(verdict(honest_image()), "ok");
}

TEST(GateOfFile, AConstructorByAHandMadeDynamicSectionIsRefused) {
  const std::string image =
      compiled(kernel("  x[0] = 1;",
                      "extern \"C\" __attribute__((used, visibility(\"hidden\"))) void ctor() {}\n"
                      "asm(\".section .dynamic,\\\"aw\\\",@progbits\\n.quad 25, arr, 27, 8\\n\"\n"
                      "    \".section .data.rel.ro,\\\"aw\\\"\\narr: .quad ctor\\n.text\");\n"));
  EXPECT_TRUE(verdict(image).starts_with(kLoads)) << verdict(image);
}

TEST(GateOfFile, ASectionByHandIsRefused) {
  const std::string image = compiled(
      kernel("  x[0] = y;",
             "__attribute__((section(\"mine\"))) extern const float y;\nconst float y = 2;"));
  EXPECT_TRUE(verdict(image).starts_with(kOdd)) << verdict(image);
}

TEST(GateOfFile, AVariableIsRefused) {
  const std::string image = compiled(kernel("  x[0] = ++y;", "static int y;"));
  EXPECT_TRUE(verdict(image).starts_with(kLasts)) << verdict(image);
}

TEST(GateOfFile, ThePieceOfAnImageIsRefusedWhateverItsLength) {
  const std::string& image = honest_image();
  for (size_t bytes = 0; bytes < image.size(); bytes += 61)
    EXPECT_NE(verdict(image.substr(0, bytes)), "ok") << bytes;
}

// Any answer but a crash. Bytes of the tables are hit as often as those of code.
TEST(GateOfFile, AnImageWithRandomBytesChangedIsAnswered) {
  Random random(28, "gate");
  const std::string& image = honest_image();
  ASSERT_FALSE(image.empty());
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string changed = image;
    const uint64_t bytes = 1 + random.below(8);
    for (uint64_t j = 0; j < bytes; ++j) {
      const std::array<uint64_t, 3> places = {
          random.below(1024), random.below(image.size()),
          image.size() - 1 - random.below(std::min<uint64_t>(image.size(), 4096))};
      const uint64_t place = places[random.below(places.size())];
      const std::array<char, 4> values = {static_cast<char>(random.next()), '\0', '\xff', '\x7f'};
      changed[place] = values[random.below(values.size())];
    }
    refused += verdict(changed) != "ok";
  }
  EXPECT_GT(refused, 1000);
}
}  // namespace
}  // namespace warploom::verify
