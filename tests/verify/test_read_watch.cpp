// What is seen of a candidate's reads: what is its own, what is not, and by which instructions.
#include <gtest/gtest.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "runtime/compilers.h"
#include "target/capabilities.h"
#include "verify/cell.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
namespace {
constexpr int64_t kBytes = 16 << 10;
constexpr int64_t kOwn = 4096;  // of these the kernel's, in the middle

struct Seen {
  std::string read = "nothing";  // that is not its own
  size_t seen = 0;
};

// Of a kernel with this body, whose buffer `x` has memory on both sides.
Seen seen_of(const std::string& body, int64_t blocks = 3, bool every = true) {
  const auto memory = SharedMemory::make(int64_t{1} << 30);
  const auto buffer = memory->allocate(kBytes);
  const std::string text =
      "#include <cmath>\n#include <cstring>\n#include <immintrin.h>\n"
      "extern \"C\" void kernel(void* const* buffers, long long block, void*) {\n"
      "int* x = (int*)buffers[0];\n" +
      body + "\n}\n";
  const auto image = runtime::compile_shared_object(text, runtime::cpu_compile_flags(), "cpu",
                                                    std::chrono::minutes(1));
  if (!image) return {"not compiled: " + image.error().found};
  auto cell = Cell::start(memory, {.functions = {{read_file(image->path).value(), "kernel"}},
                                   .mapped = {{memory->extent_of(buffer.get())}}});
  if (!cell) return {"no cell: " + cell.error().found};
  const uint64_t begin = (*cell)->address_of(buffer.get()) + kOwn;
  const CellLaunch launch{.function = 0, .buffers = {begin}, .blocks = blocks, .end = blocks};
  const auto report =
      (*cell)->watch_reads({.launches = {launch}}, {{begin, begin + kOwn, "x"}}, every, 1);
  if (!report) return {report.error().message + " " + report.error().found};
  return {report->finding ? report->finding->read : "nothing", report->seen};
}

TEST(ReadWatch, WhatIsItsOwnIsLetThrough) {
  const Seen seen = seen_of(
      "float y[64]; std::memcpy(y, x, sizeof y);\n"
      "static const float table[5] = {1, 2, 3, 5, 8};\n"
      "for (int i = 0; i < 64; ++i) y[i] = std::exp(y[i] * table[(x[i] & 0xff) % 5]);\n"
      "std::memcpy(x + 64 * block, y, sizeof y);");
  EXPECT_EQ(seen.read, "nothing");
  EXPECT_GT(seen.seen, 3u);
}

TEST(ReadWatch, AVectorMayBeginWithinABufferAndEndBehindIt) {
  EXPECT_EQ(seen_of("typedef int V __attribute__((vector_size(32), aligned(4)));\n"
                    "V v = *(volatile V*)(x + 1021); x[block] = v[0] + v[1];")
                .read,
            "nothing");
}

// Whether compiled kernels may have such instructions.
bool has_masks() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx") != 0;
#else
  return false;
#endif
}

TEST(ReadWatch, LanesThatAMaskLeavesOutAreNotRead) {
  if (!has_masks()) GTEST_SKIP() << "this processor masks no lanes";
  const std::string body =
      "alignas(32) static const int lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};\n"
      "const __m256i mask = _mm256_loadu_si256((const __m256i*)(lanes + 8 - MANY));\n"
      "const __m256 v = _mm256_maskload_ps((const float*)x + FROM, mask);\n"
      "_mm256_storeu_ps((float*)x, v);";
  const auto with = [&](const std::string& many, const std::string& from) {
    return "#define MANY " + many + "\n#define FROM " + from + "\n" + body;
  };
  EXPECT_EQ(seen_of(with("0", "5000")).read, "nothing");
  EXPECT_EQ(seen_of(with("3", "1021")).read, "nothing");
  EXPECT_EQ(seen_of(with("3", "1028")).read, "12 bytes, 16 behind x");
}

// Of a tile of three rows of 64 bytes, so far apart, from x on.
TEST(ReadWatch, EveryRowOfATileIsLookedAt) {
  if (!target::capabilities_of("cpu")->has_bf16_tiles) GTEST_SKIP() << "no tiles here";
  const auto rows_apart = [](const std::string& bytes) {
    return seen_of(
               "alignas(64) unsigned char sizes[64] = {1};\n"
               "sizes[16] = 64;\nsizes[48] = 3;\n"
               "_tile_loadconfig(sizes);\n_tile_loadd(0, x, " +
               bytes + ");\n_tile_stored(0, x, 64);\n_tile_release();")
        .read;
  };
  EXPECT_EQ(rows_apart("2000"), "nothing");
  EXPECT_EQ(rows_apart("2080"), "64 bytes, 64 behind x");
  EXPECT_EQ(rows_apart("-64"), "64 bytes, 64 in front of x");
}

class ReadsOf : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ReadsOf, AreSeen) {
  const auto& [body, words] = GetParam();
  for (const bool every : {false, true}) {
    const Seen seen = seen_of(body, 3, every);
    EXPECT_NE(seen.read.find(words), std::string::npos) << seen.read;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Others, ReadsOf,
    testing::Values(
        std::pair{"x[0] = ((volatile int*)x)[-14];", "4 bytes, 56 in front of x"},
        std::pair{"x[0] = ((volatile int*)x)[1025];", "4 bytes, 4 behind x"},
        std::pair{"x[0] = ((const volatile char*)&expf)[0];", "of code that is not its own"},
        std::pair{"x[0] = ((const volatile char*)__builtin_return_address(0))[0];",
                  "of code that is not its own"},
        std::pair{"x[0] = ((const volatile char*)&kernel)[0];", "of its own instructions"},
        std::pair{"x[0] = ((volatile long*)__builtin_frame_address(0))[8];", "above its stack"},
        std::pair{"x[0] = ((volatile char*)__builtin_frame_address(0))[-100000];",
                  "of the stack below"},
        std::pair{"x[0] = ((volatile long*)buffers)[-3];",
                  "8 bytes, 24 in front of the list of its buffers"},
        std::pair{"int n = 400; asm(\"\" : \"+r\"(n)); char y[512];\n"
                  "memcpy(y, (char*)x - 16, n); x[0] = y[block];",
                  "16 in front of x, by a copy"},
        std::pair{"long n = -8 * 64; asm volatile(\"btq %1, (%0)\" : : \"r\"(x), \"r\"(n));",
                  "64 in front of x"},
        std::pair{"void* f = x - 8; long n = 64; char y[64]; void* t = y;\n"
                  "asm volatile(\"rep movsb\" : \"+S\"(f), \"+D\"(t), \"+c\"(n) : : \"memory\");",
                  "64 bytes, 32 in front of x"},
        std::pair{"void* to = (char*)&expf + 1; asm volatile(\"call *%0\" : : \"r\"(to));",
                  "a branch to"}));

// The first reads of an instruction are of its buffer, later ones are not.
TEST(ReadWatch, AnInstructionIsLookedAtAgainWhileThereAreStopsLeft) {
  const std::string body =
      "int sum = 0, i = 0;\n#pragma GCC unroll 1\n#pragma GCC novector\n"
      "for (; i < (block == 2 ? 1030 : 40); ++i) { int v = x[i]; asm volatile(\"\" : \"+r\"(v)); "
      "sum += v; }\nx[block] = sum;";
  EXPECT_NE(seen_of(body).read.find("behind x"), std::string::npos);
}

TEST(ReadWatch, AKernelThatCrashesHasCrashed) {
  EXPECT_NE(seen_of("*(volatile int*)0x1234 = 1;").read.find("crashed"), std::string::npos);
}

TEST(ReadWatch, OneThatDoesNotEndIsLookedAtForAWhile) {
  EXPECT_EQ(seen_of("for (volatile int z = 0;; ++z) {}").read, "nothing");
}
}  // namespace
}  // namespace warploom::verify
