#include "verify/sandbox.h"
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fstream>
#include "runtime/compilers.h"
namespace warploom::verify {
namespace {
// Sanitizers reserve address space freely and make system calls of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Landlock's own structures, with what later versions of its interface added (linux/landlock.h).
struct LandlockRuleset {
  std::uint64_t files = 0, network = 0, scopes = 0;
};
struct __attribute__((packed)) LandlockBeneath {
  std::uint64_t allowed = 0;
  std::int32_t folder = -1;
};
constexpr int kBeneath = 1;                                // LANDLOCK_RULE_PATH_BENEATH
constexpr std::uint64_t kExecute = 1, kReadFile = 1 << 2;  // LANDLOCK_ACCESS_FS_…

// Rights that the kernel's version of the interface knows: 13 from the first on, then one more in 2, 3 and 5.
bool landlock(const std::filesystem::path& readable) {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (version < 1) return false;
  const int rights = 13 + (version >= 2) + (version >= 3) + (version >= 5);
  const LandlockRuleset ruleset{(1ull << rights) - 1, version >= 4 ? 3ull : 0, version >= 6 ? 3ull : 0};
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const auto rules = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, size, 0));
  const LandlockBeneath images{kExecute | kReadFile, ::open(readable.c_str(), O_PATH | O_CLOEXEC)};
  const bool done = rules >= 0 && ::syscall(SYS_landlock_add_rule, rules, kBeneath, &images, 0) == 0 &&
                    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  ::close(images.folder);
  ::close(rules);
  return done;
}

bool limit(int which, std::uint64_t most) {
  const rlimit bound{most, most};
  return ::setrlimit(static_cast<__rlimit_resource>(which), &bound) == 0;
}

// Address space in use now, bytes.
std::uint64_t mapped() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool seccomp() {
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_KILL_PROCESS), seccomp_release);
  if (!filter) return false;
  // For all threads; and without the brake on speculative stores, which would slow candidates down and no user's program.
  bool good = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
              seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1) == 0;
  for (const int call : {SCMP_SYS(read),         SCMP_SYS(recvfrom),     SCMP_SYS(sendto),          SCMP_SYS(poll),
                         SCMP_SYS(close),        SCMP_SYS(futex),        SCMP_SYS(sched_yield),     SCMP_SYS(restart_syscall),
                         SCMP_SYS(mmap),         SCMP_SYS(munmap),       SCMP_SYS(madvise),         SCMP_SYS(brk),
                         SCMP_SYS(fstat),        SCMP_SYS(newfstatat),   SCMP_SYS(pread64),         SCMP_SYS(clock_gettime),
                         SCMP_SYS(getrandom),    SCMP_SYS(getpid),       SCMP_SYS(gettid),          SCMP_SYS(rt_sigprocmask),
                         SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
                         SCMP_SYS(exit),         SCMP_SYS(exit_group)})
    good = good && seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0) == 0;
  // The loader reads, and makes memory read-only, but nothing executable; abort() signals itself.
  good = good &&
         seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0 &&
         seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                          SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)) == 0 &&
         seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                          SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()))) == 0;
  return good && seccomp_load(filter.get()) == 0;
}
}  // namespace
std::vector<std::string> shut_in() {
  std::vector<std::string> held;
  std::error_code ignored;
  const std::filesystem::path images = runtime::image_cache().folder;
  std::filesystem::create_directories(images, ignored);
  constexpr std::uint64_t kMemory = 8ull << 30, kFiles = 64;  // memory beyond what is mapped now
  if (limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, kFiles) && (kSanitized || limit(RLIMIT_AS, mapped() + kMemory)))
    held.push_back("rlimits");
  if (::getpid() == 1) held.push_back("namespaces");
  if (landlock(images)) held.push_back("landlock");
  return held;
}

bool seal() { return !kSanitized && seccomp(); }
}  // namespace warploom::verify
