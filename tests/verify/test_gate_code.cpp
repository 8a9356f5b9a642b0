// What the gate says of instructions: each refused one alone, in an image that is honest otherwise.
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>
#include "gate_images.h"
#include "verify/elf_file.h"

namespace warploom::verify {
namespace {
struct Snippet {
  std::string name;  // of the test
  std::string text;  // for the assembler, 16 bytes at most
  std::string said;  // what the refusal says of it; "ok": none
};

void PrintTo(const Snippet& one, std::ostream* out) {
  *out << one.text;
}

const std::vector<Snippet> kSnippets = {
    {"SystemCall", "syscall", "syscall, which asks the system"},
    {"SystemCallOf32Bits", "int $0x80", "int, which asks the system"},
    {"Sysenter", "sysenter", "sysenter, which asks the system"},
    {"Iret", "iretq", "iretq"},
    {"FrameOfFrames", "enter $0, $2", "enter, which copies what its frame pointer points at"},
    {"Clock", "rdtsc", "rdtsc, which reads a clock"},
    {"SerialClock", "rdtscp", "rdtscp, which reads a clock"},
    {"Counter", "rdpmc", "rdpmc, which reads a counter"},
    {"Random", "rdrand %eax", "rdrand, which draws a random number"},
    {"RandomSeed", "rdseed %rax", "rdseed, which draws a random number"},
    {"WhichProcessor", "rdpid %rax", "rdpid, which asks which processor"},
    {"Cpuid", "cpuid", "cpuid, which asks which processor"},
    {"StateInUse", "xgetbv", "xgetbv"},
    {"Xsave", "xsave (%rax)", "xsave"},
    {"Xsavec", "xsavec (%rax)", "xsavec"},
    {"Xrstor", "xrstor (%rax)", "xrstor"},
    {"Fxsave", "fxsave (%rax)", "fxsave"},
    {"Fxrstor", "fxrstor (%rax)", "fxrstor"},
    {"FsBaseRead", "rdfsbase %rax", "rdfsbase"},
    {"FsBaseWritten", "wrfsbase %rax", "wrfsbase"},
    {"GsBaseRead", "rdgsbase %rax", "rdgsbase"},
    {"GsBaseWritten", "wrgsbase %rax", "wrgsbase, which reaches a register that lasts"},
    {"ProtectionKeys", "wrpkru", "wrpkru"},
    {"ProtectionKeysRead", "rdpkru", "rdpkru"},
    {"VectorControlWritten", "ldmxcsr (%rax)", "ldmxcsr, which sets how floats are computed"},
    {"VectorControlWrittenByAvx", "vldmxcsr (%rax)", "vldmxcsr"},
    {"VectorControlRead", "stmxcsr (%rax)", "stmxcsr"},
    {"X87Control", "fldcw (%rax)", "fldcw"},
    {"X87Environment", "fldenv (%rax)", "fldenv"},
    {"FlagsWritten", "popfq", "popfq"},
    {"FlagsRead", "pushfq", "pushfq"},
    {"DirectionFlag", "std", "std"},
    {"In", "in %dx, %al", "in"},
    {"Out", "out %al, %dx", "out"},
    {"StringIn", "insb", "insb"},
    {"Halt", "hlt", "hlt"},
    {"Interrupts", "cli", "cli"},
    {"SystemRegister", "mov %cr0, %rax", "mov"},
    {"DebugRegister", "mov %rax, %db7", "mov"},
    {"ModelRegister", "rdmsr", "rdmsr"},
    {"DescriptorTable", "sgdt (%rax)", "sgdt"},
    {"SegmentRead", "mov %fs, %eax", "mov, which reaches a segment's register"},
    {"SegmentWritten", "mov %eax, %gs", "mov, which reaches a segment's register"},
    {"SegmentPushed", "push %fs", "push, which reaches a segment's register"},
    {"SegmentPopped", "pop %gs", "pop, which reaches a segment's register"},
    {"FarJump", "ljmp *(%rax)", "jmp, which goes to another segment"},
    {"FarCall", "lcall *(%rax)", "call, which goes to another segment"},
    {"FarReturn", "lretq", "ret, which"},
    {"ThreadMemory", "mov %fs:0, %rax", "mov, which reaches memory of the thread"},
    {"ThreadMemoryByRegister", "mov %fs:0x28(%rcx), %rax", "mov, which reaches memory"},
    {"StackProtectorWritten", "mov %rax, %fs:0x28", "mov, which reaches memory of the thread"},
    {"OtherSegment", "mov %gs:0x28, %rax", "mov, which reaches memory of the thread"},
    {"ThreadVector", "vmovups %fs:0x28, %xmm0", "vmovups, which reaches memory of the thread"},
    {"Monitor", "monitorx", "monitorx, which waits for another"},
    {"Mwait", "mwaitx", "mwaitx, which waits for another"},
    {"Umonitor", "umonitor %rax", "umonitor, which waits for another"},
    {"Umwait", "umwait %eax", "umwait, which waits for another"},
    {"Tpause", "tpause %eax", "tpause, which waits for another"},
    {"CacheLineFlushed", "clflush (%rax)", "clflush, which empties a cache"},
    {"CacheLineFlushedAnyhow", "clflushopt (%rax)", "clflushopt, which empties a cache"},
    {"CacheLineWrittenBack", "clwb (%rax)", "clwb, which empties a cache"},
    {"CacheLineDemoted", "cldemote (%rax)", "cldemote, which empties a cache"},
    {"Transaction", "xbegin .", "xbegin, which hides what it does"},
    {"TransactionTest", "xtest", "xtest"},
    {"Enclave", "enclu", "enclu"},
    {"UserInterrupts", "senduipi %rax", "senduipi"},
    {"ShadowStack", "rdsspq %rax", "rdsspq"},
    {"DirectStore", "movdir64b (%rax), %rcx", "movdir64b"},
    {"Serialize", "serialize", "serialize"},
    {"VirtualMachine", "vmcall", "vmcall"},
    {"NoInstruction", ".byte 0x06", "bytes that are no instruction"},
    {"HalfAnInstruction", ".byte 0x0f, 0xff, 0xff, 0xff", ""},
    {"BranchIntoAnInstruction", "jmp .+3\nmovl $0x90909090, %eax", "where no instruction begins"},
    {"CallIntoAnInstruction", "call .+6\nmovl $0xc3909090, %eax", "where no instruction begins"},
    {"BranchOverGarbage", "jmp .+3\n.byte 0xe8\nnop\nnop\nnop\nnop\nnop\nnop\nnop", ""},
    {"BranchAway", "jmp .+0x100000", "where no instruction begins"},
    {"BranchBeforeTheImage", "jmp .-0x10000000", "where no instruction begins"},
    {"RandomHiddenInAConstant", "movl $0xf0c70f90, %eax", "within the bytes of mov"},
    {"RandomHiddenAcrossTwo", "andl $0x0f, %eax\n.byte 0xc7, 0xf8, 0, 0, 0, 0", ""},
    {"StackProtector", "mov %fs:0x28, %rax", "ok"},
    {"StackProtectorCompared", "sub %fs:0x28, %rdx", "ok"},
    {"Trap", "ud2\nint3", "ok"},
    {"Atomic", "lock xaddl %eax, (%rcx)\nlock cmpxchg16b (%rcx)", "ok"},
    {"Prefetch", "prefetcht0 (%rax)\nprefetchw (%rax)\nprefetchnta (%rax)", "ok"},
    {"Fence", "mfence\nsfence\nlfence\npause", "ok"},
    {"StringCopy", "rep movsb\nrep stosq", "ok"},
    {"LongNop", ".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0", "ok"},
    {"EndBranch", "endbr64\nnotrack jmp *%rax", "ok"},
    {"Tiles", "tilezero %tmm0\ntdpbf16ps %tmm0, %tmm1, %tmm2", "ok"},
    {"TileConfiguration", "ldtilecfg (%rax)\ntilerelease", "ok"},
    {"Halves", "vfmadd231ph %zmm0, %zmm1, %zmm2\nvcvtss2sh %xmm0, %xmm1, %xmm2", "ok"},
    {"Bfloats", "vdpbf16ps %zmm0, %zmm1, %zmm2\nvcvtneps2bf16 %zmm0, %ymm1", "ok"},
    {"Bytes", "vpdpbusd %zmm0, %zmm1, %zmm2\n{vex} vpdpbusd %ymm0, %ymm1, %ymm2", "ok"},
    {"X87", "fldt (%rax)\nfsqrt\nfistpll (%rax)", "ok"},
};

constexpr size_t kSlot = 16;

// An image with room for one snippet, and each snippet's bytes, from one run of the compiler: all
// lie one after another, and the room is where the first stands.
struct Made {
  std::string image;
  std::map<std::string, std::string> bytes;
};

const Made& made() {
  static const Made all = [] {
    std::string text;
    for (const Snippet& one : kSnippets)
      text += fmt::format("asm(R\"(.balign {}, 0x90\n{}\n)\");\n", kSlot, one.text);
    const std::string before = fmt::format(
        "asm(\".balign {0}\\n.global slot\\n.type slot, @function\\nslot:\\n\");\n{1}\n"
        "asm(\".balign {0}, 0x90\\n.size slot, .-slot\\n\");\n",
        kSlot, text);
    Made out{compiled(kernel("  x[0] = 1;", "")), {}};
    std::string source = compiled(kernel("  x[0] = 1;", before));
    if (source.empty()) return out;
    const ElfFile file = read(source);
    const auto slot = std::ranges::find(file.symbols, "slot", &ElfSymbol::name);
    if (slot == file.symbols.end()) return out;
    const std::string code(file.at(slot->entry.st_value, slot->entry.st_size));
    EXPECT_EQ(code.size(), kSnippets.size() * kSlot);
    for (size_t i = 0; i < kSnippets.size() && (i + 1) * kSlot <= code.size(); ++i)
      out.bytes[kSnippets[i].name] = code.substr(i * kSlot, kSlot);
    // The image with nops in all places.
    Elf64_Shdr& text_section = section(source, ".text");
    const uint64_t place = text_section.sh_offset + slot->entry.st_value - text_section.sh_addr;
    source.replace(place, code.size(), code.size(), '\x90');
    out.image = source;
    out.bytes["place"] = std::to_string(place);
    return out;
  }();
  return all;
}

class GateOfCode : public testing::TestWithParam<Snippet> {};

TEST_P(GateOfCode, SaysOf) {
  std::string image = made().image;
  ASSERT_TRUE(made().bytes.contains("place"));
  image.replace(std::stoul(made().bytes.at("place")), kSlot, made().bytes.at(GetParam().name));
  const std::string found = verdict(image);
  if (GetParam().said == "ok") {
    EXPECT_EQ(found, "ok");
    return;
  }
  EXPECT_TRUE(found.starts_with("a candidate has an instruction that it may not have")) << found;
  EXPECT_NE(found.find(GetParam().said), found.npos) << found;
}

INSTANTIATE_TEST_SUITE_P(Instructions, GateOfCode, testing::ValuesIn(kSnippets),
                         [](const auto& one) { return one.param.name; });

TEST(Gate, TheRoomForSnippetsIsAcceptedAsItIs) {
  EXPECT_EQ(verdict(made().image), "ok");
}

TEST(Gate, ARefusalNamesTheFunctionAndThePlaceInIt) {
  std::string image = made().image;
  image.replace(std::stoul(made().bytes.at("place")) + 1, 2, "\x0f\x05");
  EXPECT_NE(verdict(image).find(" in slot+0x1"), std::string::npos) << verdict(image);
}

TEST(Gate, APointerIntoTheMiddleOfAnInstructionIsRefused) {
  std::string image = honest_image();
  relocation(image, R_X86_64_RELATIVE).r_addend =
      static_cast<int64_t>(symbol(image, "k").st_value) + 1;
  EXPECT_NE(verdict(image).find("a pointer into the middle of an instruction"), std::string::npos)
      << verdict(image);
}

TEST(Gate, ASymbolInTheMiddleOfAnInstructionIsRefused) {
  std::string image = honest_image();
  ++symbol(image, "k").st_value;
  --symbol(image, "k").st_size;
  EXPECT_NE(verdict(image).find("a pointer into the middle of an instruction"), std::string::npos)
      << verdict(image);
}
}  // namespace
}  // namespace warploom::verify
