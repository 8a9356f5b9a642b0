// Wavefronts of shared-memory instructions, line by line.
#include <gtest/gtest.h>
#include <cstdint>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
struct Access {
  const char* name;
  const char* call;  // at shared address s + …, by lane t
  int64_t wavefronts;
  int64_t least;
};

const Access kAccesses[] = {
    {"neighbouring words", "wl::st_shared<4>(s + 4 * t, wl::at(x, 0));", 1, 1},
    {"every other word", "wl::st_shared<4>(s + 8 * t, wl::at(x, 0));", 2, 1},
    {"one bank", "wl::st_shared<4>(s + 128 * t, wl::at(x, 0));", 32, 1},
    {"one word for all", "wl::ld_shared<4>(wl::at(x, 0), s);", 1, 1},
    {"half words", "wl::ld_shared<2>(wl::at(h, 0), s + 2 * t);", 1, 1},
    {"some lanes", "if (t < 4) wl::st_shared<4>(s + 128 * t, wl::at(x, 0));", 4, 1},
    {"8 bytes in a row", "wl::ld_shared<8>(wl::at(x, 0), s + 8 * t);", 2, 2},
    {"8 bytes at twice their size", "wl::ld_shared<8>(wl::at(x, 0), s + 16 * t);", 4, 2},
    {"16 bytes in a row", "wl::ld_shared<16>(wl::at(x, 0), s + 16 * t);", 4, 4},
    {"16 bytes a row of 128", "wl::ld_shared<16>(wl::at(x, 0), s + 128 * t);", 32, 4},
    // The whole warp meets each bank eight times; the eight lanes served together meet the same
    // four banks.
    {"16 bytes whose quarters conflict",
     "wl::ld_shared<16>(wl::at(x, 0), s + t % 8 * 128 + t / 8 * 16);", 32, 4},
    {"16 bytes a row of 128, swizzled",
     "wl::ld_shared<16>(wl::at(x, 0), s + wl::swizzle<3, 4, 3>(t * 128));", 4, 4},
    {"cp.async", "wl::cp_async<16>(s + 128 * t, in);", 32, 4},
    {"matrices a row of 128", "wl::ldmatrix<4, false>(wl::at(h, 0), s + t * 128);", 32, 4},
    {"matrices in a row", "wl::stmatrix<2, false>(s + t % 16 * 16, wl::at(h, 0));", 2, 2},
};

TEST(Banks, EachLineHasItsWavefronts) {
  std::string text =
      "WL_KERNEL(banks, 64, 1)(const float* in) {\n  const unsigned s = WL_SHARED_BASE();\n"
      "  const int t = wl::lane();\n  WL_REG(float, x, 4); WL_REG(wl::bf16, h, 8);\n";
  for (const Access& a : kAccesses)
    text += std::string(a.call) + "\n";
  const Library lib({text + "}\nWL_EXPORT(banks)\n"});
  std::vector<float> in(4);
  const void* pin = in.data();
  void* args[] = {&pin};
  Launch l;
  l.entry = lib.entry("banks");
  l.block = 64;
  l.shared_bytes = 4096;
  l.args = args;
  l.options = {.banks = true};
  l.allocations = {{in.data(), 16, "in"}};
  const Report r = run(l);
  int line = 5;
  for (const Access& a : kAccesses) {
    const auto found = r.banks.find(line++);
    ASSERT_NE(found, r.banks.end()) << a.name << "\n" << r.text();
    EXPECT_EQ(found->second.instructions, 2) << a.name;  // one a warp
    EXPECT_EQ(found->second.wavefronts, 2 * a.wavefronts) << a.name;
    EXPECT_EQ(found->second.least, 2 * a.least) << a.name;
  }
}
}  // namespace
}  // namespace warploom::emulator::testing
