// At which line of its text the gate places an instruction that it refuses.
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "verify/cpu_gate.h"

namespace warploom::verify {
namespace {
// The place of the refusal of the first of these texts' kernels, k, m, ...
std::string place_of(const std::vector<std::string>& texts, bool foreign = true) {
  LaunchList list{Engine::cpu, "cpu"};
  for (const std::string& text : texts)
    list.kernels.push_back({.name = list.kernels.empty() ? "k" : "m", .source = text});
  const auto binary = runtime::compile(list, {.foreign = foreign});
  if (!binary) return describe(binary.error());
  const Status checked = check_cpu_kernel(list, 0, binary->images[0], foreign);
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().code, ErrorCode::kCandidateForbidden);
  return checked.error().place;
}

const std::string kClock = R"(// a comment
#include <x86intrin.h>
extern "C" void k(void* const* buffers, long long, void*) {
  auto* y = static_cast<long long*>(buffers[0]);
  y[0] = 1;
  y[1] = static_cast<long long>(__rdtsc());
}
)";

TEST(GateLines, AnAsmStatementIsPlacedAtItsOwn) {
  EXPECT_EQ(place_of({"\n\nextern \"C\" void k(void* const*, long long, void*) {\n"
                      "  asm volatile(\"cpuid\" ::: \"eax\", \"ebx\", \"ecx\", \"edx\");\n}\n"}),
            "k, line 4");
}

TEST(GateLines, AnInstructionOfAHeadersFunctionIsPlacedWhereThatIsCalled) {
  EXPECT_EQ(place_of({kClock}), "k, line 6");
}

TEST(GateLines, OneOfAFunctionThatWasInlinedIsPlacedInThatFunction) {
  EXPECT_EQ(place_of({"static inline void ask() {\n  asm volatile(\"rdpid %%rax\" ::: \"rax\");\n}"
                      "\nextern \"C\" void k(void* const*, long long, void*) {\n  ask();\n}\n"}),
            "k, line 2");
}

TEST(GateLines, OurOwnTextHasNone) {
  EXPECT_EQ(place_of({kClock}, false), "k");
}

const std::string kHarmless =
    "// another\n#include <x86intrin.h>\nextern \"C\" void m(void* const*, long long, void*) {}\n";

TEST(GateLines, OfTextsThatAreCompiledTogetherItsOwnHasTheLine) {
  EXPECT_EQ(place_of({kClock, kHarmless}), "k, line 6");
}

TEST(GateLines, AnInstructionOfAnothersTextIsPlacedThere) {
  std::string clock = kClock;
  clock.replace(clock.find("void k("), 7, "void m(");
  EXPECT_EQ(place_of({"#include <x86intrin.h>\nextern \"C\" void k(void* const*, long long, "
                      "void*) {}\n",
                      clock}),
            "m, line 6");
}

TEST(GateLines, ATextOfSeveralFilesSaysOfWhich) {
  const std::string marked = "//: line 40 of mine_kernels.cpp\n" + kClock;
  EXPECT_EQ(place_of({marked}), "k, line 45 of mine_kernels.cpp");
}
}  // namespace
}  // namespace warploom::verify
