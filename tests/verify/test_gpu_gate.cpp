// The gate of GPU kernels, without a GPU: what NVRTC or nvcc makes of the corpus, of kernels of our
// own, and of one that reads each special register.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "kernels/lower.h"
#include "runtime/compilers.h"
#include "support/paths.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "verify/elf_file.h"
#include "verify/gpu_gate.h"
#include "verify/ptx_check.h"

namespace warploom::verify {
namespace {
namespace fs = std::filesystem;

const char* const kArch = "sm_90a";

// A cache of its own, so that what an older compiler made is not looked at.
class GpuGate : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::find_cuda_compiler()) GTEST_SKIP() << "neither NVRTC nor nvcc";
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
  }

  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  ScratchFolder cache_{"gate-test"};
};

std::string code_of(const Status& status) {
  return status ? "fine" : std::string(code_text(status.error().code));
}

std::string words_of(const Status& status) {
  return status ? "" : describe(status.error());
}

Status gate(const std::string& source, bool foreign, bool programmatic = false,
            const std::string& arch = kArch) {
  Kernel kernel{.name = "k", .source = source};
  kernel.programmatic_launch = programmatic;
  WARPLOOM_TRY(const runtime::Image image, runtime::compile_cuda(source, arch));
  return check_gpu_kernel(kernel, image.path.string(), foreign);
}

std::string kernel_with(const std::string& inside, const std::string& before = "") {
  return before + "extern \"C\" __global__ void k(unsigned long long* y, const float* x) {\n" +
         inside + "\n}\n";
}

// A move of one special register to the output.
std::string move_of(const std::string& name) {
  const std::set<std::string> kWide = {"clock64", "globaltimer", "gridid", "current_graph_exec",
                                       "pm0_64"};
  const bool wide = kWide.contains(name);
  return fmt::format("{{ {} r; asm volatile(\"mov.{} %0, %%{};\" : \"={}\"(r)); *y++ = r; }}",
                     wide ? "unsigned long long" : "unsigned", wide ? "u64" : "u32", name,
                     wide ? "l" : "r");
}

std::string reads(const std::string& name) {
  return kernel_with(move_of(name));
}

// The special registers that a kernel's instructions name, as gpu_gate.cpp reads them.
std::set<int> registers_read(const std::string& image) {
  std::set<int> found;
  const auto bytes = read_file(image);
  const auto file = ElfFile::read(*bytes, "test");
  for (const ElfSection& section : file->sections) {
    if (!section.name.starts_with(".text.")) continue;
    const std::string_view code = file->contents(section);
    for (size_t at = 0; at + 16 <= code.size(); at += 16) {
      uint64_t low = 0;
      std::memcpy(&low, code.data() + at, sizeof low);
      const uint64_t opcode = low & 0xfff;
      if (opcode == 0x919 || opcode == 0x805 || opcode == 0x9c3 || opcode == 0x8cb)
        found.insert(static_cast<unsigned char>(code[at + 9]));
    }
  }
  return found;
}

// Where this binary was carried to another machine, what it reads of the project may not be there.
std::string missing(const std::string& folder, int least) {
  const fs::path path = test::source_path(folder);
  if (fs::is_directory(path)) return "";
  return fmt::format("{} is not on this machine: at least {} kernels were not looked at",
                     path.string(), least);
}

TEST_F(GpuGate, RefusesThoseOfTheCorpusThatAnImageShowsAndNoOthers) {
  constexpr int kLeast = 40;
  const std::string folder = "tests/verify/corpus";
  if (const auto why = missing(folder, kLeast); !why.empty()) GTEST_SKIP() << why;
  int refused = 0;
  for (const auto& entry : fs::recursive_directory_iterator(test::source_path(folder))) {
    if (entry.path().extension() != ".cu") continue;
    const std::string text = read_file(entry.path()).value_or("");
    const size_t at = text.find("// expect: ") + 11;
    std::string expected = text.substr(at, text.find('\n', at) - at);
    if (expected != "candidate-forbidden" && expected != "compile-failed") expected = "fine";
    const Status gated = gate(text, true);
    EXPECT_EQ(code_of(gated), expected) << entry.path() << words_of(gated);
    refused += !gated;
  }
  EXPECT_GE(refused, kLeast);
}

TEST_F(GpuGate, LetsKernelsOfOurOwnPassAsForeignOnes) {
  constexpr int kLeast = 5;
  const std::string folder = "examples/tile";
  if (const auto why = missing(folder, kLeast); !why.empty()) GTEST_SKIP() << why;
  int seen = 0;
  for (const auto& entry : fs::directory_iterator(test::source_path(folder))) {
    const auto program = tile::parse(*read_file(entry.path()), entry.path().string());
    ASSERT_TRUE(program);
    const auto lowered = kernels::lower(*program, *target::capabilities_of(kArch));
    if (!lowered) continue;
    for (const Kernel& kernel : lowered->list.kernels) {
      const auto image = runtime::compile_cuda(kernel.source, kArch);
      ASSERT_TRUE(image) << kernel.name;
      for (const bool foreign : {false, true}) {
        const Status gated = check_gpu_kernel(kernel, image->path.string(), foreign);
        EXPECT_TRUE(gated) << kernel.name << words_of(gated);
      }
      ++seen;
    }
  }
  EXPECT_GE(seen, kLeast);
}

// The numbers that cubin_parts.def has are those that this compiler gives, on every architecture.
TEST_F(GpuGate, KnowsSpecialRegistersByTheirNumbersInMachineCode) {
  const std::map<std::string, int> numbers = {{"laneid", 0x00},
                                              {"tid.x", 0x21},
                                              {"tid.y", 0x22},
                                              {"tid.z", 0x23},
                                              {"ctaid.x", 0x25},
                                              {"ctaid.y", 0x26},
                                              {"ctaid.z", 0x27},
                                              {"lanemask_eq", 0x38},
                                              {"lanemask_lt", 0x39},
                                              {"lanemask_le", 0x3a},
                                              {"lanemask_gt", 0x3b},
                                              {"lanemask_ge", 0x3c},
                                              {"smid", 0x43},
                                              {"warpid", 0x03},
                                              {"clock", 0x50},
                                              {"clock64", 0x50},
                                              {"clock_hi", 0x51},
                                              {"globaltimer", 0x52},
                                              {"globaltimer_lo", 0x52},
                                              {"globaltimer_hi", 0x53},
                                              {"pm0", 0x64},
                                              {"pm7", 0x72},
                                              {"pm0_64", 0x64}};
  std::string all;
  std::set<int> expected;
  for (const auto& [name, number] : numbers) {
    all += move_of(name);
    expected.insert(number);
  }
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const auto image = runtime::compile_cuda(kernel_with(all), arch);
    if (!image) continue;  // a compiler that does not know the architecture
    std::set<int> found = registers_read(image->path.string());
    found.erase(0xff);  // zero
    EXPECT_EQ(found, expected) << arch;
  }
  for (const char* name : {"smid", "clock", "clock64", "globaltimer_lo", "tid.x"}) {
    const auto image = runtime::compile_cuda(reads(name), kArch);
    ASSERT_TRUE(image) << name;
    EXPECT_TRUE(registers_read(image->path.string()).contains(numbers.at(name))) << name;
  }
}

TEST_F(GpuGate, FindsForbiddenRegistersInMachineCodeAlone) {
  for (const char* name : {"smid", "clock", "clock64", "globaltimer"})
    for (const char* arch : {"sm_90a", "sm_120a"}) {
      // As our own: its PTX is not looked at.
      const Status gated = gate(reads(name), false, false, arch);
      EXPECT_EQ(code_of(gated), "candidate-forbidden") << name << " " << arch;
    }
  for (const char* name : {"tid.x", "ctaid.z", "laneid", "lanemask_lt", "ntid.x", "nctaid.y"})
    EXPECT_EQ(code_of(gate(reads(name), false)), "fine") << name;
}

TEST_F(GpuGate, FindsThoseInPtxThatMachineCodeReadsFromConstants) {
  for (const char* name : {"nsmid", "gridid", "envreg0", "current_graph_exec"})
    EXPECT_EQ(code_of(gate(reads(name), true)), "candidate-forbidden") << name;
}

TEST_F(GpuGate, NamesTheLineOfTheSource) {
  const Status gated = gate(kernel_with("y[1] = 2;\n\ny[0] = clock64();"), true);
  ASSERT_FALSE(gated);
  EXPECT_NE(gated.error().place.find("line 4"), std::string::npos) << words_of(gated);
  EXPECT_EQ(gated.error().found, "%clock64");
}

TEST_F(GpuGate, WantsOverlapDeclared) {
  const std::string text = kernel_with("asm volatile(\"griddepcontrol.wait;\"); y[0] = 1;");
  EXPECT_EQ(code_of(gate(text, true, false)), "candidate-forbidden");
  EXPECT_EQ(code_of(gate(text, true, true)), "fine");
}

TEST_F(GpuGate, TakesTablesOfTheCompilersMathematics) {
  const Status gated = gate(kernel_with("y[0] = static_cast<int>(1000 * cosf(x[0]));"), true);
  EXPECT_TRUE(gated) << words_of(gated);
}

TEST_F(GpuGate, BoundsLocalMemory) {
  const auto with = [](int words) {
    return kernel_with(
        fmt::format("volatile float kept[{}]; kept[y[1] % {}] = x[0]; "
                    "y[0] = kept[y[2] % {}] > 0;",
                    words, words, words));
  };
  EXPECT_EQ(code_of(gate(with(1000), true)), "fine");
  EXPECT_EQ(code_of(gate(with(1100), true)), "candidate-forbidden");
}

TEST_F(GpuGate, RefusesACubinThatIsCutOff) {
  const auto image = runtime::compile_cuda(kernel_with("y[0] = 1;"), kArch);
  ASSERT_TRUE(image);
  const std::string bytes = read_file(image->path).value_or("");
  for (size_t size = 0; size < bytes.size(); size += 97) {
    const std::string part = bytes.substr(0, size);
    const auto file = ElfFile::read(part, "test");
    EXPECT_FALSE(file && check_gpu_image(*file, "test")) << size;
  }
}

// PTX by hand.
std::string ptx_with(const std::string& inside, const std::string& before = "") {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
         ".reg .pred %p<4>;\n" +
         inside + "\nret;\n}\n";
}

std::string verdict(const std::string& inside, const std::string& before = "") {
  return code_of(check_ptx(ptx_with(inside, before), "test", false));
}

TEST(Ptx, IsReadAsTheAssemblerReadsIt) {
  EXPECT_EQ(verdict("// mov.u32 %r1, %clock;"), "fine");
  EXPECT_EQ(verdict("/* mov.u32 %r1, %clock; */"), "fine");
  EXPECT_EQ(verdict("/*\n// */ mov.u32 %r1, %clock; /*\n*/"), "candidate-forbidden");
  EXPECT_EQ(verdict(".loc 1 1 1 mov.u32 %r1, %clock;"), "candidate-forbidden");
  EXPECT_EQ(verdict("{ { mov.u32 %r1, %clock; } }"), "candidate-forbidden");
  EXPECT_EQ(verdict("$L1: @!%p1 mov.u32 %r1, %smid;"), "candidate-forbidden");
  EXPECT_EQ(verdict("mov.u32 %r1, 1; mov.u32 %r2, %globaltimer_lo;"), "candidate-forbidden");
}

TEST(Ptx, ThatCannotBeReadIsRefused) {
  for (const char* text : {"/* no end", "#include \"other.ptx\"", "mov.u32 %r1, )",
                           "mov.u32 %r1, \xff;", ".pragma \"no end;", "#define mov.u32 trap"})
    EXPECT_EQ(verdict(text), "candidate-forbidden") << text;
}

TEST(Ptx, HasNoStateOfItsOwn) {
  for (const char* text :
       {".global .u32 kept;", ".const .u32 kept;", ".extern .global .u32 kept;",
        ".visible .global .u32 kept[4];", ".global .attribute(.managed) .u32 kept = 1;",
        ".tex .u64 kept;", ".common .global .u32 kept;"}) {
    EXPECT_EQ(verdict("", text), "candidate-forbidden") << text;
    EXPECT_EQ(verdict(text), "candidate-forbidden") << text;
  }
  EXPECT_EQ(verdict("", ".extern .shared .align 16 .b8 dynamic[];"), "fine");
  EXPECT_EQ(verdict(".shared .align 4 .b8 part[64]; .local .b8 frame[32];"), "fine");
}

TEST(Ptx, ConstantsAreReadAndNothingElse) {
  const std::string table = ".global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};";
  EXPECT_EQ(
      verdict("mov.u64 %rd1, table; add.s64 %rd2, %rd1, 4; ld.global.nc.u32 %r1, [%rd2];", table),
      "fine");
  for (const char* use :
       {"st.global.u32 [table], 1;", "mov.u64 %rd1, table; st.global.u32 [%rd1+4], 1;",
        "mov.u64 %rd1, table; add.s64 %rd2, %rd1, 4; atom.global.add.u32 %r1, [%rd2], 1;",
        "mov.u64 %rd1, table; st.local.u64 [%rd3], %rd1;",
        "mov.u64 %rd1, table; xor.b64 %rd2, %rd1, 4;",
        "mov.u64 %rd1, table; mov.b64 {%r1, %r2}, %rd1; red.global.add.u32 [%r1], 1;",
        "mov.u64 %rd1, table; setp.eq.u64 %p1, %rd1, 77;"})
    EXPECT_EQ(verdict(use, table), "candidate-forbidden") << use;
  EXPECT_EQ(verdict("", ".global .u64 table[2] = {k, 0};"), "candidate-forbidden");
  EXPECT_EQ(verdict("cvta.const.u64 %rd1, %rd2;"), "candidate-forbidden");
}

TEST(Ptx, CallsWhatIsThereAndDoesNotRecur) {
  const std::string add = ".func add(.param .b32 a)\n{\nret;\n}\n";
  EXPECT_EQ(verdict("call.uni add, (%r1);", add), "fine");
  EXPECT_EQ(verdict("call.uni other, (%r1);", add), "candidate-forbidden");
  EXPECT_EQ(verdict("call.uni add, (%r1);", ".func add(.param .b32 a);"), "candidate-forbidden");
  EXPECT_EQ(verdict("", ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);"),
            "candidate-forbidden");
  EXPECT_EQ(verdict("mov.u64 %rd1, add;", add), "candidate-forbidden");
  EXPECT_EQ(verdict("mov.u64 %rd1, k;"), "candidate-forbidden");
  EXPECT_EQ(verdict("",
                    ".func a();\n.func b()\n{\ncall.uni a;\nret;\n}\n.func a()\n{\ncall.uni "
                    "b;\nret;\n}\n"),
            "candidate-forbidden");
}

TEST(Ptx, TheMachinesRegistersCannotBeDeclaredAway) {
  EXPECT_EQ(verdict(".reg .b32 %clock; mov.u32 %r1, %clock;"), "candidate-forbidden");
  EXPECT_EQ(verdict(".reg .b32 %smid<9>;"), "candidate-forbidden");
}
}  // namespace
}  // namespace warploom::verify
