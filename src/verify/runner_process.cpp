// The runner's own side: shuts itself in, then loads kernels and carries steps out, until the
// socket closes.
//
// What it gives up before it loads a candidate, as far as the kernel lets it:
//
//   rlimits      memory, files' sizes and open files are bounded
//   namespaces   of its own for users, processes, mounts, network and IPC, which it is started in
//                (base/process.h): no network, no other process that it could name or signal; the
//                files of /proc are still the machine's, which landlock shuts
//   landlock     no file can be opened but compiled images, no connection be made, no signal leave
//   seccomp      no system call but what threads, memory, the loader and the channel need; another
//                one ends the process (SIGSYS)
//
// What the kernel refuses is no error: the verdict says what was in force.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <malloc.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ratio>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "cpu/pool.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/runner.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using nlohmann::json;

// Sanitizers reserve address space freely and make system calls of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// landlock_ruleset_attr, with what later versions of the interface added.
struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scopes = 0;
};

// Rights that the kernel's version of the interface knows: 13 from the first on, then one more in
// 2, 3 and 5.
bool landlock(const std::filesystem::path& readable) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (version < 1) return false;
  const int rights = 13 + (version >= 2) + (version >= 3) + (version >= 5);
  const Ruleset ruleset{(1ull << rights) - 1, version >= 4 ? 3ull : 0, version >= 6 ? 3ull : 0};
  size_t size = 8;  // of what the version knows of a ruleset
  if (version >= 4) size = 16;
  if (version >= 6) size = 24;
  const auto rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, size, 0));
  const landlock_path_beneath_attr images{LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE,
                                          ::open(readable.c_str(), O_PATH | O_CLOEXEC)};
  const bool done =
      rules >= 0 &&
      ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &images, 0) == 0 &&
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  ::close(images.parent_fd);
  ::close(rules);
  return done;
}

bool limit(int which, uint64_t most) {
  const rlimit bound{most, most};
  return ::setrlimit(static_cast<__rlimit_resource>(which), &bound) == 0;
}

// When all threads are there: whether it came into force.
bool seccomp() {
  if (kSanitized) return false;
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS),
                                                      seccomp_release);
  if (!filter) return false;
  // For all threads; and without the brake on speculative stores, which would slow candidates down
  // and no user's program.
  bool good = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) == 0;
  good = good && seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1) == 0;
  for (const int call : {SCMP_SYS(read),          SCMP_SYS(recvfrom),        SCMP_SYS(sendto),
                         SCMP_SYS(poll),          SCMP_SYS(close),           SCMP_SYS(futex),
                         SCMP_SYS(sched_yield),   SCMP_SYS(restart_syscall), SCMP_SYS(mmap),
                         SCMP_SYS(munmap),        SCMP_SYS(madvise),         SCMP_SYS(brk),
                         SCMP_SYS(fstat),         SCMP_SYS(newfstatat),      SCMP_SYS(pread64),
                         SCMP_SYS(clock_gettime), SCMP_SYS(getrandom),       SCMP_SYS(getpid),
                         SCMP_SYS(gettid),        SCMP_SYS(rt_sigprocmask),  SCMP_SYS(rt_sigaction),
                         SCMP_SYS(rt_sigreturn),  SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
                         SCMP_SYS(exit),          SCMP_SYS(exit_group)})
    good = good && seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0) == 0;
  // The loader reads, and makes memory read-only, but nothing executable; abort() signals itself.
  const auto allow_if = [&](int call, const scmp_arg_cmp& condition) {
    return seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1, condition) == 0;
  };
  constexpr scmp_datum_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC;
  const auto self = static_cast<scmp_datum_t>(::getpid());
  good = good && allow_if(SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  good = good && allow_if(SCMP_SYS(openat), SCMP_A2(SCMP_CMP_MASKED_EQ, kWrites, O_RDONLY));
  good = good && allow_if(SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, self));
  return good && seccomp_load(filter.get()) == 0;
}

// Before there are threads; the names of what came into force.
std::vector<std::string> shut_in() {
  std::vector<std::string> held;
  std::error_code ignored;
  const std::filesystem::path images = runtime::image_cache().folder;
  std::filesystem::create_directories(images, ignored);
  // memory beyond what is mapped now
  constexpr uint64_t kMemory = 8ull << 30;
  constexpr uint64_t kFiles = 64;
  uint64_t mapped = 0;  // pages
  std::ifstream("/proc/self/statm") >> mapped;
  const uint64_t memory = mapped * ::sysconf(_SC_PAGESIZE) + kMemory;
  if (limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, kFiles) &&
      (kSanitized || limit(RLIMIT_AS, memory)))
    held.push_back("rlimits");
  if (::getpid() == 1) held.push_back("namespaces");
  if (landlock(images)) held.push_back("landlock");
  return held;
}

struct Loaded {
  CpuKernel function;
  int64_t blocks;
  int64_t scratch;
};

struct Work {
  char* memory;
  wl::Pool& pool;
  std::vector<Loaded> kernels = {};
  bool backwards = false;

  json load(const json& message) {
    const auto function = runtime::cpu_kernel(message["load"], message["name"]);
    if (!function) return {{"error", to_json(function.error())}};
    kernels.push_back({*function, message["blocks"], message["scratch"]});
    return {{"kernel", kernels.size() - 1}};
  }

  // Every worker awake, as one is that follows another call.
  void wake() {
    std::atomic<int> awake = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    pool.run(pool.threads(), [&](int64_t, int) {
      for (++awake; awake < pool.threads() && std::chrono::steady_clock::now() < until;)
        __builtin_ia32_pause();
    });
  }

  json run(const json& message) {
    backwards = message.value("backwards", false);
    const int times = message.value("times", 1);
    const auto steps = message.value("steps", std::vector<Step>());
    const auto swapped = message.value("swapped", std::vector<Words>());
    const auto poked = message.value("poked", std::vector<Words>());
    Random random(message.value("seed", uint64_t{0}), "disturbances");
    wake();
    using Microseconds = std::chrono::duration<double, std::micro>;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      const bool first = i == 0;
      const bool last = i + 1 == times;
      Trades trades;
      if (!last) trades = draw_trades(swapped, random);
      if (!first) poke(poked, random);
      trade(trades);
      if (!carry_out(steps)) return {{"error", to_json(no_scratch())}};
      trade(trades);
    }
    const Microseconds spent = std::chrono::steady_clock::now() - begin;
    return {{"us", spent.count()}};
  }

  using Trades = std::vector<std::pair<char*, char*>>;

  // A random word of `size` bytes in a part of the memory.
  char* random_word(const Words& part, int64_t size, Random& random) {
    const auto& [offset, words] = part;
    const auto word = static_cast<int64_t>(random.below(words));
    return memory + offset + size * word;
  }

  // Two words of each part, which are to trade places.
  Trades draw_trades(const std::vector<Words>& parts, Random& random) {
    Trades trades;
    for (const Words& part : parts) {
      char* const a = random_word(part, 8, random);
      char* const b = random_word(part, 8, random);
      trades.emplace_back(a, b);
    }
    return trades;
  }

  static void trade(const Trades& trades) {
    for (const auto& [a, b] : trades) std::swap_ranges(a, a + 8, b);
  }

  // Poison in a word of each part.
  void poke(const std::vector<Words>& parts, Random& random) {
    for (const Words& part : parts)
      std::memcpy(random_word(part, sizeof kPoison, random), &kPoison, sizeof kPoison);
  }

  bool carry_out(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      const bool done = step[0] == kFill ? fill(step) : launch(step);
      if (!done) return false;
    }
    return true;
  }

  static Error no_scratch() {
    return {
        ErrorCode::kOutOfMemory,  "no memory for a kernel's scratch", "", "its scratch", "no room",
        "take a smaller schedule"};
  }

  bool fill(const Step& step) {
    const auto word = static_cast<uint32_t>(step[3]);
    char* const begin = memory + step[1];
    for (int64_t at = 0; at < step[2]; at += 4) {
      const int64_t bytes = std::min<int64_t>(4, step[2] - at);
      std::memcpy(begin + at, &word, bytes);
    }
    return true;
  }

  bool launch(const Step& step) {
    const Loaded& kernel = kernels[step[0]];
    std::vector<void*> addresses;
    for (const int64_t offset : std::span(step).subspan(1)) addresses.push_back(memory + offset);
    return wl::run_blocks(pool, kernel.function, addresses.data(), kernel.blocks, kernel.scratch,
                          backwards);
  }
};
}  // namespace

int run_for(Channel& channel, char* memory) {
  std::vector<std::string> held = shut_in();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::mallopt(M_PERTURB, 0xa5);  // scratch that no kernel wrote holds 1.5e16 everywhere, not what the
                               // heap happened to hold
  wl::Pool pool;
  cpu_set_t own;  // the core that the pool's other threads leave free, or a message could wake this
                  // one on theirs
  CPU_ZERO(&own);
  CPU_SET(wl::allowed_cores().front(), &own);
  ::sched_setaffinity(0, sizeof own, &own);
  if (seccomp()) held.push_back("seccomp");
  channel.send({{"sandbox", fmt::format("{}", fmt::join(held, ", "))}});
  Work work{memory, pool};
  while (const auto message = channel.receive(-1))
    channel.send(message->contains("load") ? work.load(*message) : work.run(*message));
  ::_exit(0);
}
}  // namespace warploom::verify
