#include "base/confine.h"
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include "base/casts.h"

namespace warploom {
namespace {
// landlock_ruleset_attr, with what later versions of the interface added.
struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scopes = 0;
};

long landlock_version() {
  static const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  return version;
}

// All rights over files that the kernel's version knows: 13 from the first on, then one more in 2
// (moves between folders), 3 (truncation) and 5 (ioctl of devices).
uint64_t all_rights() {
  const long version = landlock_version();
  const int count = 13 + (version >= 2) + (version >= 3) + (version >= 5);
  return (uint64_t{1} << count) - 1;
}

constexpr uint64_t kTruncate = uint64_t{1} << 14;
constexpr uint64_t kReads =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// What a folder's content may never become or do.
constexpr uint64_t kNever = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                            LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK;
// Those that a rule about a single file may have.
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

void allow(int rules, const std::filesystem::path& path, uint64_t rights) {
  const int opened = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) return;

  struct stat found{};

  const bool folder = ::fstat(opened, &found) == 0 && S_ISDIR(found.st_mode);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = folder ? rights : rights & kOfFiles;
  rule.parent_fd = opened;
  ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  ::close(opened);
}

int ruleset_of(const Confinement& confinement) {
  const long version = landlock_version();
  if (version < 1) return -1;
  const Ruleset wanted{all_rights(), version >= 4 ? 3ull : 0, version >= 6 ? 3ull : 0};
  size_t size = 8;  // of what the version knows of a ruleset
  if (version >= 4) size = 16;
  if (version >= 6) size = 24;
  const auto rules = as_int(::syscall(SYS_landlock_create_ruleset, &wanted, size, 0));
  if (rules < 0) return -1;
  for (const auto& path : confinement.readable)
    allow(rules, path, kReads);
  for (const auto& path : confinement.writable)
    allow(rules, path, all_rights() & ~kNever);
  return rules;
}

void limit(__rlimit_resource which, uint64_t most, uint64_t hard) {
  rlimit bound{};
  if (most == 0 || ::getrlimit(which, &bound) != 0) return;
  if (hard < bound.rlim_max) bound.rlim_max = hard;
  bound.rlim_cur = most < bound.rlim_max ? most : bound.rlim_max;
  ::setrlimit(which, &bound);
}
}  // namespace

Confine::Confine(const Confinement& confinement)
    : limits_(confinement), rules_(ruleset_of(confinement)) {}

Confine::~Confine() {
  if (rules_ >= 0) ::close(rules_);
}

void Confine::enter() const {
  limit(RLIMIT_AS, limits_.memory_bytes, limits_.memory_bytes);
  limit(RLIMIT_CPU, limits_.cpu_seconds, limits_.cpu_seconds + 1);
  limit(RLIMIT_FSIZE, limits_.file_bytes, limits_.file_bytes);
  // A descriptor that somebody left open would be a way round: /proc/self/fd/N.
  constexpr unsigned kCloseOnExec = 4;
  ::syscall(SYS_close_range, 3u, ~0u, kCloseOnExec);
  if (landlock_version() < 1) return;
  const bool held = rules_ >= 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::syscall(SYS_landlock_restrict_self, rules_, 0) == 0;
  if (!held) ::_exit(126);
}

std::string confinement_in_force() {
  return landlock_version() >= 1 ? "landlock, rlimits" : "rlimits";
}
}  // namespace warploom
