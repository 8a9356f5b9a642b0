#include "codegen/prepare.h"
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>
#include "base/rows.h"
#include "codegen/launch_list.h"

namespace warploom {
namespace {
bool writes(const Argument& argument) {
  return argument.written || argument.zeroed;
}

// Which kernels may do what they do before all calls: those of `prepare` all of whose workspaces
// none but others of them write, and none of the calls wants as they were before.
class Settling {
 public:
  explicit Settling(const LaunchList& list) : list_(list) {
    for (const BufferSpec& workspace : list.workspaces)
      workspaces_.insert(workspace.name);
    for (size_t k = 0; k < list.kernels.size(); ++k) {
      if (may_prepare(list.kernels[k])) prepare_.insert(k);
      for (const Argument& argument : list.kernels[k].args) {
        if (!workspaces_.contains(argument.buffer)) continue;
        Use& use = uses_[argument.buffer];
        use.kernels.insert(k);
        if (writes(argument)) use.writers.insert(k);
      }
    }
  }

  std::set<size_t> settled() {
    std::set<size_t> gone;
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      if (!prepare_.contains(k)) gone.insert(k);
    while (!gone.empty()) {
      const size_t k = gone.extract(gone.begin()).value();
      for (const Argument& argument : list_.kernels[k].args)
        if (const auto use = uses_.find(argument.buffer); use != uses_.end())
          leave(k, writes(argument), use->second, gone);
    }
    return prepare_;
  }

 private:
  // Of a workspace: the kernels that name it, and those of them that write it.
  struct Use {
    std::set<size_t> kernels;
    std::set<size_t> writers;
  };

  // Reads no input that changes, and stores into workspaces alone.
  bool may_prepare(const Kernel& kernel) const {
    bool stores = false;
    for (const Argument& argument : kernel.args) {
      const bool is_constant = contains(list_.constants, argument.buffer) && !writes(argument);
      if (!workspaces_.contains(argument.buffer) && !is_constant) return false;
      stores |= writes(argument);
    }
    return stores;
  }

  // Kernel `k` is one of the calls': so are all that name what it writes, and those behind it that
  // write what it names.
  void leave(size_t k, bool changes, const Use& use, std::set<size_t>& gone) {
    const auto go = [&](size_t other) {
      if (prepare_.erase(other) > 0) gone.insert(other);
    };
    if (changes)
      for (const size_t other : use.kernels)
        go(other);
    for (auto other = use.writers.upper_bound(k); other != use.writers.end(); ++other)
      go(*other);
  }

  const LaunchList& list_;
  std::set<std::string> workspaces_;
  std::set<size_t> prepare_;
  std::map<std::string, Use> uses_;
};
}  // namespace

void mark_prepare(LaunchList& list) {
  const std::set<size_t> prepare = Settling(list).settled();
  list.prepare.assign(prepare.begin(), prepare.end());
}

bool prepares(const LaunchList& list, size_t kernel) {
  return contains(list.prepare, kernel);
}

std::vector<size_t> called_kernels(const LaunchList& list) {
  const std::set<size_t> prepare(list.prepare.begin(), list.prepare.end());
  std::vector<size_t> called;
  for (size_t k = 0; k < list.kernels.size(); ++k)
    if (!prepare.contains(k)) called.push_back(k);
  return called;
}

std::vector<BufferSpec> prepared_buffers(const LaunchList& list) {
  std::set<std::string> made;
  std::set<std::string> wanted;
  for (const size_t k : list.prepare)
    for (const Argument& argument : list.kernels[k].args)
      made.insert(argument.buffer);
  for (const size_t k : called_kernels(list))
    for (const Argument& argument : list.kernels[k].args)
      wanted.insert(argument.buffer);
  std::vector<BufferSpec> kept;
  for (const BufferSpec& workspace : list.workspaces)
    if (made.contains(workspace.name) && wanted.contains(workspace.name)) kept.push_back(workspace);
  return kept;
}

int64_t prepared_bytes(const LaunchList& list) {
  int64_t bytes = 0;
  for (const BufferSpec& kept : prepared_buffers(list))
    bytes += kept.bytes();
  return bytes;
}
}  // namespace warploom
