// Cells: what runs in one, what it cannot do, and that nothing of it outlives a call.
#include <gtest/gtest.h>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include "base/error.h"
#include "base/file.h"
#include "cpu/pool.h"
#include "runtime/compilers.h"
#include "verify/cell.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
namespace {
// A cell of one compiled text, whose kernels are called `kernel`, with one buffer of a page.
struct Held {
  std::shared_ptr<SharedMemory> memory = SharedMemory::make(int64_t{1} << 30);
  std::shared_ptr<void> buffer = memory->allocate(kBytes);
  std::unique_ptr<Cell> cell;

  static constexpr int64_t kBytes = 4096;

  int* values() const { return static_cast<int*>(buffer.get()); }

  Result<double> call(int64_t blocks = 1, int threads = 1, double limit_ms = 10'000) {
    const CellLaunch launch{.function = 0,
                            .buffers = {cell->address_of(buffer.get())},
                            .blocks = blocks,
                            .end = blocks};
    return cell->run({.launches = {launch}, .threads = threads, .limit_ms = limit_ms});
  }
};

Held held(const std::string& body, int threads = 1, int elsewhere = 0,
          const std::string& input = "") {
  Held made;
  const std::string text =
      "#include <cmath>\n#include <cstdlib>\n#include <cstring>\nextern \"C\" void kernel(void* "
      "const* buffers, long long block, void* scratch) {\n"
      "int* out = (int*)buffers[0];\n" +
      body + "\n}\n";
  const auto image = runtime::compile_shared_object(text, runtime::cpu_compile_flags(), "cpu",
                                                    std::chrono::minutes(1));
  EXPECT_TRUE(image) << (image ? "" : image.error().message);
  if (!image) return made;
  const CellOptions options{.functions = {{read_file(image->path).value(), "kernel"}},
                            .mapped = {{made.memory->extent_of(made.buffer.get()), input}},
                            .threads = threads,
                            .elsewhere = elsewhere};
  auto cell = Cell::start(made.memory, options);
  EXPECT_TRUE(cell) << (cell ? "" : cell.error().message + ": " + cell.error().found);
  if (cell) made.cell = *std::move(cell);
  std::memset(made.values(), 0, Held::kBytes);
  return made;
}

TEST(Cell, RunsAKernelOnBuffersOfThisProcess) {
  Held one = held("out[block] = 7 + (int)block;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call(5);
  ASSERT_TRUE(us) << us.error().message << us.error().found;
  EXPECT_GT(*us, 0);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(one.values()[i], 7 + i);
  EXPECT_EQ(one.values()[5], 0);
}

TEST(Cell, RunsEveryBlockOnceOnAllThreads) {
  const int threads = static_cast<int>(wl::allowed_cores().size());
  Held one = held("__atomic_fetch_add(&out[block], 1, __ATOMIC_RELAXED);", threads);
  ASSERT_TRUE(one.cell);
  for (int call = 0; call < 20; ++call)
    ASSERT_TRUE(one.call(1000, threads));
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(one.values()[i], 20) << i;
}

TEST(Cell, CallsThisMachinesMathematics) {
  Held one = held(
      "((float*)out)[0] = std::exp(((float*)out)[1]); ((double*)out)[1] = "
      "std::pow(((double*)out)[2], 0.37); ((float*)out)[6] = std::erf(0.5f);");
  ASSERT_TRUE(one.cell);
  auto* const floats = reinterpret_cast<float*>(one.values());
  auto* const doubles = reinterpret_cast<double*>(one.values());
  floats[1] = 1.25f;
  doubles[2] = 12.5;
  ASSERT_TRUE(one.call());
  EXPECT_EQ(floats[0], std::exp(1.25f));
  EXPECT_EQ(doubles[1], std::pow(12.5, 0.37));
  EXPECT_EQ(floats[6], std::erf(0.5f));
}

TEST(Cell, EndsAtASystemCall) {
  Held one = held(
      "long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(39L) : \"rcx\", \"r11\"); "
      "out[0] = (int)r;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden);
}

TEST(Cell, SaysWhereACandidateCrashed) {
  Held one = held("*(volatile int*)0x1234 = 1;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateCrashed);
  EXPECT_NE(us.error().found.find("0x1234"), std::string::npos) << us.error().found;
  EXPECT_EQ(one.cell->process(), 0);
}

TEST(Cell, EndsACandidateThatDoesNotEnd) {
  Held one = held("for (volatile int z = 0;; ++z) {}");
  ASSERT_TRUE(one.cell);
  const auto us = one.call(1, 1, 200);
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateHung);
}

TEST(Cell, AFaultOfOneThreadEndsThoseThatWaitForIt) {
  const int threads = static_cast<int>(wl::allowed_cores().size());
  Held one = held("if (block == 0) __builtin_trap();", threads);
  ASSERT_TRUE(one.cell);
  const CellLaunch launch{
      .function = 0, .buffers = {one.cell->address_of(one.buffer.get())}, .blocks = 64, .end = 64};
  const auto us = one.cell->run({.launches = {launch, launch}, .times = 3, .threads = threads});
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateCrashed);
}

TEST(Cell, AFunctionThatIsNotThereIsForbidden) {
  Held one = held("out[0] = std::getenv(\"HOME\") != nullptr;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden);
}

TEST(Cell, MathematicsThatIsOnNoListIsForbidden) {
  Held one = held("out[0] = (int)j0(out[1]);");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden);
}

TEST(Cell, RunsASeriesInOrderWithoutAStopBetween) {
  Held one = held("if (block == 0) out[0] = 3 * out[0] + 1;",
                  static_cast<int>(wl::allowed_cores().size()));
  ASSERT_TRUE(one.cell);
  const CellLaunch launch{
      .function = 0, .buffers = {one.cell->address_of(one.buffer.get())}, .blocks = 7, .end = 7};
  ASSERT_TRUE(one.cell->run({.launches = {launch, launch}, .times = 3, .threads = 64}));
  EXPECT_EQ(one.values()[0], 364);  // six times from 0
}

TEST(Cell, MixedBlocksAreEachRunOnce) {
  Held one = held("__atomic_fetch_add(&out[block], 1, __ATOMIC_RELAXED);");
  ASSERT_TRUE(one.cell);
  CellLaunch launch{.function = 0,
                    .buffers = {one.cell->address_of(one.buffer.get())},
                    .blocks = 100,
                    .first = 41,
                    .stride = 37};
  for (const auto& [begin, end] : {std::pair<int, int>{0, 30}, {30, 31}, {31, 100}}) {
    launch.begin = begin;
    launch.end = end;
    ASSERT_TRUE(one.cell->run({.launches = {launch}, .threads = 1}));
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(one.values()[i], 1) << i;
}

TEST(Cell, LiesWhereProgramsHaveTheirMemoryWhenAsked) {
  const Held one = held("out[0] = 1;");
  ASSERT_TRUE(one.cell);
  const auto place_of = [&](const Cell& cell) { return cell.address_of(one.buffer.get()) >> 40; };
  EXPECT_EQ(place_of(*one.cell) & ~uint64_t{7}, 0x70u);
  for (int place = 1; place <= 4; ++place) {
    const auto other = Cell::start(
        one.memory, {.mapped = {{one.memory->extent_of(one.buffer.get())}}, .elsewhere = place});
    ASSERT_TRUE(other) << other.error().found;
    EXPECT_NE(place_of(**other) & ~uint64_t{7}, 0x70u) << place;
  }
}

// What a body writes to `out[0]` and `out[1]`, a word, in calls between which all is renewed.
std::set<uint64_t> words_of(Held& one, int calls) {
  std::set<uint64_t> found;
  for (int call = 0; call < calls; ++call) {
    one.cell->renew(static_cast<uint64_t>(call));
    EXPECT_TRUE(one.call());
    uint64_t word = 0;
    std::memcpy(&word, one.values(), sizeof word);
    found.insert(word);
  }
  return found;
}

const char* const kWriteWord = "__builtin_memcpy(out, &word, 8);";
constexpr int kElsewhere = 1;

TEST(Cell, ElsewhereRegistersOfVectorsHoldWhatNobodyKnows) {
  const std::string body =
      std::string("long word; asm volatile(\"movq %%xmm13, %0\" : \"=r\"(word));") + kWriteWord;
  Held here = held(body);
  ASSERT_TRUE(here.cell);
  EXPECT_EQ(words_of(here, 3), std::set<uint64_t>{0});
  Held elsewhere = held(body, 1, kElsewhere);
  ASSERT_TRUE(elsewhere.cell);
  const auto words = words_of(elsewhere, 4);
  EXPECT_EQ(words.size(), 4u);
  EXPECT_FALSE(words.contains(0));
}

TEST(Cell, ElsewhereRegistersWithoutArgumentsHoldWhatNobodyKnows) {
  Held one =
      held(std::string("long word; asm volatile(\"mov %%r11, %0\" : \"=r\"(word));") + kWriteWord,
           1, kElsewhere);
  ASSERT_TRUE(one.cell);
  EXPECT_GT(words_of(one, 8).size(), 4u);
}

TEST(Cell, ElsewhereItsPartsLieFarFromOneAnother) {
  const std::string body =
      std::string(
          "long word = ((long)__builtin_frame_address(0) >> 40) - ((long)buffers[0] >> 40);") +
      kWriteWord;
  Held here = held(body);
  ASSERT_TRUE(here.cell);
  EXPECT_EQ(words_of(here, 1), std::set<uint64_t>{0});
  int apart = 0;
  for (int place = 1; place <= 4; ++place) {
    Held one = held(body, 1, place);
    ASSERT_TRUE(one.cell);
    apart += !words_of(one, 1).contains(0);
  }
  EXPECT_GE(apart, 1);
}

TEST(Cell, TheStackBeginsAnywhereInAPage) {
  Held one = held(std::string("long word = (long)__builtin_frame_address(0) & 4095;") + kWriteWord);
  ASSERT_TRUE(one.cell);
  EXPECT_GT(words_of(one, 20).size(), 8u);
}

TEST(Cell, WhatTheStacksProtectorReadsIsAsInAProgram) {
  Held one = held(std::string("long word; asm volatile(\"mov %%fs:0x28, %0\" : \"=r\"(word));") +
                  kWriteWord);
  ASSERT_TRUE(one.cell);
  const auto words = words_of(one, 5);
  EXPECT_EQ(words.size(), 5u);
  for (const uint64_t word : words)
    EXPECT_EQ(word & 0xff, 0u);
}

TEST(Cell, ARegisterThatIsNotGivenBackIsForbiddenElsewhere) {
  Held one = held("if (block == 2) asm volatile(\"not %%r13\" : : : \"memory\");", 1, kElsewhere);
  ASSERT_TRUE(one.cell);
  const auto us = one.call(4);
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden) << us.error().message;
}

TEST(Cell, AnX87RegisterThatIsLeftInUseIsForbiddenElsewhere) {
  Held one = held("asm volatile(\"fldpi\"); out[0] = 1;", 1, kElsewhere);
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden) << us.error().message;
}

TEST(Cell, AnInputCanBeReadAlone) {
  Held reads = held("volatile int z = out[block]; (void)z;", 1, 0, "x");
  ASSERT_TRUE(reads.cell);
  EXPECT_TRUE(reads.call());
  Held writes = held("volatile int* z = out; *z = *z;", 1, 0, "x");
  ASSERT_TRUE(writes.cell);
  const auto us = writes.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateWroteInput) << us.error().message;
  EXPECT_EQ(us.error().place, "x");
}

TEST(Cell, GoesOnWithTheRegistersThatACallLeft) {
  Held one = held(
      "long v; asm volatile(\"movq %%xmm15, %0\" : \"=r\"(v)); out[0] = (int)v; v += 5;"
      "asm volatile(\"movq %0, %%xmm15\" : : \"r\"(v));");
  ASSERT_TRUE(one.cell);
  one.cell->renew(1);
  one.cell->go_on();
  for (const int expected : {0, 5, 10}) {
    ASSERT_TRUE(one.call());
    EXPECT_EQ(one.values()[0], expected);
  }
  one.cell->keep();
  one.cell->renew_as_new();
  ASSERT_TRUE(one.call());
  EXPECT_EQ(one.values()[0], 0);
  one.cell->renew_as_left();
  ASSERT_TRUE(one.call());
  EXPECT_EQ(one.values()[0], 15);
}

TEST(Cell, ItsTimeIsThatOfTheWork) {
  Held one = held("for (volatile int z = 0; z < 20000000; z = z + 1) {}");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_TRUE(us);
  EXPECT_GT(*us, 2000);
}

// What a call could leave for the next one, and whether the next finds it: the body writes
// `out[0]` where it finds nothing.
class Leaves : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Leaves, NothingForTheNextCall) {
  Held one = held(GetParam().second);
  ASSERT_TRUE(one.cell);
  for (int call = 0; call < 3; ++call) {
    one.values()[0] = 0;
    one.cell->renew(static_cast<uint64_t>(call));
    const auto us = one.call();
    ASSERT_TRUE(us) << us.error().message << " " << us.error().found;
    EXPECT_EQ(one.values()[0], 1) << "call " << call << " found what another one left";
  }
}

INSTANTIATE_TEST_SUITE_P(
    State, Leaves,
    testing::Values(
        std::pair{"Stack",
                  "volatile long* p = (volatile long*)((char*)__builtin_frame_address(0) - 900000);"
                  "out[0] = *p != 0x5eed; *p = 0x5eed;"},
        std::pair{"ThreadPointer",
                  "long v; asm volatile(\"mov %%fs:200, %0\" : \"=r\"(v)); out[0] = v != 0x5eed; "
                  "asm volatile(\"movq $0x5eed, %%fs:200\" : : : \"memory\");"},
        std::pair{"FsBase",
                  "long v; asm volatile(\"rdfsbase %0\" : \"=r\"(v)); out[0] = v != 0x5eed; "
                  "asm volatile(\"wrfsbase %0\" : : \"r\"(0x5eedL));"},
        std::pair{"GsBase",
                  "long v; asm volatile(\"rdgsbase %0\" : \"=r\"(v)); out[0] = v != 0x5eed; "
                  "asm volatile(\"wrgsbase %0\" : : \"r\"(0x5eedL));"},
        std::pair{"RoundingMode",
                  "unsigned m; asm volatile(\"stmxcsr %0\" : \"=m\"(m)); out[0] = m == 0x1f80; "
                  "m = 0x9fc0; asm volatile(\"ldmxcsr %0\" : : \"m\"(m));"},
        std::pair{"X87",
                  "unsigned short c; asm volatile(\"fnstcw %0\" : \"=m\"(c)); out[0] = c == 0x37f; "
                  "c = 0x27f; asm volatile(\"fldcw %0\" : : \"m\"(c));"},
        std::pair{"VectorRegister",
                  "long v; asm volatile(\"movq %%xmm15, %0\" : \"=r\"(v)); out[0] = v != 0x5eed; "
                  "v = 0x5eed; asm volatile(\"movq %0, %%xmm15\" : : \"r\"(v));"},
        std::pair{"Register",
                  "long v; asm volatile(\"mov %%r11, %0\" : \"=r\"(v)); out[0] = v != 0x5eed; "
                  "v = 0x5eed; asm volatile(\"mov %0, %%r11\" : : \"r\"(v) : \"r11\");"}),
    [](const auto& row) { return std::string(row.param.first); });

TEST(Cell, ItsTimeStampCounterIsOff) {
  Held one = held("unsigned t; asm volatile(\"rdtsc\" : \"=a\"(t) : : \"rdx\"); out[0] = (int)t;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateCrashed);
}

TEST(Cell, MapsNothingBeyondWhatIsBound) {
  Held one = held("out[0] = out[1024 + block];");  // the page behind
  ASSERT_TRUE(one.cell);
  EXPECT_NE(one.cell->held().find("no descriptors"), std::string::npos) << one.cell->held();
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateCrashed);
}

TEST(Cell, ItsCodeCannotBeWritten) {
  Held one = held(
      "unsigned long at; asm volatile(\"lea 0(%%rip), %0\" : \"=r\"(at)); "
      "*(volatile char*)at = 1;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateCrashed);
}
}  // namespace
}  // namespace warploom::verify
