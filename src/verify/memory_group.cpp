#include "verify/memory_group.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>
#include "base/file.h"
#include "runtime/executor.h"

namespace warploom::verify {
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kPrefix = "warploom-";

int open_to_write(const fs::path& file) {
  return ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
}

// A file of the tree is written as one word, and the kernel may refuse it. (It makes none that is
// not there; of a tree that a test imitates it does.)
bool put(const fs::path& file, const std::string& word) {
  const int fd = open_to_write(file);
  if (fd < 0) return false;
  const bool done = ::write(fd, word.data(), word.size()) == static_cast<ssize_t>(word.size());
  ::close(fd);
  return done;
}

bool has_word(const fs::path& file, std::string_view word) {
  std::istringstream words(read_file(file).value_or(""));
  for (std::string one; words >> one;)
    if (one == word) return true;
  return false;
}

// The number behind a key of "oom_kill 3", a line each; 0: it is not there.
uint64_t number_of(const fs::path& file, std::string_view key) {
  std::istringstream words(read_file(file).value_or(""));
  uint64_t value = 0;
  for (std::string one; words >> one >> value;)
    if (one == key) return value;
  return 0;
}

// The group of this process, as a folder; empty where the tree is none of version 2.
fs::path own_group(const GroupTree& tree) {
  constexpr std::string_view kVersion2 = "0::/";
  std::ifstream lines(tree.own);
  std::error_code missing;
  if (!fs::exists(tree.root / "cgroup.controllers", missing)) return {};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kVersion2)) {
      const fs::path within = fs::path(line.substr(kVersion2.size())).lexically_normal();
      // Of a process outside of what this namespace sees the kernel says "/..".
      const bool inside = within.empty() || *within.begin() != "..";
      return inside ? tree.root / within : fs::path();
    }
  return {};
}

// Of groups that programs left which are no more. One that is not empty the kernel keeps.
void sweep(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& one : fs::directory_iterator(folder, ignored)) {
    const std::string name = one.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    int process = 0;
    const char* const digits = name.c_str() + kPrefix.size();
    std::from_chars(digits, name.c_str() + name.size(), process);
    const bool gone = process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    if (gone) ::rmdir(one.path().c_str());
  }
}

// The groups from one's own up to the root that pass memory control on to those below them.
std::vector<fs::path> places(const GroupTree& tree) {
  std::vector<fs::path> found;
  fs::path at = own_group(tree);
  while (!at.empty()) {
    const bool passes_on = has_word(at / "cgroup.subtree_control", "memory");
    // Processes are moved from one's own group, so that all above both must be ours.
    const bool may_move = ::access((at / "cgroup.procs").c_str(), W_OK) == 0;
    if (passes_on && may_move) found.push_back(at);
    if (at == tree.root) break;
    at = at.parent_path();
  }
  return found;
}

bool is_limited(const fs::path& group, uint64_t bytes) {
  if (!put(group / "memory.max", std::to_string(bytes))) return false;
  put(group / "memory.swap.max", "0");   // there is none where nothing is swapped
  put(group / "memory.oom.group", "1");  // all go, so that none is taken for one that crashed
  return true;
}
}  // namespace

std::unique_ptr<MemoryGroup> MemoryGroup::make(uint64_t bytes, const GroupTree& tree) {
  static std::atomic<int> made = 0;
  const std::string name = fmt::format("{}{}-{}", kPrefix, ::getpid(), ++made);
  for (const fs::path& place : places(tree)) {
    sweep(place);
    const fs::path path = place / name;
    if (::mkdir(path.c_str(), 0755) != 0) continue;
    std::unique_ptr<MemoryGroup> group(new MemoryGroup(path));
    group->processes_ = open_to_write(path / "cgroup.procs");
    if (group->processes_ >= 0 && is_limited(path, bytes)) return group;
  }
  return nullptr;
}

MemoryGroup::~MemoryGroup() {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kPause{2};
  if (processes_ >= 0) ::close(processes_);
  put(path_ / "cgroup.kill", "1");  // Linux 5.14; before, those that were started end them
  // Who was killed is gone a little later.
  for (int i = 0; i < kTries && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(kPause);
}

void MemoryGroup::enter() const {
  // What it fails for (a group that somebody removed) shows in the verdict: it says what holds.
  (void)!::write(processes_, "0", 1);
}

bool MemoryGroup::ran_out() const {
  return number_of(path_ / "memory.events", "oom_kill") > 0;
}

std::function<void()> entering(const MemoryGroup* group) {
  return [group] {
    if (group) group->enter();
  };
}

uint64_t memory_for_candidates() {
  constexpr double kShare = 0.9;
  const std::string kilobytes = runtime::proc_value("/proc/meminfo", "MemAvailable:");
  return static_cast<uint64_t>(kShare * 1024 * std::strtod(kilobytes.c_str(), nullptr));
}

uint64_t memory_limit_of_group(const GroupTree& tree) {
  const fs::path own = own_group(tree);
  if (!own.filename().string().starts_with(kPrefix)) return 0;
  uint64_t bytes = 0;
  const std::string text = read_file(own / "memory.max").value_or("");
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

void limit_data_without_group(uint64_t bytes, const GroupTree& tree) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // what they reserve counts
  if (bytes == 0 || memory_limit_of_group(tree) != 0) return;
  const rlimit most{bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &most);
#else
  (void)bytes;
  (void)tree;
#endif
}

std::string memory_confinement(const GroupTree& tree) {
  constexpr double kGigabyte = 1e9;
  const uint64_t bytes = memory_limit_of_group(tree);
  if (bytes == 0) return "memory: rlimits, shared memory not counted (no cgroup v2 to be made)";
  return fmt::format("memory: a cgroup of {:.1f} GB, shared memory counted",
                     static_cast<double>(bytes) / kGigabyte);
}
}  // namespace warploom::verify
