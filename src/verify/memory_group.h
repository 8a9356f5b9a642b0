// MemoryGroup: a control group (cgroup v2) that bounds the memory of a process and of all that it
// starts, shared memory counted, which no rlimit does.
//
//   const auto group = MemoryGroup::make(bytes);        // null where this user may make none
//   start_process(words, entering(group.get()));
//   …
//   if (group && group->ran_out()) …                    // the kernel ended one of them for it
//
// Groups can be made by root, and by users to whom systemd has delegated a part of the tree: in
// what their own service manager started, as terminals of a desktop are, and within
// `systemd-run --user --scope`; not in a plain login by ssh, and in most containers not at all.
// A group lies beside that of this process, in the nearest group above where the memory controller
// is on; its name tells this process's id, by which a group that was left behind is known later
// on, and removed. Nothing is swapped out of it.
//
// What a process began before it entered is not counted, so it enters between fork and exec.
// Sizes are bytes. Source: Linux documentation, admin-guide/cgroup-v2. Within the room only.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace warploom::verify {
// Where the kernel shows groups, and the file that names a process's own.
struct GroupTree {
  std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path own = "/proc/self/cgroup";
};

class MemoryGroup {
 public:
  static std::unique_ptr<MemoryGroup> make(uint64_t bytes, const GroupTree& tree = {});
  // Ends what still runs in it.
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // In the child, between fork and exec. Calls nothing but the kernel.
  void enter() const;
  // Whether the kernel has ended a process of the group since it would have taken more.
  bool ran_out() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit MemoryGroup(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  int processes_ = -1;  // its list of them, open
};

// What a candidate's processes may have together: nearly all that is free now, so that they come to
// their own limit before the machine comes to its.
uint64_t memory_for_candidates();

// What a process of this program that entered a group is bounded to; 0: it is in none.
uint64_t memory_limit_of_group(const GroupTree& tree = {});

// What a process that is started does to be bounded by a group, between fork and exec; nothing
// where there is none.
std::function<void()> entering(const MemoryGroup* group);

// The same for a verdict: "memory: a cgroup of 6.2 GB, shared memory counted", or what holds where
// there is none.
std::string memory_confinement(const GroupTree& tree = {});

// Where this process is in no group: an rlimit on its own data, which is what rlimits can do.
void limit_data_without_group(uint64_t bytes, const GroupTree& tree = {});
}  // namespace warploom::verify
