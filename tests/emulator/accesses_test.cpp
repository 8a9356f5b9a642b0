// Random programs of accesses: a wide access is what its parts are.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
// Sixteen bytes share what is known of them until an access is to a part. So whatever the accesses,
// each whole or in pieces of at most `piece` bytes on one line, the same hazards must come as
// often.
std::string random_accesses(uint64_t seed, int piece) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  std::string text =
      "WL_KERNEL(mixed, 64, 1)(float* out) {\n  const unsigned s = WL_SHARED_BASE(); const int t = "
      "wl::thread();\n"
      "  char* const g = reinterpret_cast<char*>(out);\n"
      "  WL_REG(wl::bf16, x, 8); for (int i = 0; i < 8; ++i) x[i] = wl::cast<wl::bf16>(1.0f);\n"
      "  if (t == 0) wl::mbarrier_init(s + 24, 1);\n";
  const int most = 4 + below(60);  // threads that act: of few, more accesses are ordered
  for (int i = 0; i < 60; ++i) {
    if (const int sync = below(6); sync < 2)
      text += sync ? "  wl::sync_warp();\n" : "  wl::sync_threads();\n";
    constexpr int kSizes[] = {2, 4, 8, 16, 16, 16};
    constexpr const char* kCalls[] = {"ld_shared", "st_shared", "ld_global", "st_global",
                                      "cp_async"};
    const int call = below(5);
    const int bytes = call == 4 ? 4 << 2 * below(2) : kSizes[below(6)];
    const int begin = below(48 / bytes) * bytes;
    const int first = below(most);
    text +=
        fmt::format("  if (t >= {} && t < {}) {{", first, first + 1 + (below(4) ? 0 : below(8)));
    for (int at = 0; at < bytes; at += piece) {
      const int part = std::min(piece, bytes - at);
      const std::string value = fmt::format("wl::at(x, {})", at / 2);
      if (call < 2)
        text += fmt::format(" wl::{}<{}>({});", kCalls[call], part,
                            call ? fmt::format("s + {}, {}", begin + at, value)
                                 : fmt::format("{}, s + {}", value, begin + at));
      else if (call < 4)
        text += fmt::format(
            " wl::{}<{}>({});", kCalls[call], part,
            call == 3
                ? fmt::format("reinterpret_cast<wl::bf16*>(g + {}), {}", begin + at, value)
                : fmt::format("{}, reinterpret_cast<const wl::bf16*>(g + {})", value, begin + at));
      else
        text += fmt::format(" wl::cp_async<{}>(s + {}, g + {});", part, begin + at, begin + at);
    }
    text += call < 4 ? " }\n" : " wl::cp_async_commit(); wl::cp_async_wait<0>(); }\n";
  }
  return text + "}\nWL_EXPORT(mixed)\n";
}

TEST(Rules, AnAccessOfSixteenBytesIsFourOfFour) {
  constexpr int kPrograms = 12;
  std::vector<std::string> texts;
  for (int i = 0; i < kPrograms; ++i)
    for (const int piece : {16, 4})
      texts.push_back(random_accesses(static_cast<uint64_t>(i), piece));
  const Library lib(texts);
  std::set<std::string> kinds;
  for (size_t i = 0; i < texts.size(); i += 2)
    for (const Timing timing : {Timing::early, Timing::late}) {
      std::multiset<std::string> found[2];  // their order is that of the pieces
      for (size_t piece = 0; piece < 2; ++piece) {
        std::vector<float> out(12);
        void* pout = out.data();
        void* args[] = {&pout};
        Launch l;
        l.entry = lib.entry("mixed", static_cast<int>(i + piece));
        l.block = 64;
        l.shared_bytes = 64;
        l.args = args;
        l.options = {.seed = i, .timing = timing, .most_hazards = 1000};
        l.allocations = {{out.data(), 48, "out", true, false}};
        for (const Hazard& h : run(l).hazards) {
          found[piece].insert(fmt::format("{} {} {}: {} ({} times)", h.kind, h.line, h.other_line,
                                          h.message, h.times));
          kinds.insert(h.kind);
        }
      }
      EXPECT_EQ(found[0], found[1]) << texts[i];
    }
  for (const char* kind : {"race", "uninitialised", "mbarrier"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}
}  // namespace
}  // namespace warploom::emulator::testing
