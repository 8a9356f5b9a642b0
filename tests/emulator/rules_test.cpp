// One small kernel a rule: what the emulator must say, and that the legal neighbour passes.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "emulator.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
struct Rule {
  const char* name;
  const char* kind;  // kind of a hazard that must be reported; "" clean; "deadlock"
  const char* body;
  int threads = 64;
  int line = 0;  // of the body (1 its first), 0 any
  int blocks = 1;
  bool after_launch = false;
};

// Accumulators handed to wgmma and back: PIN is wgmma_fence_regs, or nothing.
#define PIN "  wl::wgmma_fence_regs<4>(wl::at(acc, 0));\n"
#define WGMMA(before, after)                                                                      \
  "\n  WL_REG(float, zero, 1); zero[0] = 0.0f; wl::st_shared<4>(s + 4 * t, wl::at(zero, 0));\n"   \
  "  wl::fence_async_shared(); wl::sync_threads();\n"                                             \
  "  WL_REG(wl::bf16, a, 8); for (int i = 0; i < 8; ++i) a[i] = wl::cast<wl::bf16>(1.0f);\n"      \
  "  WL_REG(float, acc, 4); for (int i = 0; i < 4; ++i) acc[i] = 0.0f;\n" before                  \
  "  wl::wgmma_rs<8, wl::bf16, false>(wl::at(acc, 0), wl::at(a, 0), wl::smem_descriptor(s, 128, " \
  "256, 0), true);\n"                                                                             \
  "  wl::wgmma_commit();\n" after "  zero[0] = acc[3];\n"

// Parameters of every body: const float* in (64 floats), float* out (64 floats, not initialised),
// float* shared_sums (128 zeros), int* shared_flags (4 zeros), unsigned s (shared base).
const Rule kRules[] = {
    {"a store after a barrier is ordered", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s + 4 * t, wl::at(x, 0));
  wl::sync_threads();
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t ^ 33));
)"},
    {"two threads writing one word race", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s, wl::at(x, 0));
)",
     64, 3},
    {"neighbouring halves of a word do not race", "", R"(
  WL_REG(wl::bf16, x, 1); x[0] = wl::cast<wl::bf16>(1.0f);
  wl::st_shared<2>(s + 2 * t, wl::at(x, 0));
)"},
    {"a warp barrier does not order warps", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s + 4 * t, wl::at(x, 0));
  wl::sync_warp();
  wl::st_shared<4>(s + 4 * (t ^ 32), wl::at(x, 0));
)"},
    {"a warp barrier orders a warp", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s + 4 * t, wl::at(x, 0));
  wl::sync_warp();
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t ^ 1));
)"},
    {"shared memory holds nothing at first", "uninitialised", R"(
  WL_REG(float, x, 1);
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * t);
)",
     64, 3},
    {"a register holds nothing at first", "uninitialised", R"(
  WL_REG(float, x, 2); x[0] = 1.0f;
  out[0] = x[1];
)",
     64, 3},
    {"register arrays end", "registers", R"(
  WL_REG(float, x, 2);
  x[t] = 1.0f;
)",
     64, 3},
    {"shared memory ends", "out-of-range", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s + 1024 - 128 + 4 * t, wl::at(x, 0));
)"},
    {"global buffers end", "out-of-range", R"(
  WL_REG(float, x, 1);
  wl::ld_global<4>(wl::at(x, 0), in + t + 1);
)"},
    {"inputs are not written", "out-of-range", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_global<4>(const_cast<float*>(in) + t, wl::at(x, 0));
)"},
    {"outputs hold nothing at first", "uninitialised", R"(
  WL_REG(float, x, 1);
  wl::ld_global<4>(wl::at(x, 0), out + t);
)"},
    {"two blocks writing one element race", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_global<4>(out + t, wl::at(x, 0));
)",
     64, 3, 2},
    {"an element read by the block before is not written", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::block_x() == 1) wl::st_global<4>(out + t, wl::at(x, 0));
  else wl::ld_global<4>(wl::at(x, 0), out + t);
)",
     64, 3, 2},
    {"wide loads are aligned", "alignment", R"(
  WL_REG(float, x, 4);
  wl::ld_global<16>(wl::at(x, 0), in + 1);
)"},
    {"wide shared loads are aligned", "alignment", R"(
  WL_REG(float, x, 4); x[0] = x[1] = x[2] = x[3] = 0.0f;
  wl::st_shared<16>(s + 4, wl::at(x, 0));
)"},
    {"one of many readers of sixteen bytes is not ordered before a write of four", "race", R"(
  WL_REG(float, x, 4); x[0] = x[1] = x[2] = x[3] = 0.0f;
  if (t == 0) wl::st_shared<16>(s, wl::at(x, 0));
  wl::sync_threads();
  if (t < 8 || t == 40) wl::ld_shared<16>(wl::at(x, 0), s);
  wl::sync_warp();
  if (t == 0) wl::st_shared<4>(s + 4, wl::at(x, 0));
)"},
    {"many readers of sixteen bytes are ordered before a write of four and one of sixteen", "", R"(
  WL_REG(float, x, 4); x[0] = x[1] = x[2] = x[3] = 0.0f;
  for (int round = 0; round < 3; ++round) {
    if (t == 0) wl::st_shared<16>(s, wl::at(x, 0));
    wl::sync_threads();
    if (t < 8 || t == 40) wl::ld_shared<16>(wl::at(x, 0), s);
    wl::sync_threads();
    if (t == 50) wl::st_shared<4>(s + 4, wl::at(x, 0));
    wl::sync_threads();
    wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t % 4));
    wl::sync_threads();
  }
)"},
    {"a named barrier of whole warps orders them", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::st_shared<4>(s + 4 * t, wl::at(x, 0));
  wl::sync_named(2, 64);
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t ^ 32));
)"},
    {"a barrier some threads skip", "deadlock", R"(
  if (wl::warp() == 0) wl::sync_named(2, 64);
)"},
    {"a barrier with two counts at once", "barrier", R"(
  wl::sync_named(2, wl::warp() == 0 ? 64 : 96);
)"},
    {"barrier counts are whole warps", "barrier", R"(
  wl::sync_named(2, 40);
)"},
    {"barrier ids end at 15", "barrier", R"(
  wl::sync_named(16, 64);
)"},
    {"one lane leaves a warp instruction", "deadlock", R"(
  if (wl::lane() != 3) out[t] = wl::shfl_xor(1.0f, 1);
)",
     32},
    {"lanes at different instructions", "divergence", R"(
  float x;
  if (wl::lane() < 16) x = wl::shfl_xor(1.0f, 1);
  else x = wl::shfl_xor(2.0f, 1);
)",
     32},
    {"an mbarrier hands data on", "", R"(
  if (t == 0) wl::mbarrier_init(s + 512, 32);
  wl::sync_threads();
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::warp() == 0) { wl::st_shared<4>(s + 4 * t, wl::at(x, 0)); wl::mbarrier_arrive(s + 512); }
  else { wl::mbarrier_wait(s + 512, 0); wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t - 32)); }
)"},
    {"arriving before the store hands nothing on", "race", R"(
  if (t == 0) wl::mbarrier_init(s + 512, 32);
  wl::sync_threads();
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::warp() == 0) { wl::mbarrier_arrive(s + 512); wl::st_shared<4>(s + 4 * t, wl::at(x, 0)); }
  else { wl::mbarrier_wait(s + 512, 0); wl::st_shared<4>(s + 4 * (t - 32), wl::at(x, 0)); }
)"},
    {"an mbarrier may not end in the middle of a phase", "mbarrier", R"(
  if (t == 0) wl::mbarrier_init(s + 512, 3);
  wl::sync_threads();
  if (t < 2) wl::mbarrier_arrive(s + 512);
)"},
    {"waiting for a phase that never comes", "deadlock", R"(
  if (t == 0) wl::mbarrier_init(s + 512, 3);
  wl::sync_threads();
  wl::mbarrier_wait(s + 512, 0);
)"},
    {"data over an mbarrier", "mbarrier", R"(
  if (t == 0) wl::mbarrier_init(s + 512, 64);
  wl::sync_threads();
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (t == 1) wl::st_shared<4>(s + 516, wl::at(x, 0));
)"},
    {"an mbarrier nobody made", "mbarrier", R"(
  wl::mbarrier_arrive(s + 512);
)"},
    {"an mbarrier made twice", "mbarrier", R"(
  wl::mbarrier_init(s + 512, 64);
)"},
    {"cp.async is visible to its thread after its wait", "", R"(
  WL_REG(float, x, 1);
  wl::cp_async<4>(s + 4 * t, in + t);
  wl::cp_async_commit();
  wl::cp_async_wait<0>();
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * t);
)"},
    {"cp.async is visible to others only after a barrier", "race", R"(
  WL_REG(float, x, 1);
  wl::cp_async<4>(s + 4 * t, in + t);
  wl::cp_async_commit();
  wl::cp_async_wait<0>();
  wl::ld_shared<4>(wl::at(x, 0), s + 4 * (t ^ 1));
)"},
    {"the newest group is still under way", "race", R"(
  WL_REG(float, x, 1);
  wl::cp_async<4>(s + 4 * t, in + t);
  wl::cp_async_commit();
  wl::cp_async<4>(s + 256 + 4 * t, in + t);
  wl::cp_async_commit();
  wl::cp_async_wait<1>();
  wl::ld_shared<4>(wl::at(x, 0), s + 256 + 4 * t);
  wl::cp_async_wait<0>();
)",
     64, 8},
    {"cp.async moves 4, 8 or 16 bytes", "alignment", R"(
  wl::cp_async<2>(s + 4 * t, in + t);
)"},
    {"registers are given before they are taken", "deadlock", R"(
  wl::reg_alloc<256>();
)",
     128},
    {"reg_alloc takes multiples of 8", "registers", R"(
  wl::reg_alloc<100>();
)",
     128},
    {"accumulators go to wgmma and back between fences", "",
     WGMMA(PIN "wl::wgmma_fence();\n", "wl::wgmma_wait<0>();\n" PIN), 128},
    {"an access before wgmma without wgmma_fence", "wgmma-fence",
     WGMMA(PIN, "wl::wgmma_wait<0>();\n" PIN), 128},
    {"an access before wgmma that the compiler may move", "wgmma-fence",
     WGMMA("wl::wgmma_fence();\n", "wl::wgmma_wait<0>();\n" PIN), 128},
    {"the registers' fence behind wgmma_fence", "wgmma-fence",
     WGMMA("wl::wgmma_fence();\n" PIN, "wl::wgmma_wait<0>();\n" PIN), 128},
    {"an access after the wait that the compiler may move", "wgmma-fence",
     WGMMA(PIN "wl::wgmma_fence();\n", "wl::wgmma_wait<0>();\n"), 128},
    {"the registers' fence before the wait", "wgmma-fence",
     WGMMA(PIN "wl::wgmma_fence();\n", PIN "wl::wgmma_wait<0>();\n"), 128},
    {"accumulators read before the wait", "wgmma-registers",
     WGMMA(PIN "wl::wgmma_fence();\n", PIN) "wl::wgmma_wait<0>();\n", 128},
    {"the kernel before may still write", "grid-dependency", R"(
  WL_REG(float, x, 1);
  wl::ld_global<4>(wl::at(x, 0), in + t);
)",
     64, 3, 1, true},
    {"the kernel before may still run when the next one comes", "grid-dependency", R"(
  wl::griddepcontrol_launch_dependents();
  wl::griddepcontrol_wait();
)",
     64, 0, 1, true},
    {"the kernel before has ended", "", R"(
  WL_REG(float, x, 1);
  wl::griddepcontrol_wait();
  wl::ld_global<4>(wl::at(x, 0), in + t);
)",
     64, 0, 1, true},
    {"the kernel before may still run when this one has ended", "grid-dependency", "\n", 64, 0, 1,
     true},
    {"blocks add to one element", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::block_x() == 0) wl::st_global<4>(out + t, wl::at(x, 0));
  int* flag = shared_flags;
  wl::sync_threads();
  if (wl::block_x() == 0 && t == 0) wl::signal_flag(flag, 1);
  if (wl::block_x() == 1 && t == 0) wl::wait_flag(flag, 1);
  wl::sync_threads();
  wl::red_add<4>(out + t, wl::at(x, 0));
)",
     64, 0, 2},
    {"adding to what another block stores", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::block_x() == 0) wl::st_global<4>(out + t, wl::at(x, 0));
  else wl::red_add<4>(out + t, wl::at(x, 0));
)",
     64, 4, 2},
    {"reading what another block added to", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  if (wl::block_x() == 0) wl::red_add<4>(shared_sums + t, wl::at(x, 0));
  else wl::ld_global<4>(wl::at(x, 0), shared_sums + t);
)",
     64, 4, 2},
    {"adding to nothing", "uninitialised", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  wl::red_add<4>(out + t, wl::at(x, 0));
)"},
    {"a flag without a barrier before it hands on its own thread's work alone", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  if (wl::block_x() == 0) {
    wl::st_global<4>(out + t, wl::at(x, 0));
    if (t == 0) wl::signal_flag(flag, 1);
  } else {
    if (t == 0) wl::wait_flag(flag, 1);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(x, 0), out + t);
  }
)",
     64, 10, 2},
    {"an update that is no signal hands on nothing", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  WL_REG(int, n, 1); n[0] = 1;
  int* flag = shared_flags;
  if (wl::block_x() == 0) {
    wl::st_global<4>(out + t, wl::at(x, 0));
    wl::sync_threads();
    if (t == 0) wl::red_add<4>(flag, wl::at(n, 0));
  } else {
    if (t == 0) wl::wait_flag(flag, 1);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(x, 0), out + t);
  }
)",
     64, 12, 2},
    {"a wait for fewer signals than matter", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  if (wl::block_x() < 2) {
    wl::st_global<4>(shared_sums + t + 64 * wl::block_x(), wl::at(x, 0));
    wl::sync_threads();
    if (t == 0) wl::signal_flag(flag, 1);
  } else {
    if (t == 0) wl::wait_flag(flag, 1);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(x, 0), shared_sums + t);
    wl::ld_global<4>(wl::at(x, 0), shared_sums + t + 64);
  }
)",
     64, 0, 3},
    {"what a block was handed it hands on", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  const int b = wl::block_x();
  if (b == 0) wl::st_global<4>(out + t, wl::at(x, 0));
  if (b > 0 && t == 1) wl::wait_flag(flag + b - 1, 1);
  wl::sync_threads();
  if (b == 2) wl::ld_global<4>(wl::at(x, 0), out + t);
  if (t == 0) wl::signal_flag(flag + b, 1);
)",
     64, 0, 3},
    {"reading is ordered before another block's writing", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  if (wl::block_x() == 0) {
    if (t == 0) wl::signal_flag(flag, 1);
    wl::ld_global<4>(wl::at(x, 0), shared_sums + t);
  } else {
    if (t == 0) wl::wait_flag(flag, 1);
    wl::sync_threads();
    wl::st_global<4>(shared_sums + t, wl::at(x, 0));
  }
)",
     64, 10, 2},
    {"a flag that nobody raises enough", "deadlock", R"(
  int* flag = shared_flags;
  if (t == 0 && wl::block_x() == 0) wl::wait_flag(flag, 2);
  if (t == 0 && wl::block_x() == 1) wl::signal_flag(flag, 1);
)",
     64, 0, 2},
    {"all blocks meet and read what each has left", "", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  for (int round = 1; round < 4; ++round) {
    if (t == 0) wl::st_global<4>(shared_sums + round % 2 * 4 + wl::block_x(), wl::at(x, 0));
    if (t == 0) wl::signal_flag(flag, 1), wl::wait_flag(flag, 3 * round);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(x, 0), shared_sums + round % 2 * 4 + t % 3);
    wl::sync_threads();
  }
)",
     64, 0, 3},
    {"blocks that meet once a round write over what others still read", "race", R"(
  WL_REG(float, x, 1); x[0] = 1.0f;
  int* flag = shared_flags;
  for (int round = 1; round < 4; ++round) {
    if (t == 0) wl::st_global<4>(shared_sums + wl::block_x(), wl::at(x, 0));
    if (t == 0) wl::signal_flag(flag, 1), wl::wait_flag(flag, 3 * round);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(x, 0), shared_sums + t % 3);
    wl::sync_threads();
  }
)",
     64, 5, 3},
};

TEST(Rules, EachKernelGetsTheVerdictItDeserves) {
  std::vector<std::string> texts;
  for (const Rule& r : kRules)
    texts.push_back(
        "WL_KERNEL(rule, 256, 1)(const float* in, float* out, float* shared_sums, int* "
        "shared_flags) { const unsigned "
        "s = "
        "WL_SHARED_BASE(); const "
        "int t = wl::thread();" +
        std::string(r.body) + "}\nWL_EXPORT(rule)\n");
  const Library lib(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Rule& rule = kRules[i];
      std::vector<float> in(64, 1.0f);
      std::vector<float> out(64);
      std::vector<float> sums(128);
      std::vector<int> flags(4);
      const void* pin = in.data();
      void* pout = out.data();
      void* psums = sums.data();
      void* pflags = flags.data();
      void* args[] = {&pin, &pout, &psums, &pflags};
      Launch l;
      l.entry = lib.entry("rule", static_cast<int>(i));
      l.block = rule.threads;
      l.grid[0] = rule.blocks;
      l.cooperative = std::string_view(rule.body).find("wait_flag") != std::string_view::npos;
      l.shared_bytes = 1024;
      l.args = args;
      l.options = {
          .seed = seed, .timing = static_cast<Timing>(seed), .after_launch = rule.after_launch};
      l.allocations = {{in.data(), 256, "in"},
                       {out.data(), 256, "out", true, false},
                       {sums.data(), 512, "sums", true},
                       {flags.data(), 16, "flags", true}};
      const Report r = run(l);
      const std::string want = rule.kind;
      if (want.empty()) {
        EXPECT_TRUE(r.clean()) << rule.name << "\n" << r.text();
      } else if (want == "deadlock") {
        EXPECT_TRUE(r.deadlock) << rule.name << "\n" << r.text();
      } else {
        const auto found = std::find_if(r.hazards.begin(), r.hazards.end(), [&](const Hazard& h) {
          return h.kind == want && (!rule.line || h.line == rule.line);
        });
        EXPECT_NE(found, r.hazards.end()) << rule.name << "\n" << r.text();
      }
    }
}
}  // namespace
}  // namespace warploom::emulator::testing
